# SPDX-License-Identifier: Apache-2.0
"""The messages of wire/host.proto, written and read by hand: they are few and flat. No I/O is here."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TypeVar

FRAME_MAX = 256 << 20  # of the node
FRAME_FULL = 256 << 10  # of ours: where the next one begins
SIZE = 4  # in front of each frame

Data = bytes | bytearray | memoryview


class Malformed(Exception):
    """What the node sent does not decode."""


class Says(IntEnum):
    """What a node says: the fields of NodeSays.body."""

    WELCOME = 1
    GOODBYE = 2
    PING = 3
    ACTIVATE = 4
    MESSAGE = 5
    TIMER = 6
    ALARM = 7
    SESSION = 8
    FLUSH = 9
    HANDOFF = 10
    ANSWER = 11
    RESUME = 12
    DEACTIVATE = 13


class Effect(IntEnum):
    """What an actor does: the fields of Effect.type."""

    CALL = 1
    SEND = 2
    SEND_ONCE = 3
    PUSH = 4
    PUSH_IDS = 5
    KICK = 6
    REBIND = 7
    PUT = 8
    DELETE = 9
    UNDO = 10
    SET_ALARM = 11
    CANCEL_ALARM = 12
    START_TIMER = 13
    STOP_TIMER = 14
    FLUSH_SOON = 15
    PASSIVATE = 16


class Result(IntEnum):
    """How a turn ended: Done.result."""

    OK = 0
    FAILED = 1
    BUSY = 2
    COLD = 3


# ---- writing


def varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def uint(field: int, value: int, bits: int = 64) -> bytes:
    """A number; 0 is left out, as proto3 does. ValueError: it has no place in so many bits."""
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{value} is no number of {bits} bits")
    return varint(field << 3) + varint(value) if value else b""


def whole(field: int, value: Data) -> bytes:
    """Bytes, also if they are empty: of a oneof, of a repeated field, of a message."""
    size = memoryview(value).nbytes  # TypeError for what is no bytes
    return b"".join((varint(field << 3 | 2), varint(size), value))


def data(field: int, value: Data) -> bytes:
    """Bytes; empty ones are left out."""
    return whole(field, value) if memoryview(value).nbytes else b""


def sint(field: int, value: int) -> bytes:
    """A signed number, also if it is 0: of a oneof."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is no number of 64 bits")
    return varint(field << 3) + varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value: str) -> bytes:
    """Ids, keys and names are bytes for the node, and strings here: what is no UTF-8 comes back as it was."""
    return value.encode("utf-8", "surrogateescape")


def string(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def line(value: str) -> bytes:
    """A text of one line, which is UTF-8."""
    for bad in "\r\n\0":
        value = value.replace(bad, " ")
    return value.encode("utf-8", "replace")


def frames(says: Iterable[bytes]) -> Iterator[bytes]:
    """Messages (HostSays), cut into frames of a sensible size."""
    part: list[bytes] = []
    size = 0
    for message in says:
        part.append(whole(1, message))
        size += len(part[-1])
        if size >= FRAME_FULL:
            yield size.to_bytes(SIZE, "big") + b"".join(part)
            part, size = [], 0
    if part:
        yield size.to_bytes(SIZE, "big") + b"".join(part)


# ---- reading


def read_varint(source: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(source) or shift > 63:
            raise Malformed("a number does not end")
        byte = source[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def fields(source: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, in order. Those of types that the protocol has not are passed over."""
    at, end = 0, len(source)
    while at < end:
        tag, at = read_varint(source, at)
        kind = tag & 7
        if tag >> 3 == 0:
            raise Malformed("a field has no number")
        if kind == 0:
            value, at = read_varint(source, at)
            yield tag >> 3, value
        elif kind == 2:
            size, at = read_varint(source, at)
            if size > end - at:
                raise Malformed("a field is longer than its message")
            yield tag >> 3, source[at : at + size]
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
            if at > end:
                raise Malformed("a field is longer than its message")
        else:
            raise Malformed(f"a field has the type {kind}")


Word = TypeVar("Word", bound=IntEnum)


def known(words: type[Word], value: int) -> Word:
    try:
        return words(value)
    except ValueError:
        raise Malformed(f"{value} is no {words.__name__} of this version") from None


class Fields:
    """A message, decoded. What is not there is 0 or empty."""

    def __init__(self, source: bytes):
        self._all: dict[int, list[int | bytes]] = {}
        for field, value in fields(source):
            self._all.setdefault(field, []).append(value)

    def uint(self, field: int) -> int:
        value = self._all.get(field, (0,))[-1]
        return value if isinstance(value, int) else 0

    def data(self, field: int) -> bytes:
        value = self._all.get(field, (b"",))[-1]
        return value if isinstance(value, bytes) else b""

    def string(self, field: int) -> str:
        return string(self.data(field))

    def all(self, field: int) -> list[bytes]:
        return [value for value in self._all.get(field, ()) if isinstance(value, bytes)]


def said(message: bytes) -> tuple[Says, Fields]:
    """The body of a NodeSays: the last one that this version knows."""
    body: tuple[int, bytes] | None = None
    for field, value in fields(message):
        if 1 <= field <= Says.DEACTIVATE and isinstance(value, bytes):
            body = field, value
    if body is None:
        raise Malformed("a message has no body that this version knows")
    return Says(body[0]), Fields(body[1])


class Frames:
    """Cuts what comes into frames. The memory grows as bytes come, not on the word of the size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, more: bytes) -> Iterator[bytes]:
        """Yields the messages of the frames (ToHost) that are whole now."""
        self._buffer += more
        at = 0
        while len(self._buffer) - at >= SIZE:
            size = int.from_bytes(self._buffer[at : at + SIZE], "big")
            if size > FRAME_MAX:
                raise Malformed(f"a frame of {size} bytes")
            if len(self._buffer) - at - SIZE < size:
                break
            at += SIZE
            frame = bytes(memoryview(self._buffer)[at : at + size])
            at += size
            yield frame
        del self._buffer[:at]
