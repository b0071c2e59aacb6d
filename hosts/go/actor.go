// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An Actor is one life of an actor at this host. Its methods may be called in the turns of its own
// code only; they say what is so at the moment, and change nothing.
type Actor struct {
	link       *link
	kind       *kind
	kindNumber uint16
	id         string
	fence      uint64
	activation uint64
	code       Receiver
	ctx        context.Context // ends with this life
	cancel     context.CancelFunc

	turns  sync.Mutex // held by the turn that runs, and by what ends the actor
	values map[string][]byte
	alarms map[string]Alarm

	mu       sync.Mutex // of the next two
	calls    map[uint64]*Pending
	lastCall uint64
}

// ID returns the actor's id.
func (a *Actor) ID() string { return a.id }

// Ref returns the actor's name.
func (a *Actor) Ref() Ref { return Ref{a.kindNumber, a.id} }

// Fence returns the fencing token, which grows from owner to owner: for a store of your own.
func (a *Actor) Fence() uint64 { return a.fence }

// Get returns a value of a durable actor, which belongs to the actor; false: there is none.
func (a *Actor) Get(key string) ([]byte, bool) {
	value, ok := a.values[key]
	return value, ok
}

// Keys returns the keys of the actor's values that begin with `prefix`, in order.
func (a *Actor) Keys(prefix string) []string {
	var keys []string
	for key := range a.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

// Alarm returns an alarm that is set.
func (a *Actor) Alarm(name string) (Alarm, bool) {
	alarm, ok := a.alarms[name]
	return alarm, ok
}

// ---- life

func (l *link) activate(ctx context.Context, body []byte) error {
	a := &Actor{link: l, values: map[string][]byte{}, alarms: map[string]Alarm{}}
	state, has, ok := readActivate(body, a)
	if a.kind = l.kinds[a.kindNumber]; !ok || a.kind == nil {
		return errMalformed
	}
	if has && state == nil {
		state = []byte{}
	}
	a.ctx, a.cancel = context.WithCancel(ctx)
	l.mu.Lock()
	unmade := l.unmade
	l.unmade = nil
	l.mu.Unlock()
	for _, activation := range unmade {
		delete(l.actors, activation)
	}
	l.actors[a.activation] = a
	a.begin(body, func(t *Turn) done {
		a.code = a.kind.make(a)
		if code, can := a.code.(Activator); can {
			if err := code.Activate(t, state); err != nil {
				return done{result: resultFailed}
			}
		}
		return done{}
	})
	return nil
}

// end ends this life: turns that wait are told by their context, and the code when they are through.
func (a *Actor) end(why Why) {
	a.cancel()
	go func() {
		a.turns.Lock()
		defer a.turns.Unlock()
		if code, can := a.code.(Deactivator); can {
			defer a.recovered("Deactivate")
			code.Deactivate(why)
		}
	}()
}

func (a *Actor) resume() {
	code, can := a.code.(Resumer)
	if !can {
		return
	}
	go func() {
		a.turns.Lock()
		defer a.turns.Unlock()
		defer a.recovered("Resume")
		code.Resume()
	}()
}

func (a *Actor) recovered(where string) {
	if problem := recover(); problem != nil {
		a.link.host.options.Log("ringhold: %s of %s %q: %v\n%s", where, a.kind.name, a.id, problem, debug.Stack())
	}
}

// ---- turns

// Results of a turn.
const (
	resultOK     = 0
	resultFailed = 1
	resultBusy   = 2
	resultCold   = 3
)

// A done is how a turn ended.
type done struct {
	result uint64
	reply  []byte // a Value, packed
	state  []byte
	fail   string
}

// A job is a turn that has come.
type job struct {
	turn *Turn
	run  func(t *Turn) done
}

// Goroutines that have run a turn wait for the next, up to so many: their stacks have grown already.
const idleMax = 256

var (
	jobs = make(chan job)
	idle atomic.Int32
)

// begin runs a turn in a goroutine that has nothing else to do.
func (a *Actor) begin(body []byte, run func(t *Turn) done) {
	j := job{&Turn{Context: a.ctx, Actor: a, number: readUint(body, 2)}, run}
	select {
	case jobs <- j:
	default:
		go work(j)
	}
}

func work(j job) {
	for {
		j.turn.Actor.do(j)
		if idle.Add(1) > idleMax {
			idle.Add(-1)
			return
		}
		j = <-jobs
		idle.Add(-1)
	}
}

func (a *Actor) do(j job) {
	a.turns.Lock()
	defer a.turns.Unlock()
	j.turn.finish(a.guarded(j.turn, j.run))
}

// guarded runs the code; a panic breaks the actor.
func (a *Actor) guarded(t *Turn, run func(t *Turn) done) (end done) {
	defer func() {
		if problem := recover(); problem != nil {
			a.link.host.options.Log("ringhold: %s %q: %v\n%s", a.kind.name, a.id, problem, debug.Stack())
			end = done{result: resultFailed, fail: errorText(fmt.Errorf("the actor panicked: %v", problem))}
		}
	}()
	return run(t)
}

func (a *Actor) receive(t *Turn, m Message) done {
	value, err := a.code.Receive(t, m)
	if err != nil {
		return done{reply: putWhole(nil, 5, errorText(err))}
	}
	if value == nil {
		return done{}
	}
	return done{reply: value.put(nil)}
}

func (a *Actor) tick(t *Turn, timer uint64) done {
	if code, can := a.code.(Ticker); can {
		code.Tick(t, timer)
	}
	return done{}
}

func (a *Actor) ring(t *Turn, alarm Alarm) done {
	code, can := a.code.(Alarmer)
	if !can || code.Alarm(t, alarm) != nil {
		t.undo()
		return done{result: resultFailed}
	}
	if held, is := a.alarms[alarm.Name]; is && alarm.Every == 0 && held.Due.Equal(alarm.Due) {
		delete(a.alarms, alarm.Name) // unless it was set anew
	}
	return done{}
}

func (a *Actor) session(t *Turn, s Session) done {
	if code, can := a.code.(SessionTaker); !can || code.Session(t, s) != nil {
		return done{result: resultFailed}
	}
	return done{}
}

func (a *Actor) flush(t *Turn, why Why) done {
	if code, can := a.code.(Flusher); !can || code.Flush(t, why) != nil {
		return done{result: resultFailed}
	}
	return done{}
}

func (a *Actor) handoff(t *Turn) done {
	code, can := a.code.(Mover)
	if !can {
		return done{result: resultCold}
	}
	state, err := code.Handoff(t)
	if errors.Is(err, ErrBusy) {
		return done{result: resultBusy}
	}
	if err != nil {
		return done{result: resultCold}
	}
	return done{state: state}
}

// A change of a durable actor, as it was before.
type change struct {
	undo func()
}

// A Turn is what an actor does for one message, timer, alarm or the like. It is a context, which ends
// when this life of the actor is over. What a turn does is said to the node when the turn ends, or
// when it waits (Pending.Wait, Commit): of a durable actor all until then is one commit.
//
// Use it in the goroutine that got it, or one after the other.
type Turn struct {
	context.Context
	*Actor
	number  uint64
	effects []byte
	changes []change
	over    bool
}

func (t *Turn) effect(field int, body []byte) {
	if t.over {
		panic("ringhold: the turn is over")
	}
	t.effects = putWhole(t.effects, 3, putWhole(nil, field, body))
}

// step is a Step of this turn, without its end.
func (t *Turn) step() []byte {
	step := make([]byte, 0, 32+len(t.effects))
	step = putUint(step, 1, t.activation)
	step = putUint(step, 2, t.number)
	step = append(step, t.effects...)
	t.effects = t.effects[:0]
	t.changes = t.changes[:0]
	return step
}

func (t *Turn) finish(end done) {
	t.over = true
	if t.Err() != nil {
		return // nobody listens
	}
	body := putUint(nil, 1, end.result)
	if end.reply != nil {
		body = putWhole(body, 2, end.reply)
	}
	body = putData(body, 3, end.state)
	body = putData(body, 4, end.fail)
	step := putWhole(t.step(), 4, body)
	if t.number == 1 && end.result != resultOK {
		t.cancel()
		t.link.mu.Lock()
		t.link.unmade = append(t.link.unmade, t.activation)
		t.link.mu.Unlock()
	}
	t.link.say(putWhole(nil, 3, step))
}

// Commit says what the turn has done so far: of a durable actor it is saved, in order with what else
// the turn does, and stays though the turn fails later.
func (t *Turn) Commit() {
	if len(t.effects) > 0 && t.Err() == nil {
		t.link.say(putWhole(nil, 3, t.step()))
	}
}

// ---- other actors

// Named returns the name of an actor of a kind that this host serves. It panics if it serves none of
// that name.
func (t *Turn) Named(kind, id string) Ref {
	number, ok := t.link.host.Kind(kind)
	if !ok {
		panic("ringhold: this host has no kind " + kind)
	}
	return Ref{number, id}
}

// A CallOption says more of a call.
type CallOption func(c *callOptions)

type callOptions struct {
	timeout    time.Duration
	idempotent bool
}

// Within bounds how long a call may take: 1 ms to 60 s, 5 s if it is not said.
func Within(timeout time.Duration) CallOption {
	return func(c *callOptions) { c.timeout = timeout }
}

// Idempotent allows a call to run again after a crash.
func Idempotent() CallOption { return func(c *callOptions) { c.idempotent = true } }

// A Pending is a call that goes on.
type Pending struct {
	turn   *Turn
	answer chan struct{}
	status Status
	data   []byte
}

// Start begins a call and goes on: the node makes it when the turn waits or ends; calls of one turn may
// go on side by side.
func (t *Turn) Start(to Ref, payload []byte, options ...CallOption) *Pending {
	with := callOptions{timeout: 5 * time.Second}
	for _, option := range options {
		option(&with)
	}
	p := &Pending{turn: t, answer: make(chan struct{})}
	t.mu.Lock()
	t.lastCall++
	number := t.lastCall
	if t.calls == nil {
		t.calls = map[uint64]*Pending{}
	}
	t.calls[number] = p
	t.mu.Unlock()
	call := putUint(nil, 1, number)
	call = putUint(call, 2, uint64(to.Kind))
	call = putData(call, 3, to.ID)
	call = putData(call, 4, payload)
	call = putUint(call, 5, uint64(with.timeout.Milliseconds()))
	call = putBool(call, 6, with.idempotent)
	t.effect(1, call)
	return p
}

// Wait waits for the answer. The error is a *CallError, or the context's: this life is over.
func (p *Pending) Wait() ([]byte, error) {
	p.turn.Commit()
	select {
	case <-p.answer:
	case <-p.turn.Done():
		return nil, p.turn.Err()
	}
	if p.status != StatusOK {
		return nil, &CallError{Status: p.status, Text: string(p.data)}
	}
	return p.data, nil
}

// Call asks another actor, and waits for the answer: Start, then Wait.
func (t *Turn) Call(to Ref, payload []byte, options ...CallOption) ([]byte, error) {
	return t.Start(to, payload, options...).Wait()
}

// answer takes the answer of a call.
func (a *Actor) answer(call uint64, status Status, data []byte) {
	a.mu.Lock()
	p := a.calls[call]
	delete(a.calls, call)
	a.mu.Unlock()
	if p != nil {
		p.status, p.data = status, data
		close(p.answer)
	}
}

func sendTo(to Ref, payload []byte) []byte {
	return putData(putData(putUint(nil, 1, uint64(to.Kind)), 2, to.ID), 3, payload)
}

// Send sends a message that nobody answers: at most once, in order with the calls to the same actor.
func (t *Turn) Send(to Ref, payload []byte) { t.effect(2, sendTo(to, payload)) }

// SendOnce sends a message of a durable actor that arrives exactly once, whatever dies.
func (t *Turn) SendOnce(to Ref, payload []byte) { t.effect(3, sendTo(to, payload)) }

// ---- clients

// Push sends bytes, up to 256 KiB, to all clients of the actor.
func (t *Turn) Push(payload []byte) { t.PushOne(0, payload) }

// PushOne sends bytes to one client, by Session.Number.
func (t *Turn) PushOne(session uint64, payload []byte) {
	t.effect(4, putData(putUint(nil, 1, session), 2, payload))
}

// PushIDs sends bytes to the clients of other actors of one kind: a room's.
func (t *Turn) PushIDs(kind uint16, ids []string, payload []byte) {
	if len(ids) == 0 {
		return
	}
	body := putUint(nil, 1, uint64(kind))
	for _, id := range ids {
		body = putWhole(body, 2, id)
	}
	t.effect(5, putData(body, 3, payload))
}

// Kick ends the connection of a client (0: of all), with a code of 1000 or more.
func (t *Turn) Kick(session uint64, code uint32, text string) {
	t.effect(6, putData(putUint(putUint(nil, 1, session), 2, uint64(code)), 3, text))
}

// Rebind lets a client (0: all) go on as another actor.
func (t *Turn) Rebind(session uint64, to Ref) {
	t.effect(7, putData(putUint(putUint(nil, 1, session), 2, uint64(to.Kind)), 3, to.ID))
}

// ---- values and alarms of a durable actor

func (t *Turn) keepValue(key string) {
	values := t.values
	before, had := values[key]
	t.changes = append(t.changes, change{func() {
		if had {
			values[key] = before
		} else {
			delete(values, key)
		}
	}})
}

func (t *Turn) keepAlarm(name string) {
	alarms := t.alarms
	before, had := alarms[name]
	t.changes = append(t.changes, change{func() {
		if had {
			alarms[name] = before
		} else {
			delete(alarms, name)
		}
	}})
}

// Put sets a value, of up to 1 MiB, by a key of 1 to 255 bytes. The actor keeps the slice.
func (t *Turn) Put(key string, value []byte) {
	t.keepValue(key)
	t.values[key] = value
	t.effect(8, putData(putData(nil, 1, key), 2, value))
}

// Delete deletes a value, if there is one.
func (t *Turn) Delete(key string) {
	t.keepValue(key)
	delete(t.values, key)
	t.effect(9, putData(nil, 1, key))
}

func (t *Turn) undo() {
	for i := len(t.changes) - 1; i >= 0; i-- {
		t.changes[i].undo()
	}
	t.changes = t.changes[:0]
}

// Undo takes back what was changed since the turn began, or waited: for example before it answers an
// error.
func (t *Turn) Undo() {
	if len(t.changes) > 0 {
		t.undo()
		t.effect(10, nil)
	}
}

// SetAlarm sets an alarm, instead of the one that has its name.
func (t *Turn) SetAlarm(alarm Alarm) {
	t.keepAlarm(alarm.Name)
	alarm.Due = time.UnixMilli(alarm.Due.UnixMilli())
	t.alarms[alarm.Name] = alarm
	body := putData(nil, 1, alarm.Name)
	body = putUint(body, 2, uint64(alarm.Due.UnixMilli()))
	body = putUint(body, 3, uint64(alarm.Every.Milliseconds()))
	t.effect(11, putData(body, 4, alarm.Payload))
}

// CancelAlarm cancels an alarm, if there is one.
func (t *Turn) CancelAlarm(name string) {
	t.keepAlarm(name)
	delete(t.alarms, name)
	t.effect(12, putData(nil, 1, name))
}

// ---- timers, and the end

// StartTimer has Tick called after `after`, and then every `every` unless that is 0, instead of the
// timer with that number. It ends with this life.
func (t *Turn) StartTimer(number uint64, after, every time.Duration) {
	body := putUint(nil, 1, number)
	body = putUint(body, 2, uint64(after.Milliseconds()))
	t.effect(13, putUint(body, 3, uint64(every.Milliseconds())))
}

// StopTimer stops a timer, if it runs.
func (t *Turn) StopTimer(number uint64) { t.effect(14, putUint(nil, 1, number)) }

// FlushSoon asks for a Flush.
func (t *Turn) FlushSoon() { t.effect(15, nil) }

// Passivate ends the actor when this turn is done.
func (t *Turn) Passivate() { t.effect(16, nil) }
