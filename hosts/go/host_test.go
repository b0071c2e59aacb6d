// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A node is the other end of a host's connection, played by the test.
type node struct {
	t    *testing.T
	in   *bufio.Reader
	conn net.Conn
}

// serve runs a host with these kinds, and returns its connection once it has come.
func serve(t *testing.T, options Options, register func(h *Host)) (*node, chan error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "host.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	options.Address = "unix:" + path
	options.Log = t.Logf
	h := New(options)
	register(h)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = listener.Close()
		_ = conn.Close()
	})
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &node{t: t, in: bufio.NewReader(conn), conn: conn}, ended
}

func (n *node) write(frame []byte) {
	n.t.Helper()
	if _, err := n.conn.Write(frame); err != nil {
		n.t.Fatal(err)
	}
}

// read reads one frame, with its size.
func (n *node) read() []byte {
	n.t.Helper()
	frame, err := readFrame(n.in, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// says is a frame of one message of the node.
func says(body int, fields []byte) []byte {
	message := putWhole(nil, 1, putWhole(nil, body, fields))
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// welcome takes the hello and welcomes one kind as number 3.
func (n *node) welcome(kind string) {
	n.t.Helper()
	n.read()
	served := putUint(putData(nil, 1, kind), 2, 3)
	n.write(says(saysWelcome, putWhole(putUint(nil, 1, version), 3, served)))
}

func (n *node) activate(activation uint64, more []byte) {
	n.t.Helper()
	fields := putUint(putUint(putUint(nil, 1, activation), 2, 1), 3, 3)
	n.write(says(saysActivate, append(putData(fields, 4, "ann"), more...)))
}

func (n *node) message(activation, turn uint64, payload string) {
	n.t.Helper()
	n.write(says(saysMessage, putData(putUint(putUint(nil, 1, activation), 2, turn), 3, payload)))
}

// A step is what a host said of a turn.
type step struct {
	activation, turn uint64
	effects          []int // which
	done             bool
	result           uint64
	reply            []byte // a Value, packed
	state            string
	fail             string
}

// step reads a frame that is one step, and answers pings of nobody.
func (n *node) step() step {
	n.t.Helper()
	var s step
	says := reader{rest: readData(n.read()[4:], 1)}
	if !says.next() || says.field != 3 {
		n.t.Fatalf("not a step: %d", says.field)
	}
	r := reader{rest: says.data}
	for r.next() {
		switch r.field {
		case 1:
			s.activation = r.value
		case 2:
			s.turn = r.value
		case 3:
			effect := reader{rest: r.data}
			effect.next()
			s.effects = append(s.effects, effect.field)
		case 4:
			s.done = true
			s.result = readUint(r.data, 1)
			s.reply = readData(r.data, 2)
			s.state = string(readData(r.data, 3))
			s.fail = string(readData(r.data, 4))
		}
	}
	if r.bad {
		n.t.Fatal("a step does not decode")
	}
	return s
}

// ---- the page's conversation

func pageFrames(t *testing.T) [][]byte {
	t.Helper()
	page, err := os.ReadFile("../../docs/host-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, told, _ := strings.Cut(string(page), "## A conversation\n")
	var all []byte
	for _, line := range strings.Split(told, "\n") {
		if strings.HasPrefix(line, "    ") {
			part, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, part...)
		}
	}
	var frames [][]byte
	for len(all) > 0 {
		size := 4 + int(binary.BigEndian.Uint32(all))
		frames = append(frames, all[:size])
		all = all[size:]
	}
	return frames
}

// A teller asks bob, and tells its client what he says.
type teller struct{ ended chan Why }

func (c *teller) Receive(t *Turn, m Message) (Value, error) {
	answer, err := t.Call(t.Named("player", "bob"), []byte("hello"), Within(time.Second))
	if err != nil {
		return nil, err
	}
	t.Push([]byte("bob says " + string(answer)))
	return Bytes("done"), nil
}

func (c *teller) Deactivate(why Why) { c.ended <- why }

func TestTheConversationOfThePage(t *testing.T) {
	frames := pageFrames(t)
	if len(frames) != 11 {
		t.Fatalf("the page has %d frames", len(frames))
	}
	ended := make(chan Why, 1)
	n, _ := serve(t, Options{Name: "game"}, func(h *Host) {
		Register(h, "player", func(a *Actor) *teller { return &teller{ended} })
	})
	byHost := map[int]bool{0: true, 3: true, 5: true, 7: true, 9: true}
	for i, frame := range frames {
		if !byHost[i] {
			n.write(frame)
		} else if got := n.read(); !bytes.Equal(got, frame) {
			t.Fatalf("frame %d:\n got %x\nwant %x", i, got, frame)
		}
	}
	if why := <-ended; why != Idle {
		t.Fatalf("it ended as %v", why)
	}
}

// ---- turns

// A keeper does what its payload says.
type keeper struct {
	actor *Actor
	state string
	moves error
}

func (k *keeper) Activate(t *Turn, state []byte) error {
	if string(state) == "bad" {
		return errors.New("bad state")
	}
	k.state = string(state)
	return nil
}

func (k *keeper) Handoff(t *Turn) ([]byte, error) { return []byte(k.state), k.moves }

func (k *keeper) Alarm(t *Turn, a Alarm) error {
	t.Put("rang", a.Payload)
	if string(a.Payload) == "fail" {
		return errors.New("not now")
	}
	return nil
}

func (k *keeper) Receive(t *Turn, m Message) (Value, error) {
	switch word := string(m.Payload); word {
	case "panic":
		panic("on purpose")
	case "error":
		return nil, errors.New("no\nsuch thing")
	case "code":
		return nil, Error("BUSY in a trade")
	case "number":
		return Integer(-7), nil
	case "put":
		t.Put("a", []byte("1"))
		t.Delete("b")
		return nil, nil
	case "undo":
		t.Put("a", []byte("2"))
		t.Put("c", nil)
		t.Delete("a")
		t.Undo()
		return nil, nil
	case "values":
		return Text(strings.Join(k.actor.Keys(""), " ")), nil
	case "alarm":
		t.SetAlarm(Alarm{Name: "tea", Payload: []byte("x"), Due: time.UnixMilli(5)})
		return nil, nil
	case "many":
		first := t.Start(Ref{3, "one"}, nil)
		second := t.Start(Ref{3, "two"}, nil)
		b, err := second.Wait()
		if err != nil {
			return nil, err
		}
		a, err := first.Wait()
		return Text(string(a) + string(b)), err
	case "wait":
		_, err := t.Call(Ref{3, "one"}, nil)
		return nil, err
	default:
		t.Send(Ref{4, "room"}, m.Payload)
		t.SendOnce(Ref{4, "room"}, m.Payload)
		t.PushIDs(3, []string{"a", "b"}, m.Payload)
		t.Kick(0, 1000, "bye")
		t.Rebind(0, Ref{3, "bob"})
		t.StartTimer(1, time.Second, 0)
		t.StopTimer(1)
		t.CancelAlarm("x")
		t.FlushSoon()
		t.Passivate()
		return Nil{}, nil
	}
}

func keepers(h *Host) {
	Register(h, "keeper", func(a *Actor) *keeper { return &keeper{actor: a} }, Durable())
}

func startKeeper(t *testing.T, more []byte) *node {
	t.Helper()
	n, _ := serve(t, Options{}, keepers)
	n.welcome("keeper")
	n.activate(1, more)
	if s := n.step(); !s.done || s.turn != 1 || s.result != resultOK {
		t.Fatalf("%+v", s)
	}
	return n
}

func replyText(s step) string {
	r := reader{rest: s.reply}
	if !r.next() {
		return "nothing"
	}
	if r.field == 3 {
		return "a number"
	}
	return string(r.data)
}

func TestAnswers(t *testing.T) {
	n := startKeeper(t, nil)
	for i, c := range []struct{ payload, reply, fail string }{
		{"error", "ERR no such thing", ""},
		{"code", "BUSY in a trade", ""},
		{"number", "a number", ""},
		{"put", "nothing", ""},
		{"panic", "nothing", "ERR the actor panicked: on purpose"},
	} {
		n.message(1, uint64(i+2), c.payload)
		s := n.step()
		if !s.done || replyText(s) != c.reply || s.fail != c.fail {
			t.Errorf("%s: %+v, %q", c.payload, s, replyText(s))
		}
	}
}

func TestEffectsAreInOrder(t *testing.T) {
	n := startKeeper(t, nil)
	n.message(1, 2, "all of them")
	want := []int{2, 3, 5, 6, 7, 13, 14, 12, 15, 16}
	if s := n.step(); len(s.effects) != len(want) {
		t.Fatalf("%v", s.effects)
	} else {
		for i := range want {
			if s.effects[i] != want[i] {
				t.Fatalf("%v", s.effects)
			}
		}
	}
}

func TestValuesAreKeptAndUndone(t *testing.T) {
	value := putData(putData(nil, 1, "b"), 2, "old")
	n := startKeeper(t, putWhole(nil, 9, value))
	for i, c := range []struct{ payload, reply string }{
		{"values", "b"}, {"put", "nothing"}, {"values", "a"}, {"undo", "nothing"}, {"values", "a"},
	} {
		n.message(1, uint64(i+2), c.payload)
		if s := n.step(); replyText(s) != c.reply {
			t.Fatalf("%s: %q", c.payload, replyText(s))
		}
	}
}

func TestAnAlarmThatFailsIsUndone(t *testing.T) {
	n := startKeeper(t, nil)
	for turn, payload := range []string{"ok", "fail"} {
		alarm := putData(putData(putUint(putUint(nil, 1, 1), 2, uint64(turn+2)), 3, "tea"), 4, payload)
		n.write(says(saysAlarm, alarm))
		if s := n.step(); !s.done || (s.result == resultFailed) != (payload == "fail") {
			t.Fatalf("%+v", s)
		}
	}
}

func TestWhatWaitedComesWithTheWelcome(t *testing.T) {
	n, _ := serve(t, Options{}, keepers)
	n.read()
	served := putUint(putData(nil, 1, "keeper"), 2, 3)
	welcome := putWhole(nil, saysWelcome, putWhole(putUint(nil, 1, version), 3, served))
	ann := putWhole(nil, saysActivate, putData(putUint(putUint(putUint(nil, 1, 1), 2, 1), 3, 3), 4, "ann"))
	frame := putWhole(putWhole(make([]byte, 4), 1, welcome), 1, ann)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	n.write(frame)
	if s := n.step(); s.activation != 1 || !s.done {
		t.Fatalf("%+v", s)
	}
}

func TestCallsGoSideBySide(t *testing.T) {
	n := startKeeper(t, nil)
	n.message(1, 2, "many")
	if s := n.step(); s.done || len(s.effects) != 2 {
		t.Fatalf("%+v", s)
	}
	n.write(says(saysAnswer, putData(putUint(putUint(nil, 1, 1), 2, 1), 4, "a")))
	n.write(says(saysAnswer, putData(putUint(putUint(nil, 1, 1), 2, 2), 4, "b")))
	if s := n.step(); !s.done || replyText(s) != "ab" {
		t.Fatalf("%+v", s)
	}
	n.message(1, 3, "wait")
	n.step()
	failed := putData(putUint(putUint(putUint(nil, 1, 1), 2, 3), 3, 9), 4, "TIMEOUT no answer")
	n.write(says(saysAnswer, failed))
	if s := n.step(); replyText(s) != "TIMEOUT no answer" {
		t.Fatalf("%q", replyText(s))
	}
}

func TestAStateMoves(t *testing.T) {
	n := startKeeper(t, putData(putUint(nil, 6, 1), 7, "moved"))
	n.write(says(saysHandoff, putUint(putUint(nil, 1, 1), 2, 2)))
	if s := n.step(); s.state != "moved" || s.result != resultOK {
		t.Fatalf("%+v", s)
	}
	n.activate(2, putData(putUint(nil, 6, 1), 7, "bad"))
	if s := n.step(); s.result != resultFailed || s.activation != 2 {
		t.Fatalf("%+v", s)
	}
}

func TestATurnEndsWithItsLife(t *testing.T) {
	n := startKeeper(t, nil)
	n.message(1, 2, "wait")
	n.step()
	n.write(says(saysDeactivate, putUint(putUint(nil, 1, 1), 2, uint64(Fenced))))
	n.activate(2, nil) // the same id, at once
	if s := n.step(); s.activation != 2 || !s.done {
		t.Fatalf("%+v", s) // and nothing of the first one
	}
}

func TestWhoIsRefusedForGoodEnds(t *testing.T) {
	n, ended := serve(t, Options{Token: "secret"}, keepers)
	if hello := n.read(); !bytes.Contains(hello, []byte("secret")) {
		t.Fatal("the hello has no token")
	}
	n.write(says(saysGoodbye, putData(putUint(nil, 1, 3), 2, "the token is not the node's")))
	var refused *Refused
	if err := <-ended; !errors.As(err, &refused) || refused.Reason != 3 {
		t.Fatal(err)
	}
}

func TestGarbageOfTheNodeEndsTheConnection(t *testing.T) {
	for _, garbage := range [][]byte{
		{0xff, 0xff, 0xff, 0xff},
		{0, 0, 0, 3, 0xff, 0xff, 0xff},
		{0, 0, 0, 2, 0x0a, 0x00},
		{0, 0, 0, 4, 0x0a, 0x02, 0x22, 0x05},
	} {
		n := startKeeper(t, nil)
		n.write(garbage)
		if _, err := n.in.ReadByte(); err == nil {
			t.Errorf("%x: it goes on", garbage)
		}
	}
}
