// SPDX-License-Identifier: Apache-2.0

// Command player is examples/player.c in Go: what is typed goes to an actor, and what the actor
// pushes is shown.
//
//	player GATEWAY,GATEWAY KIND ID [TOKEN]
//
// PLAYER_CA: certificates (PEM) that tls:// gateways are checked by.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	ringhold "ringhold.dev/clients/go"
)

type player struct {
	client *ringhold.Client

	mu    sync.Mutex // of stdout, and
	actor ringhold.Actor
}

func (p *player) say(format string, arguments ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

func (p *player) who() ringhold.Actor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.actor
}

// heard tells an answer that has come.
func (p *player) heard(pending *ringhold.Pending) {
	answer, err := pending.Wait(context.Background())
	var failed *ringhold.Error
	if errors.As(err, &failed) {
		p.say("answer %v  %s", failed.Status, failed.Payload)
	} else if err == nil {
		p.say("answer OK  %s", answer)
	}
}

func config() *tls.Config {
	path := os.Getenv("PLAYER_CA")
	if path == "" {
		return nil
	}
	chain, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(chain)
	return &tls.Config{RootCAs: pool}
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("player GATEWAY,GATEWAY KIND ID [TOKEN]")
	}
	kind, err := strconv.ParseUint(os.Args[2], 10, 16)
	if err != nil {
		log.Fatal(err)
	}
	kicked := make(chan struct{})
	p := &player{actor: ringhold.Actor{Kind: uint16(kind), ID: os.Args[3]}}
	options := ringhold.Options{
		Gateways: strings.Split(os.Args[1], ","),
		TLS:      config(),
		OnPush: func(push ringhold.Push) {
			p.say("push %d lost %d  %s", push.Sequence, push.Lost, push.Payload)
		},
		OnKnown: func(who ringhold.Who) { p.say("known %d  %s", who.Kind, who.ID) },
		OnRebound: func(who ringhold.Who) {
			p.say("rebound %d  %s", who.Kind, who.ID)
			p.mu.Lock()
			p.actor = who.Actor // what is typed goes to that one from here on
			p.mu.Unlock()
		},
		OnReady: func() { p.say("ready") },
		OnBound: func(fresh bool) {
			p.say("bound %s", map[bool]string{true: "afresh", false: "again"}[fresh])
		},
		OnBegun:   func() { p.say("begun") },
		OnLost:    func(why string) { p.say("lost %s", why) },
		OnGoaway:  func(_ time.Duration, text string) { p.say("goaway %s", text) },
		OnRefused: func(e *ringhold.Error) { p.say("refused %s", e.Payload) },
		OnKicked: func(k *ringhold.Kicked) {
			p.say("kicked %d  %s", k.Code, k.Text)
			close(kicked)
		},
	}
	if len(os.Args) > 4 {
		options.Token = []byte(os.Args[4])
	}
	if p.client, err = ringhold.New(options); err != nil {
		log.Fatal(err)
	}
	p.play(kicked)
	p.client.Close()
}

func (p *player) play(kicked <-chan struct{}) {
	bound := p.client.Bind(p.who())
	go func() {
		var failed *ringhold.Error
		if _, err := bound.Wait(context.Background()); errors.As(err, &failed) {
			p.say("refused %s", failed.Payload)
		}
	}()
	go p.client.Connect(context.Background()) // OnKicked tells if it never will

	asked := make(chan *ringhold.Pending)
	said := make(chan struct{})
	go func() {
		defer close(said)
		p.tell(asked, kicked)
	}()
	go func() {
		defer close(asked)
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if text := lines.Text(); strings.HasPrefix(text, "!") {
				p.client.Notify(p.who(), []byte(text[1:]))
			} else {
				asked <- p.client.Start(p.who(), []byte(text))
			}
		}
	}()
	<-said
}

// tell what each request came to, when it has: until no more are asked and all are told, or it is
// kicked, which ends them all.
func (p *player) tell(asked <-chan *ringhold.Pending, kicked <-chan struct{}) {
	var open []*ringhold.Pending // in the order in which they were asked
	changed := make(chan struct{}, 1)
	for asked != nil || len(open) > 0 {
		select {
		case pending, more := <-asked:
			if !more {
				asked = nil
				break
			}
			open = append(open, pending)
			go func() {
				<-pending.Done()
				select {
				case changed <- struct{}{}:
				default: // it will look
				}
			}()
		case <-changed:
		case <-kicked:
			asked = nil
		}
		// From the last one: if it is done when it is looked at, so are those that ended before it.
		done := make([]bool, len(open))
		for i := len(open) - 1; i >= 0; i-- {
			select {
			case <-open[i].Done():
				done[i] = true
			default:
			}
		}
		left := open[:0]
		for i, pending := range open {
			if done[i] {
				p.heard(pending)
			} else {
				left = append(left, pending)
			}
		}
		open = left
	}
}
