// SPDX-License-Identifier: Apache-2.0

// Package host lets a Go program have the code of a Ringhold node's actors: it speaks the protocol
// of docs/host-protocol.md to the node beside it.
//
//	h := host.New(host.Options{Address: "unix:/run/ringhold/host.sock", Name: "game"})
//	host.Register(h, "player", newPlayer, host.Durable())
//	err := h.Run(ctx) // until ctx ends; it connects again when the node was away
package host

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	version      = 1
	frameMax     = 256 << 20
	frameFull    = 256 << 10
	backOffMin   = 100 * time.Millisecond
	backOffMax   = 2 * time.Second
	helloTimeout = 10 * time.Second
)

// Options of a host.
type Options struct {
	Address string // of the node's --host: "unix:PATH" or "HOST:PORT"; required
	Name    string // for the node's log: 1 to 63 plain characters; "" = "go"
	Token   string // the node's --host-token, which TCP needs

	// How much of its work the node may give at a time; 0: 4096 turns, 16 MiB.
	WindowTurns uint32
	WindowBytes uint64

	// Log gets a line for each connection that ends or can't be made, and each panic. nil: nothing.
	Log func(format string, arguments ...any)
}

// A Host has kinds, and serves them to one node.
type Host struct {
	options Options
	kinds   []*kind

	mu      sync.Mutex
	numbers map[string]uint16 // of the node's kinds, by name
}

// New makes a host. Register its kinds, then Run it.
func New(options Options) *Host {
	if options.Name == "" {
		options.Name = "go"
	}
	if options.Log == nil {
		options.Log = func(string, ...any) {}
	}
	return &Host{options: options}
}

// A Refused says why the node ended the connection: docs/host-protocol.md has the reasons.
type Refused struct {
	Reason int
	Text   string
}

func (r *Refused) Error() string { return "ringhold: the node says goodbye: " + r.Text }

// What no later try would change.
func (r *Refused) isFinal() bool {
	switch r.Reason {
	case 1, 2, 3, 5, 7, 8, 9: // malformed … never given: a mistake of ours, or of the options
		return true
	}
	return false
}

// Kind returns the node's number of a kind of this host; false before it is connected, and if there
// is no such kind.
func (h *Host) Kind(name string) (uint16, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	number, ok := h.numbers[name]
	return number, ok
}

// Run serves the node until ctx ends, which is no error. When the connection is lost, all actors end,
// and it connects again. A *Refused: the node does not want this host, and no later try would help.
func (h *Host) Run(ctx context.Context) error {
	backOff := backOffMin
	for {
		begun := time.Now()
		err := h.serve(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var refused *Refused
		if errors.As(err, &refused) && refused.isFinal() {
			return err
		}
		h.options.Log("ringhold: %v", err)
		if time.Since(begun) > backOffMax {
			backOff = backOffMin
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backOff):
		}
		if backOff *= 2; backOff > backOffMax {
			backOff = backOffMax
		}
	}
}

// ---- one connection

// A link is a connection to the node.
type link struct {
	host   *Host
	conn   net.Conn
	kinds  map[uint16]*kind
	actors map[uint64]*Actor // by activation; the reader's
	first  []byte            // what came behind the welcome

	mu     sync.Mutex
	wake   sync.Cond
	out    []byte   // messages for the next frame, each with its tag and size
	unmade []uint64 // activations that failed: the node says no more of them
	closed bool
}

func (h *Host) dial(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	if path := strings.TrimPrefix(h.options.Address, "unix:"); path != h.options.Address {
		return dialer.DialContext(ctx, "unix", path)
	}
	return dialer.DialContext(ctx, "tcp", h.options.Address)
}

