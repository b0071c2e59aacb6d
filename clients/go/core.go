// SPDX-License-Identifier: Apache-2.0

package ringhold

import (
	"encoding/binary"
	"errors"
	"time"
)

const (
	version     = 1
	sessionSize = 24
	begunSize   = sessionSize + 8 + 4
	nameBind    = 0x7fffffff
	nameUnbind  = 0x7ffffffe
	nameMax     = 0x7fffff00 // of a request
	ackAfter    = 500 * time.Millisecond
	ackCount    = 16
	ackSize     = 16 << 10
	againAfter  = 200 * time.Millisecond
	leaveWithin = 10 * time.Second
	owedQuiet   = 10 * time.Second
	bodyLeast   = 512 // less is no gateway's largest body
	pingMax     = 64
	retryMax    = time.Hour   // nobody is sent away for longer
	quietLeast  = time.Second // less is no gateway's heartbeat
	unreadMax   = 64 << 10    // of a gateway that does not read: it gets no more pongs and acks

	kickTooLarge = 101
)

// After these kicks it comes again: the way there took too long, or the gateway had no memory.
func isPassing(code uint32) bool { return code == 102 || code == 104 || code == 105 || code == 106 }

// What it showed to say who it is was no good.
func isOfLogin(code uint32) bool { return 107 <= code && code <= 113 }

// A clock, so that tests have one of their own.
type clock interface {
	now() time.Time
	after(d time.Duration, run func()) (stop func())
}

type realTime struct{}

func (realTime) now() time.Time { return time.Now() }

func (realTime) after(d time.Duration, run func()) func() {
	timer := time.AfterFunc(d, run)
	return func() { timer.Stop() }
}

// A line is how bytes get to a gateway. It calls the core's opened, received and lost in goroutines of its own.
type line interface {
	send(data []byte)
	unread() int // bytes that wait to go out
	close()
}

type state int

// idle -Connect-> waiting -its time has come-> dialling -> greeting -hello-ack, auth-ok, bound-> ready
// ready -goaway-> leaving -all is answered-> waiting, for another gateway
// any -the line drops-> waiting        any -kicked for good, Close()-> ended
const (
	stateIdle state = iota
	stateWaiting
	stateDialling
	stateGreeting
	stateReady
	stateLeaving
	stateEnded
)

// An entry was asked and has no answer. A notify has no pending, and is forgotten once it is sent.
type entry struct {
	name       uint32
	out        []byte
	pending    *Pending
	idempotent bool
	sent       bool
	here       bool // on this line
	former     bool // on an earlier one
	kept       bool // in a session that outlives its line
	stop       func()
	next, prev *entry
}

// mark it as sent again, or for the first time. What a line was given is never changed.
func (e *entry) mark(again bool) {
	flags := e.out[head+4] &^ flagAgain
	if again && e.sent && e.kept {
		flags |= flagAgain
	}
	if flags != e.out[head+4] {
		e.out = append([]byte(nil), e.out...)
		e.out[head+4] = flags
	}
}

type sessionState int

const (
	sessionWanted sessionState = iota
	sessionAsked
	sessionResuming
	sessionHeld
	sessionLeaving
)

// A session is what it is bound to, or wants to be.
type session struct {
	actor       Actor
	settle      *Pending
	state       sessionState
	plain       bool   // it ends with its line
	name        []byte // to resume it
	pushed      uint64
	wasHeld     bool
	waits       bool // for answers, to be asked
	unacked     int
	unackedSize int
	left        *Pending
}

// A core is the client's state, without sockets. All of it is under the client's lock.
type core struct {
	client  *Client
	options Options
	clock   clock
	draw    func() float64
	dial    func(c *Client, gateway string) line

	state       state
	turn        int // which gateway
	line        line
	in          cutter
	failures    int
	readyAt     time.Time
	bodyMax     int // of a packet, as the gateway said last
	toldMax     int // bytes of the largest notify that went out on this line
	timers      map[string]*timer
	retryAfter  time.Duration
	greeted     bool
	known       bool
	pinged      bool
	heartbeat   time.Duration
	heardAt     time.Time
	asked       map[uint32]*entry
	first, last *entry // of these, in the order in which they were asked
	size        int    // bytes of these
	lastName    uint32
	home        *Actor // what we were bound to before we were rebound
	session     *session
	attempts    int // resumes that were sent, of all sessions
	token       []byte
	given       []byte // a token, by the gateway that knew us last: shown instead of ours
	showedGiven bool
	connecting  *Pending
}

