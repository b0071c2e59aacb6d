// SPDX-License-Identifier: Apache-2.0

// Command echo is the least host: actors that answer what they are asked. bench/host measures it.
//
//	ringhold node --name n1 --host unix:/tmp/host.sock --kind 0:host=echo
//	go run ./examples/echo unix:/tmp/host.sock
package main

import (
	"context"
	"log"
	"os"

	host "ringhold.dev/hosts/go"
)

type echo struct{}

func (echo) Receive(_ *host.Turn, m host.Message) (host.Value, error) {
	return host.Bytes(m.Payload), nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: echo ADDRESS")
	}
	h := host.New(host.Options{Address: os.Args[1], Name: "echo", Log: log.Printf})
	host.Register(h, "echo", func(*host.Actor) echo { return echo{} })
	if err := h.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