func (h *Host) serve(ctx context.Context) error {
	conn, err := h.dial(ctx)
	if err != nil {
		return err
	}
	l := &link{host: h, conn: conn, kinds: map[uint16]*kind{}, actors: map[uint64]*Actor{}}
	l.wake.L = &l.mu
	ended, end := context.WithCancel(ctx)
	defer end()
	go func() {
		<-ended.Done()
		l.close()
	}()
	in := bufio.NewReaderSize(conn, 64<<10)
	if err := l.greet(in); err != nil {
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.write()
	}()
	err = l.read(ended, in)
	l.close()
	<-written
	for _, a := range l.actors {
		a.end(Broken) // the node has ended them as well
	}
	return err
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wake.Signal()
	_ = l.conn.Close()
}

// ---- hello

func (h *Host) hello() []byte {
	hello := putData(nil, 1, "ringhold")
	hello = putUint(hello, 2, version)
	hello = putUint(hello, 3, version)
	hello = putData(hello, 4, h.options.Name)
	hello = putData(hello, 5, h.options.Token)
	for _, k := range h.kinds {
		said := putData(nil, 1, k.name)
		said = putBool(said, 2, k.durable)
		said = putBool(said, 3, k.alarms)
		said = putBool(said, 4, k.sessions)
		said = putBool(said, 5, k.flush)
		hello = putWhole(hello, 6, said)
	}
	if h.options.WindowTurns != 0 || h.options.WindowBytes != 0 {
		turns, bytes := h.options.WindowTurns, h.options.WindowBytes
		if turns == 0 {
			turns = 4096
		}
		if bytes == 0 {
			bytes = 16 << 20
		}
		hello = putWhole(hello, 7, putUint(putUint(nil, 1, uint64(turns)), 2, bytes))
	}
	return hello
}

func (l *link) greet(in *bufio.Reader) error {
	_ = l.conn.SetDeadline(time.Now().Add(helloTimeout))
	hello := putWhole(make([]byte, 4), 1, putWhole(nil, 1, l.host.hello()))
	binary.BigEndian.PutUint32(hello, uint32(len(hello)-4))
	if _, err := l.conn.Write(hello); err != nil {
		return err
	}
	answer, err := readFrame(in, nil)
	if err != nil {
		return err
	}
	_ = l.conn.SetDeadline(time.Time{})
	frame := reader{rest: answer}
	if !frame.next() || frame.field != 1 {
		return errMalformed
	}
	says := reader{rest: frame.data}
	if !says.next() {
		return errMalformed
	}
	l.first = frame.rest // what waited for a host comes in the same frame
	switch says.field {
	case saysWelcome:
		return l.welcome(says.data)
	case saysGoodbye:
		return refusal(says.data)
	}
	return errMalformed
}

func (l *link) welcome(data []byte) error {
	numbers := map[string]uint16{}
	r := reader{rest: data}
	for r.next() {
		if r.field == 3 {
			numbers[string(readData(r.data, 1))] = uint16(readUint(r.data, 2))
		}
	}
	if r.bad || readUint(data, 1) != version {
		return errMalformed
	}
	for _, k := range l.host.kinds {
		number, ok := numbers[k.name]
		if !ok {
			return fmt.Errorf("ringhold: the node's welcome lacks the kind %s", k.name)
		}
		k.number = number
		l.kinds[number] = k
	}
	l.host.mu.Lock()
	l.host.numbers = numbers
	l.host.mu.Unlock()
	return nil
}

func refusal(data []byte) error {
	return &Refused{Reason: int(readUint(data, 1)), Text: string(readData(data, 2))}
}

// ---- reading

// readFrame reads a frame's message into `room`, or new memory. What comes first is not believed:
// memory is taken as bytes come.
func readFrame(in *bufio.Reader, room []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	left := int(binary.BigEndian.Uint32(size[:]))
	if left > frameMax {
		return nil, errMalformed
	}
	room = room[:0]
	for left > 0 {
		part := left
		if part > 1<<20 {
			part = 1 << 20
		}
		at := len(room)
		if cap(room)-at < part {
			room = append(room, make([]byte, part)...)
		} else {
			room = room[:at+part]
		}
		if _, err := io.ReadFull(in, room[at:]); err != nil {
			return nil, err
		}
		left -= part
	}
	return room, nil
}

