// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Ref names an actor: its kind's number (Host.Kind) and its id of 1 to 255 bytes.
type Ref struct {
	Kind uint16
	ID   string
}

// A Message is one request. Its bytes are the receiver's own.
type Message struct {
	Payload    []byte   // empty if there are arguments
	Arguments  [][]byte // of a command: its name in upper case, the key, the rest
	NoReply    bool     // nobody waits for an answer
	Idempotent bool     // its sender allows it to run again after a crash
	From       Ref      // the actor that sent it; an empty ID: a client
}

// An Alarm is a timer that is in the store, by its name.
type Alarm struct {
	Name    string // 1 to 255 bytes
	Payload []byte // up to 64 KiB
	Due     time.Time
	Every   time.Duration // 0: once
}

// A SessionEvent says what became of a client.
type SessionEvent int

// The events of a session.
const (
	Bound    SessionEvent = 1 // a client has come
	Replaced SessionEvent = 2 // a client has come in the place of a former one
	Resumed  SessionEvent = 3 // the former client is still there (Why 0: the actor was started afresh), or back (1)
	Lost     SessionEvent = 4 // the client has gone
)

// A Session is an event of a client that is bound to the actor.
type Session struct {
	Event  SessionEvent
	Why    int    // of Lost: 1 closed, 2 kicked, 3 too slow, 4 its gateway is gone, 5 rebound
	Number uint64 // for PushOne and KickOne
	Former uint64 // of Replaced: the session that is over
}

// Why says why an actor saves or ends.
type Why int

// The reasons. Fenced: keep nothing, write nothing, for the id lives elsewhere.
const (
	Moved    Why = 0
	Stops    Why = 1
	Fenced   Why = 2
	Idle     Why = 3
	Broken   Why = 4
	Periodic Why = 5
)

func (w Why) String() string {
	words := [...]string{"moved", "stops", "fenced", "idle", "broken", "periodic"}
	if w < 0 || int(w) >= len(words) {
		return "?"
	}
	return words[w]
}

// A Receiver is the code of one actor; a kind's New makes it. The host calls its methods one at a
// time, each in a goroutine of its own, so a method may wait. What else the actor can do it says by
// the other interfaces below: they are looked up once, when the kind is registered.
type Receiver interface {
	// Receive answers a request. An error is answered as an error; a panic breaks the actor.
	Receive(t *Turn, m Message) (Value, error)
}

// An Activator is told when its actor comes to life. `state` is what Handoff wrote at the former
// owner, nil if it starts afresh. An error: it could not be made, and is tried again later.
type Activator interface {
	Activate(t *Turn, state []byte) error
}

// A Ticker gets the timers that Turn.StartTimer started.
type Ticker interface {
	Tick(t *Turn, timer uint64)
}

// An Alarmer gets the alarms of a durable actor. An error: what it has changed since the last step is
// undone, and the alarm comes again after a back-off.
type Alarmer interface {
	Alarm(t *Turn, a Alarm) error
}

// A SessionTaker takes clients. An error turns the client away.
type SessionTaker interface {
	Session(t *Turn, s Session) error
}

// A Flusher saves what the actor has, by writes that are conditional on the fence.
type Flusher interface {
	Flush(t *Turn, why Why) error
}

// A Mover writes its state for the next owner. ErrBusy: not now; ErrCold: there is none.
type Mover interface {
	Handoff(t *Turn) ([]byte, error)
}

// A Resumer is told that the actor stays after all.
type Resumer interface {
	Resume()
}

// A Deactivator is told that this life is over. Nothing can be said any more.
type Deactivator interface {
	Deactivate(why Why)
}

// What Handoff may return.
var (
	ErrBusy = errors.New("not now")
	ErrCold = errors.New("no state")
)

// An Error is an answer that is an error: the first word of its text is a code in capitals.
type Error string

func (e Error) Error() string { return string(e) }

// errorText is how an error is told: an Error as it is, and so a CallError, whose text begins with
// a code of its own; others behind "ERR".
func errorText(err error) string {
	var own Error
	text := "ERR " + err.Error()
	var called *CallError
	if errors.As(err, &own) {
		text = string(own)
	} else if errors.As(err, &called) {
		text = called.Text
	}
	return strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ").Replace(text)
}

// Status is how a call ended (enum rh_result).
type Status uint32

// The statuses of calls.
const (
	StatusOK          Status = 0
	StatusInvalid     Status = 1  // it can't be made
	StatusTooBig      Status = 3  // likewise
	StatusFailed      Status = 4  // the actor answered with an error
	StatusUnknown     Status = 8  // it may have run, at most once
	StatusTimeout     Status = 9  // likewise
	StatusRejected    Status = 10 // it did not run, and won't; so the others
	StatusNoKind      Status = 11
	StatusOverloaded  Status = 12
	StatusQuarantined Status = 13
	StatusDeadlock    Status = 16
)

// A CallError is a call that was not answered, or answered by an error.
type CallError struct {
	Status Status
	Text   string
}

func (e *CallError) Error() string { return e.Text }

// A Value is an answer: Bytes, Text, Integer or Nil.
type Value interface{ put(b []byte) []byte }

// Bytes are an answer of bytes.
type Bytes []byte

// Text is an answer of one line.
type Text string

// Integer is an answer that is a number.
type Integer int64

// Nil is an answer of nothing.
type Nil struct{}

func (v Bytes) put(b []byte) []byte { return putWhole(b, 1, []byte(v)) }
func (v Text) put(b []byte) []byte  { return putWhole(b, 2, string(v)) }
func (v Integer) put(b []byte) []byte {
	zigzag := uint64(v)<<1 ^ uint64(v>>63)
	b = putTag(b, 3, wireVarint)
	for ; zigzag >= 0x80; zigzag >>= 7 {
		b = append(b, byte(zigzag)|0x80)
	}
	return append(b, byte(zigzag))
}
func (v Nil) put(b []byte) []byte { return putUint(b, 4, 1) }

// A kind, as it was registered.
type kind struct {
	name     string
	durable  bool
	number   uint16
	stateMax int
	make     func(a *Actor) Receiver
	alarms   bool
	sessions bool
	flush    bool
}

// A KindOption says more of a kind.
type KindOption func(k *kind)

// Durable says that the kind's actors have named values in the node's store.
func Durable() KindOption { return func(k *kind) { k.durable = true } }

// Register adds a kind to the host, before Run. `make` makes the code of one actor, T; what T
// implements of Alarmer, SessionTaker and Flusher is what the node's --kind must say.
//
//	host.Register(h, "player", func(a *host.Actor) *Player { return &Player{actor: a} }, host.Durable())
func Register[T Receiver](h *Host, name string, make func(a *Actor) T, options ...KindOption) {
	var code T
	k := &kind{name: name, make: func(a *Actor) Receiver { return make(a) }}
	_, k.alarms = any(code).(Alarmer)
	_, k.sessions = any(code).(SessionTaker)
	_, k.flush = any(code).(Flusher)
	for _, option := range options {
		option(k)
	}
	if k.durable && k.flush {
		panic(fmt.Sprintf("ringhold: the kind %s is durable, so it has no Flush", name))
	}
	if k.alarms && !k.durable {
		panic(fmt.Sprintf("ringhold: the kind %s has an Alarm, so it must be Durable", name))
	}
	h.kinds = append(h.kinds, k)
}

func millis(ms uint64) time.Time { return time.UnixMilli(int64(ms)) }

func duration(ms uint64) time.Duration { return time.Duration(ms) * time.Millisecond }