type timer struct{ stop func() }

func (c *core) begin() {
	c.turn = int(c.draw() * float64(len(c.options.Gateways)))
	c.bodyMax = bodyMax
	c.timers = map[string]*timer{}
	c.asked = map[uint32]*entry{}
}

func (c *core) gateway() string { return c.options.Gateways[c.turn%len(c.options.Gateways)] }

func (c *core) connect() *Pending {
	if c.state == stateReady || c.state == stateLeaving {
		p := newPending()
		p.end(nil, nil)
		return p
	}
	if c.connecting == nil {
		c.connecting = newPending()
	}
	p := c.connecting
	if c.state == stateIdle || c.state == stateEnded {
		if c.state == stateEnded {
			c.lastName = 0
		}
		c.failures = 0
		c.dialIn(0)
	}
	return p
}

func (c *core) tell(run func()) { c.client.happened.put(run, 0) }

// ---- asking

func (c *core) ask(kind byte, a Actor, payload []byte, options []RequestOption, p *Pending) error {
	o := requestOptions{}
	for _, option := range options {
		option(&o)
	}
	if c.state == stateEnded {
		return &Kicked{Text: "the client was closed"}
	}
	if len(a.ID) < 1 || len(a.ID) > 255 {
		return errors.New("ringhold: an id has 1 to 255 bytes")
	}
	if o.deadline < 0 || o.deadline/time.Millisecond > 1<<31 {
		return errors.New("ringhold: no such deadline")
	}
	ms := uint32((o.deadline + time.Millisecond - 1) / time.Millisecond)
	flags := byte(0)
	if o.idempotent {
		flags = flagIdempotent
	}
	size := head + 8 + len(a.ID) + len(payload)
	if ms > 0 {
		size += 4
	}
	if len(c.asked) >= c.options.RequestsMax || c.size+size > c.options.OutMax {
		return &Error{Status: Overloaded, Payload: []byte("too much is under way"), RetryAfter: againAfter}
	}
	if size > head+c.bodyMax {
		return &Error{Status: BadRequest, Payload: []byte(tooLarge)}
	}
	if c.lastName == nameMax {
		return &Error{Status: Overloaded, Payload: []byte("all names are used: close, and connect")}
	}
	c.lastName++
	e := &entry{name: c.lastName, out: asking(kind, c.lastName, a, flags, ms, payload), pending: p, idempotent: o.idempotent}
	c.asked[e.name] = e
	e.prev = c.last
	if c.last == nil {
		c.first = e
	} else {
		c.last.next = e
	}
	c.last = e
	c.size += size
	e.stop = c.clock.after(c.options.AnswerTimeout, func() {
		c.client.mu.Lock()
		defer c.client.mu.Unlock()
		if c.asked[e.name] == e {
			c.tooLate(e)
		}
	})
	c.flush()
	return nil
}

const tooLarge = "it is larger than the gateway takes"

func (c *core) tooLate(e *entry) {
	if e.sent {
		c.settle(e, Timeout, nil, 0)
	} else {
		c.settle(e, Moving, nil, 0)
	}
	c.bindIfItWaits()
	c.leaveIfDone()
}

func (c *core) forget(e *entry) {
	e.stop()
	if c.asked[e.name] != e {
		return
	}
	delete(c.asked, e.name)
	c.size -= len(e.out)
	if e.prev == nil {
		c.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		c.last = e.prev
	} else {
		e.next.prev = e.prev
	}
}

func (c *core) settle(e *entry, status Status, payload []byte, retryAfter time.Duration) {
	c.forget(e)
	if status == OK {
		e.pending.end(payload, nil)
	} else {
		e.pending.end(nil, &Error{Status: status, Payload: payload, RetryAfter: retryAfter})
	}
}

// all that is asked, oldest first; what `visit` does may end any of them.
func (c *core) each(visit func(*entry)) {
	all := make([]*entry, 0, len(c.asked))
	for e := c.first; e != nil; e = e.next {
		all = append(all, e)
	}
	for _, e := range all {
		visit(e)
	}
}