func (l *link) read(ctx context.Context, in *bufio.Reader) error {
	var room []byte
	err := l.takeFrame(ctx, l.first)
	for l.first = nil; err == nil; err = l.takeFrame(ctx, room) {
		if cap(room) > 4<<20 {
			room = nil
		}
		if room, err = readFrame(in, room); err != nil {
			return err
		}
	}
	return err
}

// takeFrame takes what is in a frame, in order.
func (l *link) takeFrame(ctx context.Context, frame []byte) error {
	r := reader{rest: frame}
	for r.next() {
		if r.field != 1 {
			continue
		}
		if err := l.take(ctx, r.data); err != nil {
			return err
		}
	}
	if r.bad {
		return errMalformed
	}
	return nil
}

// take does what the node says.
func (l *link) take(ctx context.Context, data []byte) error {
	says := reader{rest: data}
	if !says.next() {
		return errMalformed
	}
	body := says.data
	switch says.field {
	case saysPing:
		l.say(putWhole(nil, 2, putUint(nil, 1, readUint(body, 1))))
		return nil
	case saysGoodbye:
		return refusal(body)
	case saysActivate:
		return l.activate(ctx, body)
	}
	a := l.actors[readUint(body, 1)]
	if a == nil {
		return nil // it failed to come to life
	}
	switch says.field {
	case saysMessage:
		m := readMessage(body)
		a.begin(body, func(t *Turn) done { return a.receive(t, m) })
	case saysTimer:
		timer := readUint(body, 3)
		a.begin(body, func(t *Turn) done { return a.tick(t, timer) })
	case saysAlarm:
		alarm := Alarm{Name: string(readData(body, 3)), Payload: clone(readData(body, 4)),
			Due: millis(readUint(body, 5)), Every: duration(readUint(body, 6))}
		a.begin(body, func(t *Turn) done { return a.ring(t, alarm) })
	case saysSession:
		s := readSession(body)
		a.begin(body, func(t *Turn) done { return a.session(t, s) })
	case saysFlush:
		why := Why(readUint(body, 3))
		a.begin(body, func(t *Turn) done { return a.flush(t, why) })
	case saysHandoff:
		a.begin(body, a.handoff)
	case saysAnswer:
		a.answer(readUint(body, 2), Status(readUint(body, 3)), clone(readData(body, 4)))
	case saysResume:
		a.resume()
	case saysDeactivate:
		delete(l.actors, a.activation)
		a.end(Why(readUint(body, 2)))
	default:
		return errMalformed
	}
	return nil
}

// ---- writing

// say adds a message (HostSays) to the next frame.
func (l *link) say(says []byte) {
	l.mu.Lock()
	first := len(l.out) == 0
	l.out = putWhole(l.out, 1, says)
	l.mu.Unlock()
	if first {
		l.wake.Signal()
	}
}

// write sends what is there, in one write, as long as the connection lasts.
func (l *link) write() {
	var spare, frames []byte
	for {
		l.mu.Lock()
		for len(l.out) == 0 && !l.closed {
			l.wake.Wait()
		}
		if l.closed {
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		runtime.Gosched() // other turns are about to end: what they say goes along
		l.mu.Lock()
		out := l.out
		l.out = spare[:0]
		l.mu.Unlock()
		frames = appendFrames(frames[:0], out)
		if _, err := l.conn.Write(frames); err != nil {
			l.close()
			return
		}
		spare = out
	}
}

// appendFrames cuts messages into frames of a sensible size.
func appendFrames(frames, out []byte) []byte {
	for len(out) > 0 {
		size := 0
		for size < len(out) && size < frameFull {
			body, head := binary.Uvarint(out[size+1:])
			size += 1 + head + int(body)
		}
		frames = binary.BigEndian.AppendUint32(frames, uint32(size))
		frames = append(frames, out[:size]...)
		out = out[size:]
	}
	return frames
}
