# SPDX-License-Identifier: Apache-2.0
"""Packets of the clients' protocol, as docs/protocol-client.md has them. No sockets and no clock here."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

HEAD = 4
BODY_MAX = 0xFFFFFF


class Type(enum.IntEnum):
    """Types of packets."""

    HELLO = 1
    HELLO_ACK = 2
    PING = 3
    PONG = 4
    KICK = 5
    REQUEST = 6
    RESPONSE = 7
    NOTIFY = 8
    PUSH = 9
    GOAWAY = 10
    BIND = 11
    UNBIND = 12
    AUTH = 13
    RESUME = 14
    AUTH_OK = 15
    BEGUN = 16
    ACK = 17
    REBOUND = 18


class Status(enum.IntEnum):
    """How a request ended. A number that is not here is to be taken as UNKNOWN."""

    OK = 0
    ACTOR_FAILED = 1
    UNKNOWN = 2
    TIMEOUT = 3
    MOVING = 4
    OVERLOADED = 5
    NO_OWNER = 6
    QUARANTINED = 7
    REJECTED = 8
    BAD_REQUEST = 9
    UNAUTHORIZED = 10
    RATE_LIMITED = 11


class Flag(enum.IntFlag):
    """Of a request."""

    IDEMPOTENT = 1
    DEADLINE = 2
    KEEP = 4
    AGAIN = 8


class InvalidPacket(ValueError):
    """The gateway sent something that makes no sense."""


def packet(type_: int, body: bytes = b"") -> bytes:
    """A packet of that body."""
    return struct.pack(">I", type_ << 24 | len(body)) + body


def asking(
    type_: int, name: int, actor_id: bytes, payload: bytes = b"", *, kind: int = 0, flags: int = 0, deadline_ms: int = 0
) -> bytes:
    """A request, notify, bind or resume."""
    deadline = b""
    if deadline_ms > 0:
        flags |= Flag.DEADLINE
        deadline = struct.pack(">I", deadline_ms)
    return packet(type_, struct.pack(">IBBH", name, flags, len(actor_id), kind) + deadline + actor_id + payload)


class Packets:
    """Cuts a stream of bytes, as it comes, into packets."""

    def __init__(self, most: int = BODY_MAX) -> None:
        self._most = most
        self._rest = bytearray()

    def take(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield what these bytes make whole: type and body. InvalidPacket: one is larger than it may be."""
        self._rest += data
        at = 0
        try:
            while len(self._rest) - at >= HEAD:
                (word,) = struct.unpack_from(">I", self._rest, at)
                size = word & BODY_MAX
                if size > self._most:
                    raise InvalidPacket("a packet is larger than packet_max")
                if len(self._rest) - at < HEAD + size:
                    break
                body = bytes(self._rest[at + HEAD : at + HEAD + size])
                at += HEAD + size
                yield word >> 24, body
        finally:
            del self._rest[:at]
