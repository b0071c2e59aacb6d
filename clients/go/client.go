// SPDX-License-Identifier: Apache-2.0

// Package ringhold is a client at the gateways of a Ringhold fleet, for bots, tools and services
// written in Go. It needs nothing but the standard library.
//
//	c, err := ringhold.New(ringhold.Options{Gateways: []string{"tls://eu1.example:7000", "tls://eu2.example:7000"}})
//	defer c.Close()
//	err = c.Connect(ctx)
//	answer, err := c.Request(ctx, ringhold.Actor{Kind: 7, ID: "player-42"}, []byte("buy sword"))
//
// Lines drop, gateways stop and die: it dials again with jittered back-off, resumes its session
// where the gateway keeps one, and sends again what has no answer (docs/clients.md). A request ends
// once: with the answer, or with an *Error that says whether it may have run.
package ringhold

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"time"
)

// An Actor is an entity of the game.
type Actor struct {
	Kind uint16
	ID   string // 1 to 255 bytes
}

// Who the gateway says that we are.
type Who struct {
	Actor
	Expires time.Time // of the token
}

// A Push of the actor that we are bound to.
type Push struct {
	Payload  []byte
	Sequence uint64
	Lost     uint64 // so many before this one were lost
}

// Options of a client. Only Gateways is required.
type Options struct {
	Gateways []string    // HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT; tried in turn from one that is drawn
	Token    []byte      // shown to gateways that ask: a token, or what the game's login takes, up to 1024 bytes
	TLS      *tls.Config // of tls:// gateways; nil: the system's certificates

	RequestsMax   int           // requests and notifies without an answer at a time; 0: 1024
	OutMax        int           // bytes of all these; 0: 1 MiB
	PacketMax     int           // bytes of the largest packet that is taken; 0: 1 MiB and 64
	AnswerTimeout time.Duration // after which a request ends, answered or not; 0: 15 s
	GreetTimeout  time.Duration // for a connection to be made and greeted; 0: 10 s
	BackOffMin    time.Duration // of the first try after a failure, then doubled; 0: 200 ms
	BackOffMax    time.Duration // 0: 10 s

	// What happens. They are called one at a time, in order, in a goroutine of the client's own. While one waits, the client goes on,
	// but reads no more once 4 MiB of what happened wait for it: so none should wait for long.
	OnPush    func(Push)                             // a push came
	OnKnown   func(Who)                              // the gateway says who we are, where it asks for a token
	OnRebound func(Who)                              // our actor lets us go on as another one, which is to be asked from here on
	OnReady   func()                                 // ready to ask: also each time that it is back
	OnBound   func(fresh bool)                       // fresh: the actor begins a session with us; else ours goes on
	OnBegun   func()                                 // the actor was lost and begun afresh: what it knew of us is gone
	OnLost    func(why string)                       // the line is gone; it dials again
	OnGoaway  func(after time.Duration, text string) // the gateway stops; it goes to another one
	OnKicked  func(*Kicked)                          // sent away for good
	OnRefused func(*Error)                           // the bind of an earlier connection was refused in this one
}

// A Status says how a request ended.
type Status byte

// The statuses. One that is not here is told as Unknown.
const (
	OK Status = iota
	ActorFailed
	Unknown
	Timeout
	Moving
	Overloaded
	NoOwner
	Quarantined
	Rejected
	BadRequest
	Unauthorized
	RateLimited
)

var statusNames = [...]string{
	"OK", "ACTOR_FAILED", "UNKNOWN", "TIMEOUT", "MOVING", "OVERLOADED", "NO_OWNER", "QUARANTINED", "REJECTED", "BAD_REQUEST",
	"UNAUTHORIZED", "RATE_LIMITED",
}

// String returns the name that the protocol has for it.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", byte(s))
}

// An Error is of a request that has no good answer.
type Error struct {
	Status     Status
	Payload    []byte        // what the gateway or the actor says about it
	RetryAfter time.Duration // when asking again may do better; 0 = now or never
}

func (e *Error) Error() string {
	if len(e.Payload) == 0 {
		return "ringhold: " + e.Status.String()
	}
	return "ringhold: " + e.Status.String() + ": " + string(e.Payload)
}

// MayHaveRun is false if the request did not run and never will.
func (e *Error) MayHaveRun() bool {
	return e.Status == ActorFailed || e.Status == Unknown || e.Status == Timeout
}

// Kicked says that the gateway sent the client away for good (docs/protocol-client.md has the codes), or that it was closed (0).
type Kicked struct {
	Code uint32
	Text string
}

func (k *Kicked) Error() string {
	if k.Code == 0 {
		return "ringhold: " + k.Text
	}
	return fmt.Sprintf("ringhold: kicked with %d: %s", k.Code, k.Text)
}

// A Client of a fleet. Its methods may be called from any goroutine.
type Client struct {
	mu   sync.Mutex
	core core // under mu

	happened events
}