func (c *core) flush() {
	// Behind a bind that is not answered yet nothing is sent: it would run even if that is refused.
	s := c.session
	if c.state != stateReady || (s != nil && s.state != sessionHeld && s.state != sessionLeaving) {
		return
	}
	// What is not here yet is at the end, but for what a gateway that left gave back.
	first := c.last
	for first != nil && first.prev != nil && !first.prev.here {
		first = first.prev
	}
	for e := first; e != nil; {
		next := e.next
		if !e.here {
			e.here = true
			c.line.send(e.out)
			e.sent = true
			e.kept = s != nil && s.name != nil
			if e.pending == nil {
				if len(e.out) > c.toldMax {
					c.toldMax = len(e.out)
				}
				c.forget(e)
			}
		}
		e = next
	}
}

// least returns a name that all before are answered.
func (c *core) least() uint32 {
	for e := c.first; e != nil; e = e.next {
		if e.pending != nil {
			return e.name
		}
	}
	return c.lastName + 1
}

func (c *core) owes() bool {
	for e := c.first; e != nil; e = e.next {
		if e.here {
			return true
		}
	}
	return false
}

func (c *core) send(data []byte) {
	if c.line != nil {
		c.line.send(data)
	}
}

// Does the gateway read? One that floods us and does not must not fill our memory.
func (c *core) isRead() bool { return c.line != nil && c.line.unread() < unreadMax }

// ---- timers

func (c *core) after(name string, d time.Duration, run func()) {
	c.stop(name)
	t := &timer{}
	c.timers[name] = t
	t.stop = c.clock.after(d, func() {
		c.client.mu.Lock()
		defer c.client.mu.Unlock()
		if c.timers[name] == t {
			delete(c.timers, name)
			run()
		}
	})
}

func (c *core) stop(name string) {
	if t := c.timers[name]; t != nil {
		t.stop()
		delete(c.timers, name)
	}
}

func (c *core) jittered(least time.Duration) time.Duration {
	return least + time.Duration(c.draw()*float64(least))
}

func (c *core) backOff() time.Duration {
	wait := c.options.BackOffMin
	for i := 0; i < c.failures && wait < c.options.BackOffMax; i++ {
		wait *= 2
	}
	if wait > c.options.BackOffMax {
		wait = c.options.BackOffMax
	}
	return time.Duration(c.draw() * float64(wait))
}

// ---- the line

func (c *core) dialIn(d time.Duration) {
	c.state = stateWaiting
	c.after("dial", d, func() {
		c.state = stateDialling
		c.after("greet", c.options.GreetTimeout, func() { c.lost("the gateway did not greet in time") })
		c.in = cutter{most: c.options.PacketMax}
		c.line = c.dial(c.client, c.gateway())
	})
}

// opened: the line is there.
func (c *Client) opened(l line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.line == l {
		c.core.state = stateGreeting
		c.core.heardAt = c.core.clock.now()
		l.send(packet(typeHello, 0x52, 0x48, version, version, 0, 0))
	}
}

// received: bytes came. False: nobody hears this line any more.
func (c *Client) received(l line, data []byte) bool {
	c.happened.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.line != l {
		return false
	}
	c.core.heardAt = c.core.clock.now()
	c.core.pinged = false
	c.core.in.put(data)
	for c.core.line == l {
		kind, body, ok, err := c.core.in.next()
		if err == nil && ok {
			r := reader{body: body}
			if err = c.core.hear(kind, &r); err == nil && r.bad {
				err = errInvalid
			}
		}
		if err != nil && c.core.line == l {
			c.core.lost(err.Error())
		}
		if !ok {
			break
		}
	}
	return c.core.line == l
}

// closed: the line is gone.
func (c *Client) closed(l line, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.core.line == l {
		c.core.lost(why)
	}
}

func (c *core) dropLine() {
	for name := range c.timers {
		c.stop(name)
	}
	if c.line != nil {
		c.line.close()
	}
	c.line = nil
	c.greeted, c.known, c.pinged = false, false, false
}

func (c *core) lost(why string) {
	// A gateway that greets and hangs up is as good as none: only one that lasted ends a row.
	if (c.state == stateReady || c.state == stateLeaving) && c.clock.now().Sub(c.readyAt) >= c.options.BackOffMax {
		c.failures = 0
	}
	c.dropLine()
	if s := c.session; s != nil {
		s.plain = false // the next gateway may be a newer one
		if s.state == sessionLeaving || s.left != nil {
			c.unbound()
		} else {
			s.state = sessionWanted
		}
	}
	c.rewind(c.session != nil && c.session.name != nil)
	wait := c.backOff()
	if c.retryAfter > 0 {
		wait = c.jittered(c.retryAfter)
	}
	c.retryAfter = 0
	c.failures++
	c.turn++
	c.dialIn(wait)
	if f := c.options.OnLost; f != nil {
		c.tell(func() { f(why) })
	}
}

