// SPDX-License-Identifier: Apache-2.0

// Command bots plays many players of examples/bots.c, an actor that answers with how many requests
// it has run and pushes numbers that grow by one. Each keeps a ledger of what it was told.
//
//	bots -gateways 127.0.0.1:7300,127.0.0.1:7301 -n 10000 -rate 500 -ask 2s -time 2m
//
// It ends after -time; 0: when its stdin ends. The last line is the sum of all ledgers, as JSON. Exit
// code 2: something was lost or came twice.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	ringhold "ringhold.dev/clients/go"
)

// A ledger is what one player was told, or the sum of many.
type ledger struct {
	Bots        int    `json:"bots"`
	OK          uint64 `json:"ok"`
	Unknown     uint64 `json:"unknown"`
	Refused     uint64 `json:"refused"` // it did not run
	Pushes      uint64 `json:"pushes"`
	Lost        uint64 `json:"lost"`
	Duplicated  uint64 `json:"duplicated"`
	PushesLost  uint64 `json:"pushes_lost"`
	PushesTwice uint64 `json:"pushes_duplicated"`
	Begun       uint64 `json:"begun_afresh"`
	Lines       uint64 `json:"lines_lost"`
}

type bot struct {
	mu sync.Mutex
	ledger
	ran    uint64 // as the last answer said
	unsure uint64 // requests since then that may have run
	pushed uint64 // the last number
}

// answered: the actor has run `count` requests, this one included.
func (b *bot) answered(count uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.OK++
	if least := b.ran + 1; count < least {
		b.Lost += least - count
	} else if most := least + b.unsure; count > most {
		b.Duplicated += count - most
	}
	b.ran, b.unsure = count, 0
}

func (b *bot) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var e *ringhold.Error
	if errors.As(err, &e) && !e.MayHaveRun() {
		b.Refused++
	} else {
		b.Unknown++
		b.unsure++
	}
}

func (b *bot) pushedTo(push ringhold.Push) {
	number, err := strconv.ParseUint(string(push.Payload), 10, 64)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Pushes++
	if err != nil || (b.pushed > 0 && number <= b.pushed) {
		b.PushesTwice++
	} else if b.pushed > 0 {
		b.PushesLost += number - b.pushed - 1
	}
	b.pushed = number
}

// begun: the actor has lost its memory, and counts from 1.
func (b *bot) begun() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Begun++
	b.ran, b.unsure, b.pushed = 0, 0, 0
}

func (b *bot) play(ctx context.Context, gateways []string, me ringhold.Actor, ask time.Duration) {
	c, err := ringhold.New(ringhold.Options{
		Gateways: gateways,
		OnPush:   b.pushedTo,
		OnBegun:  b.begun,
		OnLost: func(string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.Lines++
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	c.Bind(me)
	if err := c.Connect(ctx); err != nil {
		log.Printf("%s: %v", me.ID, err)
		return
	}
	wait := time.Duration(rand.Int63n(int64(ask)))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		answer, err := c.Request(context.Background(), me, []byte("x"))
		if err == nil {
			var count uint64
			if count, err = strconv.ParseUint(string(answer), 10, 64); err == nil {
				b.answered(count)
			}
		}
		if err != nil {
			b.failed(err)
		}
		wait = ask
	}
}

func main() {
	gateways := flag.String("gateways", "127.0.0.1:7300", "HOST:PORT,…")
	n := flag.Int("n", 100, "how many players")
	rate := flag.Int("rate", 500, "that begin in a second")
	ask := flag.Duration("ask", 2*time.Second, "each asks so often")
	length := flag.Duration("time", 10*time.Second, "for so long, from the first on; 0: until stdin ends")
	prefix := flag.String("prefix", "go-", "of their ids")
	flag.Parse()
	if *n < 1 || *rate < 1 || *ask <= 0 || flag.NArg() > 0 {
		log.Fatal("bots: see -help")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if *length > 0 {
		time.AfterFunc(*length, cancel)
	} else {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	bots := make([]bot, *n)
	var all sync.WaitGroup
	begin := time.NewTicker(time.Second / time.Duration(*rate))
	for i := range bots {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			bots[i].play(ctx, strings.Split(*gateways, ","), ringhold.Actor{ID: fmt.Sprint(*prefix, i)}, *ask)
		}(i)
		<-begin.C
	}
	fmt.Fprintf(os.Stderr, "%d bots have begun\n", *n)
	all.Wait()
	sum := ledger{Bots: *n}
	silent := 0
	for i := range bots {
		b := &bots[i].ledger
		if b.OK == 0 {
			silent++
		}
		sum.OK += b.OK
		sum.Unknown += b.Unknown
		sum.Refused += b.Refused
		sum.Pushes += b.Pushes
		sum.Lost += b.Lost
		sum.Duplicated += b.Duplicated
		sum.PushesLost += b.PushesLost
		sum.PushesTwice += b.PushesTwice
		sum.Begun += b.Begun
		sum.Lines += b.Lines
	}
	line, _ := json.Marshal(sum)
	fmt.Println(string(line))
	if silent > 0 {
		log.Printf("%d bots had no answer", silent)
	}
	if silent > 0 || sum.Lost+sum.Duplicated+sum.PushesLost+sum.PushesTwice > 0 {
		os.Exit(2)
	}
}
