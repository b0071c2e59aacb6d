// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"errors"
)

// The messages of wire/host.proto, written and read by hand: they are few and flat.

var errMalformed = errors.New("ringhold: a frame of the node does not decode")

// Kinds of fields on the wire.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func putTag(b []byte, field, wire int) []byte {
	return binary.AppendUvarint(b, uint64(field)<<3|uint64(wire))
}

// putUint leaves 0 out, as proto3 does.
func putUint(b []byte, field int, v uint64) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(putTag(b, field, wireVarint), v)
}

func putBool(b []byte, field int, v bool) []byte {
	if !v {
		return b
	}
	return putUint(b, field, 1)
}

// putData leaves empty bytes out.
func putData[T string | []byte](b []byte, field int, v T) []byte {
	if len(v) == 0 {
		return b
	}
	return putWhole(b, field, v)
}

// putWhole writes empty bytes, too: of a oneof, of a repeated field, of a message.
func putWhole[T string | []byte](b []byte, field int, v T) []byte {
	b = putTag(b, field, wireBytes)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// A reader goes through the fields of one message.
type reader struct {
	rest  []byte
	field int
	value uint64 // of a varint
	data  []byte // of bytes, borrowed
	bad   bool
}

// next goes to the next field; false: there is none, or what comes is bad.
func (r *reader) next() bool {
	if len(r.rest) == 0 || r.bad {
		return false
	}
	tag := r.uvarint()
	r.field = int(tag >> 3)
	r.data = nil
	r.value = 0
	switch tag & 7 {
	case wireVarint:
		r.value = r.uvarint()
	case wireBytes:
		size := r.uvarint()
		if size > uint64(len(r.rest)) {
			r.bad = true
			return false
		}
		r.data, r.rest = r.rest[:size:size], r.rest[size:]
	case wire64:
		r.skip(8)
	case wire32:
		r.skip(4)
	default:
		r.bad = true
	}
	return !r.bad
}

func (r *reader) uvarint() uint64 {
	v, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad = true
		r.rest = nil
		return 0
	}
	r.rest = r.rest[size:]
	return v
}

func (r *reader) skip(size int) {
	if len(r.rest) < size {
		r.bad = true
		return
	}
	r.rest = r.rest[size:]
}

// What a node says: the fields of NodeSays.body.
const (
	saysWelcome    = 1
	saysGoodbye    = 2
	saysPing       = 3
	saysActivate   = 4
	saysMessage    = 5
	saysTimer      = 6
	saysAlarm      = 7
	saysSession    = 8
	saysFlush      = 9
	saysHandoff    = 10
	saysAnswer     = 11
	saysResume     = 12
	saysDeactivate = 13
)

func clone(b []byte) []byte {
	return append(make([]byte, 0, len(b)), b...)
}

func readActivate(data []byte, a *Actor) (state []byte, has bool, ok bool) {
	r := reader{rest: data}
	for r.next() {
		switch r.field {
		case 1:
			a.activation = r.value
		case 3:
			a.kindNumber = uint16(r.value)
		case 4:
			a.id = string(r.data)
		case 5:
			a.fence = r.value
		case 6:
			has = r.value != 0
		case 7:
			state = clone(r.data)
		case 9:
			key, value := readPair(r.data)
			a.values[key] = value
		case 10:
			alarm := readAlarm(r.data)
			a.alarms[alarm.Name] = alarm
		}
	}
	return state, has, !r.bad
}

func readPair(data []byte) (key string, value []byte) {
	value = []byte{}
	r := reader{rest: data}
	for r.next() {
		switch r.field {
		case 1:
			key = string(r.data)
		case 2:
			value = clone(r.data)
		}
	}
	return key, value
}

// readAlarm reads a SetAlarm.
func readAlarm(data []byte) Alarm {
	var a Alarm
	r := reader{rest: data}
	for r.next() {
		switch r.field {
		case 1:
			a.Name = string(r.data)
		case 2:
			a.Due = millis(r.value)
		case 3:
			a.Every = duration(r.value)
		case 4:
			a.Payload = clone(r.data)
		}
	}
	return a
}

func readMessage(data []byte) Message {
	var m Message
	r := reader{rest: data}
	for r.next() {
		switch r.field {
		case 3:
			m.Payload = clone(r.data)
		case 4:
			m.Arguments = append(m.Arguments, clone(r.data))
		case 5:
			m.NoReply = r.value != 0
		case 6:
			m.Idempotent = r.value != 0
		case 7:
			m.From.Kind = uint16(r.value)
		case 8:
			m.From.ID = string(r.data)
		}
	}
	return m
}

func readSession(data []byte) Session {
	var s Session
	r := reader{rest: data}
	for r.next() {
		switch r.field {
		case 3:
			s.Event = SessionEvent(r.value)
		case 4:
			s.Why = int(r.value)
		case 5:
			s.Number = r.value
		case 6:
			s.Former = r.value
		}
	}
	return s
}

// readUint finds a number of a message.
func readUint(data []byte, field int) uint64 {
	var v uint64
	r := reader{rest: data}
	for r.next() {
		if r.field == field {
			v = r.value
		}
	}
	return v
}

// readData finds bytes of a message; borrowed.
func readData(data []byte, field int) []byte {
	var v []byte
	r := reader{rest: data}
	for r.next() {
		if r.field == field {
			v = r.data
		}
	}
	return v
}