// rewind: from the oldest on, again: what never ran, what the session runs once, what may run twice.
func (c *core) rewind(keeps bool) {
	c.toldMax = 0
	c.each(func(e *entry) {
		e.here = false
		e.former = e.sent
		if e.sent && !(keeps && e.kept) && !e.idempotent {
			c.settle(e, Unknown, nil, 0)
		}
	})
}

// limit: the gateway says what it takes, and what is larger does not go out.
func (c *core) limit(most uint32) {
	c.bodyMax = bodyMax
	if most < bodyMax {
		c.bodyMax = int(most)
	}
	c.each(func(e *entry) {
		if len(e.out) <= head+c.bodyMax {
			return
		}
		if e.sent {
			c.settle(e, Unknown, []byte(tooLarge), 0)
		} else {
			c.settle(e, BadRequest, []byte(tooLarge), 0)
		}
	})
}

// blame what went out on this line and was too large: it is not sent again. False: nothing went out. A gateway reads in order and
// stops at the first that is too large: what is as large as any that went out was that one, or came behind it. If a notify was as
// large it is not sure; nor is it of what an earlier line sent.
func (c *core) blame() bool {
	most := 0
	for e := c.first; e != nil; e = e.next {
		if e.here && len(e.out) > most {
			most = len(e.out)
		}
	}
	c.each(func(e *entry) {
		if !e.here || len(e.out) != most {
			return
		}
		if e.former || most <= c.toldMax {
			c.settle(e, Unknown, []byte(tooLarge), 0)
		} else {
			c.settle(e, BadRequest, []byte(tooLarge), 0)
		}
	})
	return most > 0 || c.toldMax > 0
}

func (c *core) forgetSession() {
	for e := c.first; e != nil; e = e.next {
		e.kept = false
		e.mark(false)
	}
}

func (c *core) end(k *Kicked, tell bool) {
	c.dropLine()
	c.state = stateEnded
	c.each(func(e *entry) {
		if e.sent {
			c.settle(e, Unknown, nil, 0)
		} else {
			c.settle(e, Moving, nil, 0)
		}
	})
	if s := c.session; s != nil {
		c.session = nil
		s.settle.end(nil, k)
		s.left.end(nil, nil)
	}
	c.connecting.end(nil, k)
	c.connecting = nil
	if f := c.options.OnKicked; tell && f != nil {
		c.tell(func() { f(k) })
	}
}

// ---- greeting

func (c *core) hear(kind byte, r *reader) error {
	if !c.known && (kind == typeResponse || kind == typePush || kind == typeRebound || kind == typeBegun) {
		return errInvalid
	}
	switch kind {
	case typeHelloAck:
		return c.onHelloAck(r)
	case typeAuthOK:
		return c.onAuthOK(r)
	case typePing:
		return c.onPing(r)
	case typePong:
		return nil
	case typeKick:
		c.onKick(r)
	case typeGoaway:
		c.onGoaway(r)
	case typeResponse:
		c.onResponse(r)
	case typePush:
		c.onPush(r)
	case typeRebound:
		return c.onRebound(r)
	case typeBegun:
		c.onBegun(r)
	default:
		if kind < 128 {
			return errInvalid
		}
	}
	return nil
}

func (c *core) onHelloAck(r *reader) error {
	size := len(r.body)
	what, _, flags, heartbeat, largest := r.u8(), r.u8(), r.u16(), r.u32(), r.u32()
	if c.greeted || size < 24 || what != version || largest < bodyLeast {
		return errInvalid
	}
	c.greeted = true
	c.heartbeat = time.Duration(heartbeat) * time.Millisecond
	if c.heartbeat > 0 && c.heartbeat < quietLeast {
		c.heartbeat = quietLeast
	}
	c.limit(largest)
	c.listen()
	switch {
	case flags&1 == 0:
		c.goOn()
	case c.given != nil || len(c.token) > 0:
		c.showWho()
	default:
		c.end(&Kicked{106, "the gateway asks for a token"}, true)
	}
	return nil
}

