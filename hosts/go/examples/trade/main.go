// SPDX-License-Identifier: Apache-2.0

// Command trade is a small game at a host: players with a durable inventory who give each other
// things, and rooms that push what is said to everybody in them.
//
//	ringhold node --name n1 --store sqlite:game.db --host unix:/tmp/host.sock \
//	    --kind 0:host=player,durable,alarms,sessions=kick --kind 4:host=room
//	go run ./examples/trade unix:/tmp/host.sock
//
// A client says to a player: "add sword 2", "bag", "give bob sword 1", "join lobby", "say lobby hello",
// "remind 5 tea". What is pushed to it: "* bob gave you sword 1", "lobby ann: hello".
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	host "ringhold.dev/hosts/go"
)

// A Player has an inventory: a value of the store for each thing, with its count.
type Player struct {
	actor *host.Actor
}

func (p *Player) count(thing string) int {
	value, _ := p.actor.Get("item/" + thing)
	count, _ := strconv.Atoi(string(value))
	return count
}

func (p *Player) change(t *host.Turn, thing string, by int) int {
	count := p.count(thing) + by
	if count == 0 {
		t.Delete("item/" + thing)
	} else {
		t.Put("item/"+thing, []byte(strconv.Itoa(count)))
	}
	return count
}

func (p *Player) bag() string {
	var all []string
	for _, key := range p.actor.Keys("item/") {
		thing := strings.TrimPrefix(key, "item/")
		all = append(all, fmt.Sprintf("%s=%d", thing, p.count(thing)))
	}
	return strings.Join(all, " ")
}

// Receive does what a client says, and takes what another player gives.
func (p *Player) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	word, rest, _ := strings.Cut(string(m.Payload), " ")
	words := strings.Fields(rest)
	switch {
	case word == "bag":
		return host.Text(p.bag()), nil
	case word == "add" && len(words) == 2 && m.From.ID == "":
		count, err := strconv.Atoi(words[1])
		if err != nil || count < 1 {
			return nil, host.Error("ERR add THING COUNT")
		}
		return host.Integer(p.change(t, words[0], count)), nil
	case word == "give" && len(words) == 3:
		return p.give(t, words[0], words[1], words[2])
	case word == "gift" && len(words) == 2 && m.From.ID != "":
		count, _ := strconv.Atoi(words[1])
		p.change(t, words[0], count)
		t.Push([]byte(fmt.Sprintf("* %s gave you %s %d", m.From.ID, words[0], count)))
		return nil, nil
	case word == "join" && len(words) == 1:
		_, err := t.Call(t.Named("room", words[0]), []byte("join"))
		return host.Text("joined"), err
	case word == "say" && len(words) >= 2:
		answer, err := t.Call(t.Named("room", words[0]), []byte("say "+strings.Join(words[1:], " ")))
		return host.Text("said to " + string(answer)), err
	case word == "remind" && len(words) == 2:
		seconds, _ := strconv.ParseFloat(words[0], 64)
		due := time.Now().Add(time.Duration(seconds * float64(time.Second)))
		t.SetAlarm(host.Alarm{Name: "remind/" + words[1], Due: due, Payload: []byte(words[1])})
		return host.Text("OK"), nil
	case word == "crash":
		os.Exit(3)
	}
	return nil, host.Error("ERR add, bag, give, join, say, remind")
}

// The thing leaves one inventory by the commit that saves the gift, which arrives once.
func (p *Player) give(t *host.Turn, to, thing, howMany string) (host.Value, error) {
	count, err := strconv.Atoi(howMany)
	if err != nil || count < 1 || to == p.actor.ID() {
		return nil, host.Error("ERR give PLAYER THING COUNT")
	}
	if p.count(thing) < count {
		return nil, host.Error("NOITEM you have only " + strconv.Itoa(p.count(thing)))
	}
	t.SendOnce(host.Ref{Kind: p.actor.Ref().Kind, ID: to}, []byte(fmt.Sprintf("gift %s %d", thing, count)))
	return host.Integer(p.change(t, thing, -count)), nil
}

// Alarm reminds the player of something.
func (p *Player) Alarm(t *host.Turn, a host.Alarm) error {
	count := p.change(t, "reminded-"+string(a.Payload), 1)
	t.Push([]byte(fmt.Sprintf("* %s, %d", a.Payload, count)))
	return nil
}

// Session lets every client in.
func (p *Player) Session(t *host.Turn, s host.Session) error { return nil }

// A Room knows who is in it. Its memory moves with it; a crash forgets it.
type Room struct {
	Kind    uint16          // of its members
	Members map[string]bool // by id
	Said    int
}

// Activate takes what Handoff wrote.
func (r *Room) Activate(t *host.Turn, state []byte) error {
	r.Members = map[string]bool{}
	if state != nil {
		return json.Unmarshal(state, r)
	}
	return nil
}

// Handoff writes the room for its next owner.
func (r *Room) Handoff(t *host.Turn) ([]byte, error) { return json.Marshal(r) }

// Receive takes players in, and says what they say.
func (r *Room) Receive(t *host.Turn, m host.Message) (host.Value, error) {
	word, rest, _ := strings.Cut(string(m.Payload), " ")
	switch word {
	case "join":
		if m.From.ID == "" {
			return nil, host.Error("ERR only players join")
		}
		r.Kind = m.From.Kind
		r.Members[m.From.ID] = true
		return host.Integer(len(r.Members)), nil
	case "say":
		if !r.Members[m.From.ID] {
			return nil, host.Error("NOTHERE join first")
		}
		r.Said++
		t.PushIDs(r.Kind, r.members(), []byte(fmt.Sprintf("%s %s: %s", t.ID(), m.From.ID, rest)))
		return host.Integer(len(r.Members)), nil
	case "who":
		return host.Text(fmt.Sprintf("%s, %d said", strings.Join(r.members(), " "), r.Said)), nil
	case "hang":
		time.Sleep(time.Hour)
	case "tick":
		t.StartTimer(1, 50*time.Millisecond, 0)
		return host.Text("OK"), nil
	}
	return nil, host.Error("ERR join, say, who")
}

// Tick counts as if somebody had said something.
func (r *Room) Tick(t *host.Turn, timer uint64) { r.Said++ }

func (r *Room) members() []string {
	var all []string
	for id := range r.Members {
		all = append(all, id)
	}
	sort.Strings(all)
	return all
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: trade ADDRESS")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := host.New(host.Options{
		Address: os.Args[1],
		Name:    "trade",
		Token:   os.Getenv("RINGHOLD_HOST_TOKEN"),
		Log:     log.Printf,
	})
	host.Register(h, "player", func(a *host.Actor) *Player { return &Player{actor: a} }, host.Durable())
	host.Register(h, "room", func(a *host.Actor) *Room { return &Room{} })
	if err := h.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
