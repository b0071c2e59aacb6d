// SPDX-License-Identifier: Apache-2.0

// Command purse is a host of purses: durable actors who give others gold, by numbered requests. README.md says what
// they are asked and what they keep.
//
//	ringhold node --name n1 --store sqlite:game.db --host unix:/tmp/host.sock --kind 0:host=purse,durable …
//	go run . unix:/tmp/host.sock
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	host "ringhold.dev/hosts/go"
)

// A Purse has no memory but its values.
type Purse struct {
	actor *host.Actor
}

func (p *Purse) number(name string) int64 {
	value, _ := p.actor.Get(name)
	number, _ := strconv.ParseInt(string(value), 10, 64)
	return number
}

func (p *Purse) add(t *host.Turn, name string, by int64) string {
	text := strconv.FormatInt(p.number(name)+by, 10)
	t.Put(name, []byte(text))
	return text
}

// Each request is done once: who asks again hears the answer again. All that it changes is one commit.
func (p *Purse) request(t *host.Turn, seq int64, change func() string) (host.Value, error) {
	done := p.number("done")
	if seq < done {
		return nil, host.Error("ERR a later request is done")
	}
	if seq > done {
		t.Put("done", []byte(strconv.FormatInt(seq, 10)))
		t.Put("answer", []byte(change()))
	}
	answer, _ := p.actor.Get("answer")
	return host.Text(string(answer)), nil
}

func (p *Purse) give(t *host.Turn, seq int64, whom string, amount int64) string {
	if amount > p.number("gold") {
		return "POOR"
	}
	t.SendOnce(host.Ref{Kind: p.actor.Ref().Kind, ID: whom}, []byte(fmt.Sprintf("take %d %d", seq, amount)))
	return p.add(t, "gold", -amount)
}

// What another purse gives arrives once.
func (p *Purse) take(t *host.Turn, from string, seq, amount int64) {
	p.add(t, fmt.Sprintf("from/%s/%d", from, seq), amount)
	p.add(t, "gold", amount)
}

// Receive does what a client asks, and takes what another purse gives.
func (p *Purse) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	words := strings.Fields(string(m.Payload))
	if len(words) == 1 && words[0] == "gold" {
		return host.Text(strconv.FormatInt(p.number("gold"), 10)), nil
	}
	if len(words) >= 3 {
		seq, _ := strconv.ParseInt(words[1], 10, 64)
		amount, _ := strconv.ParseInt(words[len(words)-1], 10, 64)
		switch of := m.From.ID != ""; {
		case seq < 1 || amount < 1:
		case of && words[0] == "take" && len(words) == 3:
			p.take(t, m.From.ID, seq, amount)
			return nil, nil
		case !of && words[0] == "earn" && len(words) == 3:
			return p.request(t, seq, func() string { return p.add(t, "gold", amount) })
		case !of && words[0] == "give" && len(words) == 4:
			return p.request(t, seq, func() string { return p.give(t, seq, words[2], amount) })
		}
	}
	return nil, host.Error("ERR earn N AMOUNT, give N WHOM AMOUNT, gold")
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: purse ADDRESS")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := host.New(host.Options{Address: os.Args[1], Name: "purse", Log: log.Printf})
	host.Register(h, "purse", func(a *host.Actor) *Purse { return &Purse{actor: a} }, host.Durable())
	if err := h.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