func (c *core) showWho() {
	c.showedGiven = c.given != nil
	if !c.showedGiven && c.home != nil && c.session != nil {
		c.session.actor, c.session.name, c.home = *c.home, nil, nil // who shows what it had at first is who it was then
	}
	if c.showedGiven {
		c.send(packet(typeAuth, c.given...))
	} else {
		c.send(packet(typeAuth, c.token...))
	}
}

// takeWho takes an entity, and perhaps a token of it.
func (c *core) takeWho(r *reader) (Who, error) {
	expires, kind, size := r.u64(), r.u16(), r.u8()
	id := r.take(int(size))
	if r.bad || size == 0 {
		return Who{}, errInvalid
	}
	if len(r.body) >= 2 {
		if token := r.take(int(r.u16())); r.bad {
			return Who{}, errInvalid
		} else if len(token) > 0 {
			c.given = token
		}
	}
	return Who{Actor{kind, string(id)}, time.Unix(int64(expires&(1<<62-1)), 0)}, nil
}

func (c *core) onRebound(r *reader) error {
	c.given = nil
	who, err := c.takeWho(r)
	if err != nil {
		return err
	}
	if s := c.session; s != nil && s.state == sessionHeld {
		c.stop("ack")
		c.forgetSession()
		if c.home == nil {
			home := s.actor
			c.home = &home
		}
		c.session = &session{actor: who.Actor, settle: s.settle, waits: true}
	}
	if f := c.options.OnRebound; f != nil {
		c.tell(func() { f(who) })
	}
	c.bindIfItWaits()
	return nil
}

// bindIfItWaits: behind a bind, nothing of before is answered.
func (c *core) bindIfItWaits() {
	if s := c.session; s != nil && s.waits && c.state == stateReady && !c.owes() {
		c.askSession()
	}
}

func (c *core) onAuthOK(r *reader) error {
	if !c.greeted || c.known {
		return errInvalid
	}
	who, err := c.takeWho(r)
	if err != nil {
		return err
	}
	if f := c.options.OnKnown; f != nil {
		c.tell(func() { f(who) })
	}
	c.goOn()
	return nil
}

func (c *core) goOn() {
	c.known = true
	if c.session == nil {
		c.beReady()
	} else {
		c.askSession()
	}
}

func (c *core) beReady() {
	c.stop("greet")
	c.state = stateReady
	c.readyAt = c.clock.now()
	c.connecting.end(nil, nil)
	c.connecting = nil
	c.flush()
	if f := c.options.OnReady; f != nil {
		c.tell(f)
	}
}

// listen: ping when nothing comes, and leave one that does not answer.
func (c *core) listen() {
	if c.heartbeat == 0 {
		return
	}
	quiet := c.heartbeat
	if c.owes() && quiet > owedQuiet {
		quiet = owedQuiet
	}
	silent := c.clock.now().Sub(c.heardAt)
	if silent >= 2*quiet {
		c.lost("the gateway sends nothing")
		return
	}
	if silent >= quiet && !c.pinged {
		c.pinged = true
		c.send(packet(typePing))
	}
	if quiet > owedQuiet {
		quiet = owedQuiet
	}
	c.after("listen", quiet/2, c.listen)
}

func (c *core) onPing(r *reader) error {
	if len(r.body) > pingMax {
		return errInvalid
	}
	if c.isRead() {
		c.send(packet(typePong, r.body...))
	}
	return nil
}

func (c *core) onGoaway(r *reader) {
	after := time.Duration(r.u32()) * time.Millisecond
	if r.bad {
		return
	}
	if after > retryMax {
		after = retryMax
	}
	c.retryAfter = after
	text := string(r.body)
	if f := c.options.OnGoaway; f != nil {
		c.tell(func() { f(after, text) })
	}
	switch c.state {
	case stateReady:
		c.state = stateLeaving
		c.after("leave", leaveWithin, func() { c.lost("the gateway is stopping") })
		c.leaveIfDone()
	case stateGreeting:
		c.lost("the gateway accepts no clients now")
	}
}

func (c *core) leaveIfDone() {
	if c.state == stateLeaving && !c.owes() {
		c.lost("the gateway is stopping")
	}
}

