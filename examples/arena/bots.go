// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "ringhold.dev/clients/go"
)

// A bot plays until it is told to stop: it asks for a match, chooses when there is one, and now and then gives
// gold away.
type bot struct {
	client *client.Client
	me     client.Actor
	pushes chan string
	others int
	prefix string
}

var rounds, gifts, unsure atomic64

type atomic64 struct{ n int64 }

func (a *atomic64) add()       { atomic.AddInt64(&a.n, 1) }
func (a *atomic64) get() int64 { return atomic.LoadInt64(&a.n) }

func newBot(gateways []string, prefix string, number, others int) (*bot, error) {
	b := &bot{me: client.Actor{ID: fmt.Sprint(prefix, number)}, pushes: make(chan string, 1024), others: others, prefix: prefix}
	var err error
	b.client, err = client.New(client.Options{
		Gateways: gateways,
		OnPush: func(p client.Push) {
			select {
			case b.pushes <- string(p.Payload):
			default: // it looks at the newest state anyway
			}
		},
	})
	if err == nil {
		b.client.Bind(b.me)
	}
	return b, err
}

// ask the player's actor. What may have run is nothing to worry about: the actor's answer to "hello" says what is.
func (b *bot) ask(ctx context.Context, text string) (string, error) {
	answer, err := b.client.Request(ctx, b.me, []byte(text))
	var failed *client.Error
	if errors.As(err, &failed) && failed.MayHaveRun() && failed.Status != client.ActorFailed {
		unsure.add()
	}
	return string(answer), err
}

func (b *bot) play(ctx context.Context) {
	if b.client.Connect(ctx) != nil {
		return
	}
	wait := time.NewTicker(time.Duration(500+rand.Intn(500)) * time.Millisecond)
	defer wait.Stop()
	for {
		var you struct {
			Gold int
			Room string
		}
		answer, err := b.ask(ctx, "hello")
		if err == nil {
			err = json.Unmarshal([]byte(strings.TrimPrefix(answer, "you ")), &you)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
		case you.Room != "":
			b.ask(ctx, "choose "+[]string{"rock", "paper", "scissors"}[rand.Intn(3)])
		case you.Gold > 5 && rand.Intn(4) == 0:
			if _, err := b.ask(ctx, fmt.Sprintf("give %s%d 1", b.prefix, rand.Intn(b.others))); err == nil {
				gifts.add()
			}
		case you.Gold > 0:
			b.ask(ctx, "play")
		}
		for again := true; again; {
			select {
			case <-ctx.Done():
				return
			case push := <-b.pushes:
				if strings.HasPrefix(push, "over ") {
					rounds.add()
				}
				again = !strings.HasPrefix(push, "match ") && !strings.HasPrefix(push, "over ")
			case <-wait.C:
				again = false
			}
		}
	}
}

// gold is what the bot has in the end, out of all rooms; the rooms have paid within the time of a round.
func (b *bot) gold(ctx context.Context) (int, error) {
	for {
		answer, err := b.client.Request(ctx, b.me, []byte("hello"), client.Idempotent())
		if err == nil {
			var you struct {
				Gold int
				Room string
			}
			if err = json.Unmarshal([]byte(strings.TrimPrefix(string(answer), "you ")), &you); err != nil {
				return 0, err
			}
			if you.Room == "" {
				return you.Gold, nil
			}
			b.client.Start(b.me, []byte("choose rock"), client.Idempotent()) // a round ends when both have chosen
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %v", b.me.ID, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func runBots(ctx context.Context, words []string) error {
	flags := flag.NewFlagSet("bots", flag.ContinueOnError)
	gateways := flags.String("gateways", "127.0.0.1:7300", "HOST:PORT of --frames, divided by commas")
	n := flags.Int("n", 20, "how many")
	length := flags.Duration("time", 30*time.Second, "for so long; then the gold is counted")
	prefix := flags.String("prefix", "bot-"+strconv.FormatInt(time.Now().Unix()%1e6, 36)+"-", "of their names")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if *n < 2 || flags.NArg() > 0 {
		return errors.New("-n: two or more play")
	}
	playing, stop := context.WithTimeout(ctx, *length)
	defer stop()
	bots := make([]*bot, *n)
	var all sync.WaitGroup
	for i := range bots {
		b, err := newBot(strings.Split(*gateways, ","), *prefix, i, *n)
		if err != nil {
			return err
		}
		defer b.client.Close()
		bots[i] = b
		all.Add(1)
		go func() {
			defer all.Done()
			b.play(playing)
		}()
	}
	all.Wait()
	counting, cancel := context.WithTimeout(context.Background(), 3*roundTime)
	defer cancel()
	return count(counting, bots)
}

// count all gold, until it stays the same: gifts may be on their way, and so may a match.
func count(ctx context.Context, bots []*bot) error {
	for {
		sum := 0
		for _, b := range bots {
			gold, err := b.gold(ctx)
			if err != nil {
				return err
			}
			sum += gold
		}
		if sum == startGold*len(bots) {
			fmt.Printf("%d players, %d rounds, %d gifts, %d answers in doubt; %d gold, as in the beginning\n",
				len(bots), rounds.get(), gifts.get(), unsure.get(), sum)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d gold, but there were %d in the beginning", sum, startGold*len(bots))
		case <-time.After(time.Second):
		}
	}
}
