// SPDX-License-Identifier: Apache-2.0

package ringhold

import (
	"encoding/binary"
	"errors"
)

const (
	head    = 4
	bodyMax = 0xffffff
)

// Types of packets, as docs/protocol-client.md has them.
const (
	typeHello byte = 1 + iota
	typeHelloAck
	typePing
	typePong
	typeKick
	typeRequest
	typeResponse
	typeNotify
	typePush
	typeGoaway
	typeBind
	typeUnbind
	typeAuth
	typeResume
	typeAuthOK
	typeBegun
	typeAck
	typeRebound
)

// Flags of a request.
const (
	flagIdempotent byte = 1
	flagDeadline   byte = 2
	flagKeep       byte = 4
	flagAgain      byte = 8
)

var errInvalid = errors.New("the gateway sent an invalid packet")

// packet makes a packet of that body.
func packet(kind byte, body ...byte) []byte {
	out := make([]byte, head, head+len(body))
	binary.BigEndian.PutUint32(out, uint32(kind)<<24|uint32(len(body)))
	return append(out, body...)
}

// asking makes a request, notify, bind or resume.
func asking(kind byte, name uint32, a Actor, flags byte, deadlineMs uint32, payload []byte) []byte {
	body := make([]byte, 0, 12+len(a.ID)+len(payload))
	if deadlineMs > 0 {
		flags |= flagDeadline
	}
	body = binary.BigEndian.AppendUint32(body, name)
	body = append(body, flags, byte(len(a.ID)))
	body = binary.BigEndian.AppendUint16(body, a.Kind)
	if deadlineMs > 0 {
		body = binary.BigEndian.AppendUint32(body, deadlineMs)
	}
	body = append(body, a.ID...)
	return packet(kind, append(body, payload...)...)
}

// A cutter cuts a stream of bytes, as it comes, into packets.
type cutter struct {
	most int
	rest []byte
}

func (c *cutter) put(data []byte) { c.rest = append(c.rest, data...) }

// next returns a whole packet; ok is false if there is none yet. errInvalid: it is larger than it may be.
func (c *cutter) next() (kind byte, body []byte, ok bool, err error) {
	if len(c.rest) < head {
		return 0, nil, false, nil
	}
	word := binary.BigEndian.Uint32(c.rest)
	size := int(word & bodyMax)
	if size > c.most {
		return 0, nil, false, errInvalid
	}
	if len(c.rest) < head+size {
		return 0, nil, false, nil
	}
	body = append([]byte(nil), c.rest[head:head+size]...)
	c.rest = c.rest[head+size:]
	if len(c.rest) == 0 {
		c.rest = nil
	}
	return byte(word >> 24), body, true, nil
}

// A reader takes numbers from a body; what is not there makes it bad, and 0.
type reader struct {
	body []byte
	bad  bool
}

func (r *reader) take(size int) []byte {
	if len(r.body) < size {
		r.bad = true
		return make([]byte, size)
	}
	taken := r.body[:size]
	r.body = r.body[size:]
	return taken
}

func (r *reader) u8() byte    { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