func (c *core) onKick(r *reader) {
	k := &Kicked{r.u32(), string(r.body)}
	if r.bad {
		return
	}
	if isOfLogin(k.Code) && c.showedGiven && !c.known {
		c.given = nil // it is over: log in again
		c.lost(k.Error())
	} else if isPassing(k.Code) || (k.Code == kickTooLarge && c.blame()) {
		if c.session != nil {
			c.session.name = nil // a kick ends it
		}
		c.lost(k.Error())
	} else {
		c.end(k, true)
	}
}

// ---- what comes

func (c *core) onResponse(r *reader) {
	name, status, retry := r.u32(), Status(r.u8()), time.Duration(r.u32())*time.Millisecond
	if r.bad {
		return
	}
	if status > RateLimited {
		status = Unknown // of a later version
	}
	switch name {
	case nameBind:
		c.onBindAnswer(status, retry, r.body)
	case nameUnbind:
		if c.session != nil && c.session.state == sessionLeaving {
			c.unbound()
		}
	default:
		c.onAnswer(c.asked[name], status, retry, r.body)
		c.bindIfItWaits()
		c.leaveIfDone()
	}
}

func (c *core) onAnswer(e *entry, status Status, retry time.Duration, payload []byte) {
	if e == nil || e.pending == nil {
		return // it has ended here, as nobody answered in time
	}
	if status == Moving && c.state == stateLeaving {
		// It never ran: it goes to the next gateway, in its place. Of what an earlier line sent this one cannot know.
		if e.out[head+4]&flagAgain == 0 {
			e.sent, e.kept = false, false
		}
		e.here = false
		return
	}
	c.settle(e, status, payload, retry)
	c.noteHeard(9 + len(payload))
}

func (c *core) onPush(r *reader) {
	sequence, s := r.u64(), c.session
	if r.bad || s == nil || s.state != sessionHeld {
		return
	}
	if s.name == nil && sequence == 1 {
		s.pushed = 0 // the actor, begun afresh
	}
	if sequence <= s.pushed {
		return
	}
	push := Push{r.body, sequence, sequence - s.pushed - 1}
	s.pushed = sequence
	c.noteHeard(9 + len(push.Payload))
	if f := c.options.OnPush; f != nil {
		c.client.happened.put(func() { f(push) }, len(push.Payload))
	}
}

func (c *core) onBegun(r *reader) {
	name := r.take(sessionSize)
	r.take(begunSize - sessionSize)
	if s := c.session; !r.bad && s != nil && s.state == sessionHeld {
		s.name, s.pushed = name, 0
		c.forgetSession()
		if f := c.options.OnBegun; f != nil {
			c.tell(f)
		}
	}
}

// ---- sessions

func (c *core) bind(a Actor) *Pending {
	p := newPending()
	switch {
	case c.session != nil:
		p.end(nil, errors.New("ringhold: it is bound already"))
	case len(a.ID) < 1 || len(a.ID) > 255:
		p.end(nil, errors.New("ringhold: an id has 1 to 255 bytes"))
	default:
		c.session = &session{actor: a, settle: p}
		if c.state == stateReady {
			c.askSession()
		}
	}
	return p
}

func (c *core) unbind() *Pending {
	p, s := newPending(), c.session
	if s == nil || s.left != nil {
		p.end(nil, errors.New("ringhold: it is not bound"))
		return p
	}
	s.left = p
	switch s.state {
	case sessionHeld:
		c.sayUnbind()
	case sessionWanted:
		c.unbound()
	} // else when its answer is here
	return p
}

func (c *core) sayUnbind() {
	c.session.state = sessionLeaving
	c.send(packet(typeUnbind, 0x7f, 0xff, 0xff, 0xfe))
}

func (c *core) askSession() {
	s := c.session
	s.waits = false
	if s.name == nil {
		flags := flagKeep
		if s.plain {
			flags = 0
		}
		s.state = sessionAsked
		c.send(asking(typeBind, nameBind, s.actor, flags, 0, nil))
		return
	}
	attempt := uint16(0)
	c.attempts++
	if c.attempts <= 0xffff {
		attempt = uint16(c.attempts)
	}
	shown := append([]byte(nil), s.name...)
	shown = binary.BigEndian.AppendUint64(shown, s.pushed)
	shown = binary.BigEndian.AppendUint32(shown, c.least())
	shown = binary.BigEndian.AppendUint16(shown, attempt)
	s.state = sessionResuming
	c.send(asking(typeResume, nameBind, s.actor, 0, 0, shown))
}

