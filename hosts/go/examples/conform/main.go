// SPDX-License-Identifier: Apache-2.0

// Command conform is the host that `ringhold conform host ADDRESS` tries: docs/host-protocol.md,
// "Conformance", says what its actors do.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	host "ringhold.dev/hosts/go"
)

type conform struct {
	actor *host.Actor
	note  string
}

func (c *conform) Activate(t *host.Turn, state []byte) error {
	c.note = string(state)
	return nil
}

func (c *conform) Handoff(t *host.Turn) ([]byte, error) { return []byte(c.note), nil }

func (c *conform) call(t *host.Turn, id, payload string) ([]byte, error) {
	answer, err := t.Call(host.Ref{Kind: c.actor.Ref().Kind, ID: id}, []byte(payload))
	var failed *host.CallError
	if errors.As(err, &failed) {
		return nil, host.Error(failed.Text)
	}
	return answer, err
}

func (c *conform) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	if len(m.Arguments) > 0 {
		return host.Integer(len(m.Arguments)), nil
	}
	words := append(strings.Split(string(m.Payload), " "), "", "", "")
	switch words[0] {
	case "echo":
		return host.Bytes(words[1]), nil
	case "text":
		return host.Text("OK"), nil
	case "integer":
		return host.Integer(-42), nil
	case "error":
		return nil, host.Error("ERR on purpose")
	case "fail":
		panic("on purpose")
	case "call":
		answer, err := c.call(t, words[1], words[2])
		return host.Bytes(answer), err
	case "effects":
		kind := c.actor.Ref().Kind
		t.Send(host.Ref{Kind: kind, ID: "bob"}, []byte("one"))
		t.Push([]byte("two"))
		t.PushIDs(kind, []string{"a", "b"}, []byte("three"))
	case "put":
		t.Put(words[1], []byte(words[2]))
	case "delete":
		t.Delete(words[1])
	case "get":
		if value, ok := c.actor.Get(words[1]); ok {
			return host.Bytes(value), nil
		}
	case "undo":
		t.Put(words[1], []byte(words[2]))
		t.Undo()
	case "putcall":
		t.Put(words[1], []byte(words[2]))
		answer, err := c.call(t, words[3], words[1])
		if err != nil {
			return nil, err
		}
		t.Put(words[1], answer)
	case "alarm":
		t.SetAlarm(host.Alarm{Name: words[1], Payload: []byte(words[1]), Due: time.Now().Add(time.Hour)})
	case "timer":
		number, _ := strconv.ParseUint(words[1], 10, 64)
		t.StartTimer(number, 50*time.Millisecond, 0)
	case "note":
		if words[1] == "" {
			return host.Bytes(c.note), nil
		}
		c.note = words[1]
	}
	return host.Nil{}, nil
}

func (c *conform) Alarm(t *host.Turn, a host.Alarm) error {
	t.Put("rang", []byte(a.Name))
	return nil
}

func (c *conform) Tick(t *host.Turn, timer uint64) { t.Push([]byte(fmt.Sprintf("tick %d", timer))) }

func (c *conform) Session(t *host.Turn, s host.Session) error {
	if s.Event == host.Bound {
		t.PushOne(s.Number, []byte("welcome"))
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: conform ADDRESS")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := host.New(host.Options{Address: os.Args[1], Name: "conform", Log: log.Printf})
	host.Register(h, "conform", func(a *host.Actor) *conform { return &conform{actor: a} }, host.Durable())
	if err := h.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
