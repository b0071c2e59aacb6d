// SPDX-License-Identifier: Apache-2.0

package ringhold

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The packets of docs/protocol-client.md, by type.
func page(t *testing.T) map[byte][]byte {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocol-client.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[byte][]byte{}
	row := regexp.MustCompile("(?m)^\\| (\\d+) \\|[^|]*\\|[^|]*\\|[^|]*\\| `([0-9a-f ]+)` \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		kind, _ := strconv.Atoi(m[1])
		data, err := hex.DecodeString(strings.ReplaceAll(m[2], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		found[byte(kind)] = data
	}
	if len(found) < 12 {
		t.Fatalf("the page has %d examples", len(found))
	}
	return found
}

func TestPacketsAreThoseOfThePage(t *testing.T) {
	shown := page(t)
	made := map[byte][]byte{
		typeHello:   packet(typeHello, 0x52, 0x48, 1, 1, 0, 0),
		typePing:    packet(typePing, 'x'),
		typePong:    packet(typePong, 'x'),
		typeRequest: asking(typeRequest, 0x01020304, Actor{0x0506, "boss"}, flagIdempotent, 0, []byte("hit 7")),
		typeNotify:  asking(typeNotify, 9, Actor{ID: "a"}, 0, 2000, nil),
		typeUnbind:  packet(typeUnbind, 0, 0, 0, 9),
		typeAuth:    packet(typeAuth, []byte("rh1.k1.AA.BB")...),
	}
	for kind, data := range made {
		if !bytes.Equal(data, shown[kind]) {
			t.Errorf("type %d: %x, the page has %x", kind, data, shown[kind])
		}
	}
}

func TestAStreamMayBeCutAnywhere(t *testing.T) {
	var stream []byte
	for kind := byte(0); kind < 32; kind++ {
		stream = append(stream, page(t)[kind]...)
	}
	for cut := 1; cut <= len(stream); cut++ {
		c := cutter{most: bodyMax}
		var found []byte
		for at := 0; at < len(stream); at += cut {
			end := at + cut
			if end > len(stream) {
				end = len(stream)
			}
			c.put(stream[at:end])
			for {
				kind, body, ok, err := c.next()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				found = append(found, packet(kind, body...)...)
			}
		}
		if !bytes.Equal(found, stream) {
			t.Fatalf("cut by %d: %x", cut, found)
		}
	}
	c := cutter{most: 10}
	c.put([]byte{6, 0, 0, 11})
	if _, _, _, err := c.next(); err == nil {
		t.Error("a packet of 11 bytes was taken")
	}
}

// A clock that goes by only when the test lets it.
type testClock struct {
	time   time.Time
	timers map[*testTimer]bool
}

type testTimer struct {
	at  time.Time
	run func()
}

func (c *testClock) now() time.Time { return c.time }

func (c *testClock) after(d time.Duration, run func()) func() {
	timer := &testTimer{c.time.Add(d), run}
	c.timers[timer] = true
	return func() { delete(c.timers, timer) }
}

// A rig has a client whose lines are lists of what was sent.
type rig struct {
	*testing.T
	*Client
	clock *testClock
	lines []*testLine
}

type testLine struct {
	rig    *rig
	sent   [][]byte
	unsent int
	closed bool
}

func (l *testLine) send(data []byte) { l.sent = append(l.sent, data) }
func (l *testLine) unread() int      { return l.unsent }
func (l *testLine) close()           { l.closed = true }

func (l *testLine) hears(kind byte, body ...byte) { l.rig.received(l, packet(kind, body...)) }

func (l *testLine) answers(name uint32, status Status, payload ...byte) {
	body := append(binary.BigEndian.AppendUint32(nil, name), byte(status), 0, 0, 0, 0)
	l.hears(typeResponse, append(body, payload...)...)
}

func (l *testLine) greets() {
	l.rig.opened(l)
	body := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}
	l.hears(typeHelloAck, append(body, make([]byte, 12)...)...)
}

func newRig(t *testing.T, o Options) *rig {
	o.Gateways = []string{"a:1"}
	o.RequestsMax, o.OutMax, o.PacketMax = 2, 1<<20, 1<<20
	o.AnswerTimeout, o.GreetTimeout = 15*time.Second, 10*time.Second
	o.BackOffMin, o.BackOffMax = 200*time.Millisecond, 10*time.Second
	r := &rig{T: t, clock: &testClock{time.Unix(1000, 0), map[*testTimer]bool{}}}
	r.Client = newClient(o, r.clock, func() float64 { return 0.999 })
	r.core.dial = func(*Client, string) line {
		l := &testLine{rig: r}
		r.lines = append(r.lines, l)
		return l
	}
	t.Cleanup(r.Close)
	return r
}

// pass lets time go by until the next timer.
func (r *rig) pass() {
	var next *testTimer
	for timer := range r.clock.timers {
		if next == nil || timer.at.Before(next.at) {
			next = timer
		}
	}
	if next == nil {
		r.Fatal("nothing will ever happen")
	}
	delete(r.clock.timers, next)
	if next.at.After(r.clock.time) {
		r.clock.time = next.at
	}
	next.run()
}

// dials returns the next line, and how long it took.
func (r *rig) dials() (*testLine, time.Duration) {
	begun, before := r.clock.time, len(r.lines)
	for len(r.lines) == before {
		r.pass()
	}
	return r.lines[before], r.clock.time.Sub(begun)
}

func (r *rig) ready() *testLine {
	r.mu.Lock()
	r.core.connect()
	r.mu.Unlock()
	l, _ := r.dials()
	l.greets()
	return l
}

func status(t *testing.T, p *Pending) Status {
	t.Helper()
	if !p.isDone() {
		t.Fatal("it has not ended")
	}
	var failed *Error
	if !errors.As(p.err, &failed) {
		t.Fatalf("%v", p.err)
	}
	return failed.Status
}

func TestAGatewayThatGreetsAndHangsUpIsAsGoodAsNone(t *testing.T) {
	r := newRig(t, Options{})
	l := r.ready()
	var waits []time.Duration
	for i := 0; i < 8; i++ {
		var wait time.Duration
		r.closed(l, "gone")
		l, wait = r.dials()
		waits = append(waits, wait)
		l.greets()
	}
	for i := 1; i < 6; i++ {
		if waits[i] < waits[i-1]*19/10 {
			t.Errorf("%v", waits)
		}
	}
	if waits[7] <= 9*time.Second || waits[7] > 10*time.Second {
		t.Errorf("%v", waits)
	}
	r.clock.time = r.clock.time.Add(10 * time.Second) // one that lasted ends the row
	r.closed(l, "gone")
	l, wait := r.dials()
	if wait > 200*time.Millisecond {
		t.Errorf("%v", wait)
	}
	l.greets()
	l.hears(typeGoaway, 0xff, 0xff, 0xff, 0xff) // nobody is sent away for longer than an hour, and twice that
	if _, wait = r.dials(); wait < time.Hour || wait > 2*time.Hour {
		t.Errorf("%v", wait)
	}
}

func TestOneThatDoesNotReadGetsNoMorePongs(t *testing.T) {
	l := newRig(t, Options{}).ready()
	sent := len(l.sent)
	l.hears(typePing, make([]byte, 64)...)
	l.unsent = 1 << 20
	l.hears(typePing, make([]byte, 64)...)
	if len(l.sent) != sent+1 {
		t.Errorf("%d pongs", len(l.sent)-sent)
	}
	l.hears(typePing, make([]byte, 65)...)
	if !l.closed {
		t.Error("a ping of 65 bytes makes no sense")
	}
}

func TestWhatMayHaveRunIsNotSentAgainByItself(t *testing.T) {
	r := newRig(t, Options{})
	l := r.ready()
	x := Actor{ID: "x"}
	plain, twice := r.Start(x, []byte("a")), r.Start(x, []byte("b"), Idempotent())
	if s := status(t, r.Start(x, nil)); s != Overloaded {
		t.Errorf("%v", s)
	}
	r.closed(l, "gone")
	if s := status(t, plain); s != Unknown {
		t.Errorf("%v", s)
	}
	never := r.Start(x, []byte("c"))
	l, _ = r.dials()
	l.greets()
	if len(l.sent) != 3 || !bytes.HasSuffix(l.sent[1], []byte("b")) || !bytes.HasSuffix(l.sent[2], []byte("c")) {
		t.Fatalf("%q", l.sent)
	}
	l.answers(2, OK, 'B')
	l.answers(3, 99)
	if answer, err := twice.Wait(context.Background()); err != nil || string(answer) != "B" {
		t.Errorf("%q %v", answer, err)
	}
	if s := status(t, never); s != Unknown {
		t.Errorf("%v", s)
	}
	late := r.Start(x, nil)
	for !late.isDone() {
		r.pass()
	}
	if s := status(t, late); s != Timeout {
		t.Errorf("%v", s)
	}
}

func TestASessionThatIsKeptRunsEachOnce(t *testing.T) {
	pushes := make(chan Push, 4)
	r := newRig(t, Options{OnPush: func(p Push) { pushes <- p }})
	me := Actor{7, "me"}
	kept := append(make([]byte, 24), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x75, 0x30)
	bound := r.Bind(me)
	l := r.ready()
	if l.sent[1][0] != typeBind || l.sent[1][head+4] != flagKeep {
		t.Fatalf("%x", l.sent[1])
	}
	l.answers(nameBind, OK, kept...)
	if !bound.isDone() || bound.err != nil {
		t.Fatal(bound.err)
	}
	asked := r.Start(me, []byte("a"))
	r.closed(l, "gone")
	l, _ = r.dials()
	l.greets()
	if l.sent[1][0] != typeResume {
		t.Fatalf("%x", l.sent[1])
	}
	l.answers(nameBind, OK, kept...)
	if l.sent[2][head+4] != flagAgain {
		t.Fatalf("%x", l.sent[2])
	}
	for _, sequence := range []byte{1, 1, 3} {
		l.hears(typePush, 0, 0, 0, 0, 0, 0, 0, sequence, 'h')
	}
	for _, want := range []Push{{[]byte("h"), 1, 0}, {[]byte("h"), 3, 1}} {
		if got := <-pushes; string(got.Payload) != "h" || got.Sequence != want.Sequence || got.Lost != want.Lost {
			t.Errorf("%v", got)
		}
	}
	l.answers(1, OK, 'A')
	if string(asked.payload) != "A" {
		t.Errorf("%q %v", asked.payload, asked.err)
	}
	r.pass()
	if want := page(t)[typeAck]; l.sent[3][0] != want[0] || l.sent[3][head+7] != 3 || l.sent[3][head+11] != 2 {
		t.Errorf("%x", l.sent[3])
	}
	l.hears(typeKick, 0, 0, 3, 0xe8, 'x')
	var kicked *Kicked
	if _, err := r.Request(context.Background(), me, nil); !errors.As(err, &kicked) {
		t.Errorf("%v", err)
	}
}

func TestAHeartbeatOfNoGatewayIsASecond(t *testing.T) {
	r := newRig(t, Options{})
	r.mu.Lock()
	r.core.connect()
	r.mu.Unlock()
	l, _ := r.dials()
	r.opened(l)
	l.hears(typeHelloAck, append([]byte{1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0}, make([]byte, 12)...)...)
	begun := r.clock.time
	for len(l.sent) < 2 {
		r.pass()
	}
	if quiet := r.clock.time.Sub(begun); quiet < time.Second || l.sent[1][0] != typePing || l.closed {
		t.Errorf("%v %x", quiet, l.sent)
	}
}

func TestNamesEndBeforeThoseOfTheSession(t *testing.T) {
	r := newRig(t, Options{})
	l := r.ready()
	x := Actor{ID: "x"}
	r.core.lastName = nameMax - 1
	last := r.Start(x, nil)
	l.answers(nameMax, OK, 'L')
	if string(last.payload) != "L" {
		t.Errorf("%q %v", last.payload, last.err)
	}
	if s := status(t, r.Start(x, nil)); s != Overloaded {
		t.Errorf("%v", s)
	}
	r.Close()
	l = r.ready()
	if err := r.Notify(x, nil); err != nil || l.sent[1][head+3] != 1 {
		t.Errorf("%v %x", err, l.sent)
	}
}

func TestABindThatIsAnsweredTwiceLeavesNoTimer(t *testing.T) {
	r := newRig(t, Options{})
	r.Bind(Actor{ID: "x"})
	l := r.ready()
	l.answers(nameBind, Moving)
	l.answers(nameBind, OK)
	left := r.Unbind()
	l.answers(nameUnbind, OK)
	r.pass() // it binds again
	l.answers(nameBind, OK)
	l.answers(nameUnbind, OK)
	if !left.isDone() || len(l.sent) != 4 || l.sent[2][0] != typeBind || l.sent[3][0] != typeUnbind {
		t.Errorf("%x", l.sent)
	}
}

func TestWhatIsWrongIsRefusedAtOnce(t *testing.T) {
	for _, gateway := range []string{"", "a", "a:", "ws://a:1", "tcp://", "%:1"} {
		if _, err := New(Options{Gateways: []string{gateway}}); err == nil {
			t.Errorf("%q is taken", gateway)
		}
	}
	r := newRig(t, Options{})
	r.ready()
	if err := r.Notify(Actor{ID: ""}, nil); err == nil {
		t.Error("an id of no bytes is taken")
	}
	if err := r.Notify(Actor{ID: "x"}, nil, Deadline(-1)); err == nil {
		t.Error("a deadline that is over is taken")
	}
	if s := status(t, r.Start(Actor{ID: "x"}, make([]byte, 65536))); s != BadRequest {
		t.Errorf("%v", s)
	}
}