func (c *core) onBindAnswer(status Status, retry time.Duration, payload []byte) {
	s := c.session
	switch {
	case s == nil || (s.state != sessionAsked && s.state != sessionResuming):
	case c.timers["bind"] != nil: // a second answer: it is asked again later
	case status == OK:
		c.bound(s, payload)
	case s.state == sessionResuming:
		c.resumeRefused(s, status, retry, payload)
	default:
		c.bindRefused(s, status, retry, payload)
	}
}

func (c *core) bound(s *session, payload []byte) {
	fresh := s.state == sessionAsked
	if fresh {
		s.name, s.pushed = nil, 0 // if the next one is a later one than 1, those between are lost
	} else {
		for e := c.first; e != nil; e = e.next {
			e.mark(true)
		}
	}
	if len(payload) >= begunSize {
		s.name = payload[:sessionSize]
	}
	s.state = sessionHeld
	s.wasHeld = true
	s.settle.end(nil, nil)
	if s.left != nil {
		c.sayUnbind()
	}
	if f := c.options.OnBound; f != nil {
		c.tell(func() { f(fresh) })
	}
	if c.state == stateGreeting {
		c.beReady()
	} else {
		c.flush()
	}
}

func (c *core) bindAgain(retry time.Duration) {
	least := againAfter
	if retry > retryMax {
		retry = retryMax
	}
	if retry > 0 {
		least = retry
	}
	wait := c.jittered(least)
	c.after("greet", wait+c.options.GreetTimeout, func() { c.lost("nobody binds it in time") })
	c.after("bind", wait, c.askSession)
}

func (c *core) refused(s *session, status Status, payload []byte) {
	e := &Error{Status: status, Payload: payload}
	c.session = nil
	c.forgetSession()
	s.left.end(nil, nil)
	if !s.settle.isDone() {
		s.settle.end(nil, e)
	} else if f := c.options.OnRefused; f != nil {
		c.tell(func() { f(e) })
	}
	if c.state == stateGreeting {
		c.beReady()
	} else {
		c.flush()
	}
}

func hasPrefix(payload []byte, text string) bool {
	return len(payload) >= len(text) && string(payload[:len(text)]) == text
}

func (c *core) bindRefused(s *session, status Status, retry time.Duration, payload []byte) {
	switch {
	case status == BadRequest && hasPrefix(payload, "requests are in progress"):
		c.bindAgain(retry) // what was asked of the actor before
	case status == BadRequest && !s.plain:
		s.plain = true // a gateway that keeps no sessions yet
		c.askSession()
	case status == Moving || status == Overloaded || status == RateLimited:
		c.bindAgain(retry)
	case status == NoOwner && s.wasHeld:
		c.bindAgain(retry) // its nodes are being replaced
	case status == Unknown || status == Timeout:
		c.lost("the bind got no answer") // it may be bound: a new connection is not
	default:
		c.refused(s, status, payload)
	}
}

func (c *core) resumeRefused(s *session, status Status, retry time.Duration, payload []byte) {
	switch {
	case status == Unauthorized:
		c.refused(s, status, payload)
	case status == Rejected && hasPrefix(payload, "REPLACED"):
		c.end(&Kicked{1, string(payload)}, true)
	case status == Rejected || status == BadRequest:
		s.name = nil
		c.forgetSession()
		c.rewind(false)
		c.askSession()
	default:
		c.bindAgain(retry)
	}
}

func (c *core) unbound() {
	s := c.session
	c.session = nil
	s.settle.end(nil, &Kicked{Text: "it was unbound"})
	c.forgetSession()
	s.left.end(nil, nil)
}

func (c *core) noteHeard(size int) {
	s := c.session
	if s == nil || s.state != sessionHeld || s.name == nil {
		return
	}
	s.unacked++
	s.unackedSize += size
	if s.unacked >= ackCount || s.unackedSize > ackSize {
		c.ack()
	} else if c.timers["ack"] == nil {
		c.after("ack", ackAfter, c.ack)
	}
}

func (c *core) ack() {
	s := c.session
	c.stop("ack")
	if s == nil || s.state != sessionHeld || s.name == nil || !c.isRead() {
		return
	}
	s.unacked, s.unackedSize = 0, 0
	body := binary.BigEndian.AppendUint64(nil, s.pushed)
	c.send(packet(typeAck, binary.BigEndian.AppendUint32(body, c.least())...))
}