// New makes a client, which does nothing until Connect. Close it.
func New(options Options) (*Client, error) {
	o := options
	if len(o.Gateways) == 0 {
		return nil, errors.New("ringhold: a client has gateways to go to")
	}
	for _, gateway := range o.Gateways {
		if _, _, err := where(gateway); err != nil {
			return nil, err
		}
	}
	orNumber := func(n *int, usual int) {
		if *n == 0 {
			*n = usual
		}
	}
	orTime := func(t *time.Duration, usual time.Duration) {
		if *t == 0 {
			*t = usual
		}
	}
	orNumber(&o.RequestsMax, 1024)
	orNumber(&o.OutMax, 1<<20)
	orNumber(&o.PacketMax, 1<<20+64)
	orTime(&o.AnswerTimeout, 15*time.Second)
	orTime(&o.GreetTimeout, 10*time.Second)
	orTime(&o.BackOffMin, 200*time.Millisecond)
	orTime(&o.BackOffMax, 10*time.Second)
	return newClient(o, realTime{}, rand.Float64), nil
}

func newClient(o Options, clock clock, draw func() float64) *Client {
	c := &Client{}
	c.happened.changed.L = &c.happened.mu
	c.core = core{client: c, options: o, clock: clock, draw: draw, dial: dialTCP, token: o.Token}
	c.core.begin()
	return c
}

// Connect goes and stays connected. It returns when the first gateway takes us, or when ctx ends, and then it still goes on; a
// *Kicked: none ever will.
func (c *Client) Connect(ctx context.Context) error {
	c.mu.Lock()
	connecting := c.core.connect()
	c.mu.Unlock()
	_, err := connecting.Wait(ctx)
	return err
}

// A RequestOption says how a request is asked.
type RequestOption func(*requestOptions)

type requestOptions struct {
	idempotent bool
	deadline   time.Duration
}

// Idempotent: it may run more than once, and is sent again after anything.
func Idempotent() RequestOption { return func(o *requestOptions) { o.idempotent = true } }

// Deadline for the gateway to answer in; without it the gateway has its own.
func Deadline(d time.Duration) RequestOption { return func(o *requestOptions) { o.deadline = d } }

// A Pending is a request that has no answer yet.
type Pending struct {
	done    chan struct{}
	payload []byte
	err     error
}

// Done is closed when it has ended.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait for the answer. If ctx ends first, the request is still under way, and its error is ctx's.
func (p *Pending) Wait(ctx context.Context) ([]byte, error) {
	select {
	case <-p.done:
		return p.payload, p.err
	default:
	}
	select {
	case <-p.done:
		return p.payload, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func newPending() *Pending { return &Pending{done: make(chan struct{})} }

func (p *Pending) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end it, once; nil has nobody who waits.
func (p *Pending) end(payload []byte, err error) {
	if p != nil && !p.isDone() {
		p.payload, p.err = payload, err
		close(p.done)
	}
}

// Request asks an actor and waits for its answer, or an *Error. A deadline of ctx is told to the gateway.
func (c *Client) Request(ctx context.Context, a Actor, payload []byte, options ...RequestOption) ([]byte, error) {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			return nil, context.DeadlineExceeded
		}
		if left < time.Hour { // no gateway waits for so long
			options = append([]RequestOption{Deadline(left)}, options...)
		}
	}
	return c.Start(a, payload, options...).Wait(ctx)
}

// Start asks an actor, and waits for nothing. Requests to one actor run in the order of these calls.
func (c *Client) Start(a Actor, payload []byte, options ...RequestOption) *Pending {
	p := newPending()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.core.ask(typeRequest, a, payload, options, p); err != nil {
		p.end(nil, err)
	}
	return p
}

// Notify tells an actor something, in order with its requests; nobody says what became of it.
func (c *Client) Notify(a Actor, payload []byte, options ...RequestOption) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.ask(typeNotify, a, payload, options, nil)
}

// Bind us to this actor, in this connection and the next ones; wait for what is returned, or don't. Best called before Connect.
func (c *Client) Bind(a Actor) *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.bind(a)
}

// Unbind ends that.
func (c *Client) Unbind() *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.unbind()
}

// SetToken has this one shown from the next connection on.
func (c *Client) SetToken(token []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.core.token, c.core.given = token, nil
}

// Gateway returns the one that it is at, or goes to.
func (c *Client) Gateway() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.gateway()
}

// Close hangs up. What has no answer ends as Unknown (it was sent) or Moving (it never ran). Callbacks that wait for their turn are
// still called; Connect begins anew.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.state != stateEnded {
		c.core.end(&Kicked{Text: "the client was closed"}, false)
	}
}

// events are callbacks that wait for their turn; a goroutine runs them while there are any.
type events struct {
	mu      sync.Mutex
	changed sync.Cond
	queue   []event
	size    int
	running bool
}

type event struct {
	run  func()
	size int
}

const eventsMax = 4 << 20

func (e *events) put(run func(), size int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, event{run, size + 64})
	e.size += size + 64
	if !e.running {
		e.running = true
		go e.runAll()
	}
}

// wait until there is room.
func (e *events) wait() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.size > eventsMax {
		e.changed.Wait()
	}
}

func (e *events) runAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) > 0 {
		next := e.queue[0]
		e.queue = e.queue[1:]
		e.mu.Unlock()
		next.run()
		e.mu.Lock()
		e.size -= next.size
		e.changed.Broadcast()
	}
	e.queue, e.running = nil, false
}
