// SPDX-License-Identifier: Apache-2.0

// Command arena is a small game on Ringhold: players who are matched by a lobby, play rock, paper,
// scissors for gold in rooms, trade, and stand on a leaderboard.
//
//	arena host ADDRESS            the actors, beside a node: see README.md for its options
//	arena web [-listen] [-ws]     the page
//	arena bots [-gateways] …      players who keep count of the gold
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	host "ringhold.dev/hosts/go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	commands := map[string]func(context.Context, []string) error{"host": runHost, "web": runWeb, "bots": runBots}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: arena host ADDRESS | web [options] | bots [options]; -help after each tells its options")
		os.Exit(1)
	}
	log.SetPrefix("arena " + os.Args[1] + ": ")
	log.SetFlags(0)
	err := commands[os.Args[1]](ctx, os.Args[2:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		log.Fatal(err)
	}
}

func runHost(ctx context.Context, words []string) error {
	if len(words) != 1 {
		return errors.New("it takes the address of the node's --host")
	}
	h := host.New(host.Options{
		Address: words[0],
		Name:    "arena",
		Token:   os.Getenv("RINGHOLD_HOST_TOKEN"),
		Log:     log.Printf,
	})
	host.Register(h, "player", func(a *host.Actor) *Player { return &Player{a} }, host.Durable())
	host.Register(h, "lobby", func(a *host.Actor) *Lobby { return &Lobby{a} }, host.Durable())
	host.Register(h, "room", func(a *host.Actor) *Room { return &Room{a} }, host.Durable())
	host.Register(h, "board", func(a *host.Actor) *Board { return &Board{a} }, host.Durable())
	return h.Run(ctx)
}
