# SPDX-License-Identifier: Apache-2.0
"""What actors get and give."""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from . import wire

# An answer: bytes; a text of one line; a whole number of 64 bits; None is nil.
Answer = bytes | str | int | None


class Ref(NamedTuple):
    """The name of an actor: its kind's number (Host.kind) and its id, of 1 to 255 bytes in UTF-8."""

    kind: int
    id: str


@dataclass(frozen=True, slots=True)
class Message:
    """One request."""

    payload: bytes  # empty if there are arguments
    arguments: tuple[bytes, ...]  # of a command: its name in upper case, the key, the rest
    no_reply: bool  # nobody waits for an answer
    idempotent: bool  # its sender allows it to run again after a crash
    sender: Ref | None  # the actor that sent it; None: a client

    @classmethod
    def read(cls, f: wire.Fields) -> "Message":
        sender = Ref(f.uint(7), f.string(8)) if f.data(8) else None
        return cls(f.data(3), tuple(f.all(4)), bool(f.uint(5)), bool(f.uint(6)), sender)


@dataclass(frozen=True, slots=True)
class Alarm:
    """A timer that is in the store, by its name."""

    name: str  # of 1 to 255 bytes
    due: float  # seconds since 1970, as time.time() says them
    payload: bytes = b""  # up to 64 KiB
    every: float = 0  # seconds; 0: once

    @classmethod
    def read_set(cls, f: wire.Fields) -> "Alarm":
        """Of a SetAlarm."""
        return cls(f.string(1), f.uint(2) / 1000, f.data(4), f.uint(3) / 1000)

    @classmethod
    def read(cls, f: wire.Fields) -> "Alarm":
        return cls(f.string(3), f.uint(5) / 1000, f.data(4), f.uint(6) / 1000)


class SessionEvent(IntEnum):
    """What became of a client."""

    BOUND = 1  # it has come
    REPLACED = 2  # it has come in the place of a former one
    RESUMED = 3  # it is still there (why 0: the actor was started afresh), or back (1)
    LOST = 4  # it has gone


@dataclass(frozen=True, slots=True)
class Session:
    """An event of a client that is bound to the actor."""

    event: SessionEvent
    why: int  # of LOST: 1 closed, 2 kicked, 3 too slow, 4 its gateway is gone, 5 rebound
    number: int  # for Turn.push and Turn.kick
    former: int  # of REPLACED: the session that is over

    @classmethod
    def read(cls, f: wire.Fields) -> "Session":
        return cls(wire.known(SessionEvent, f.uint(3)), f.uint(4), f.uint(5), f.uint(6))


class Why(IntEnum):
    """Why an actor saves or ends. FENCED: keep nothing, write nothing, for the id lives elsewhere."""

    MOVED = 0
    STOPS = 1
    FENCED = 2
    IDLE = 3
    BROKEN = 4
    PERIODIC = 5


class Status(IntEnum):
    """How a call ended (enum rh_result)."""

    OK = 0
    INVALID = 1  # it can't be made
    TOO_BIG = 3  # likewise
    FAILED = 4  # the actor answered with an error
    UNKNOWN = 8  # it may have run, at most once
    TIMEOUT = 9  # likewise
    REJECTED = 10  # it did not run, and won't; so the others
    NO_KIND = 11
    OVERLOADED = 12
    QUARANTINED = 13
    DEADLOCK = 16


class Error(Exception):
    """An answer that is an error: the first word of its text is a code in capitals; another text gets "ERR" in front."""

    def __str__(self) -> str:
        told = super().__str__()
        code = told.partition(" ")[0]
        return told if code.isascii() and code.isidentifier() and code.isupper() else f"ERR {told}"


class CallError(Error):
    """A call that was not answered, or answered by an error: who does not catch it answers so, too."""

    def __init__(self, status: int, told: str):
        super().__init__(told)
        self.status = status  # a Status


class Busy(Exception):
    """What `handoff` raises: not now."""


class Cold(Exception):
    """What `handoff` raises: there is no state, the actor starts afresh elsewhere."""


class Refused(Exception):
    """The node ended the connection; docs/host-protocol.md has the reasons."""

    TAKEN = 6
    FINAL = (1, 2, 3, 5, 7, 8, 9)  # mistakes of ours, or of the options: no later try would change them

    def __init__(self, reason: int, told: str):
        super().__init__(f"the node says goodbye: {told}")
        self.reason = reason


def put_answer(answer: Answer) -> bytes:
    """A Value. TypeError: it is none of the types."""
    if answer is None:
        return wire.uint(4, 1)
    if isinstance(answer, str):
        return wire.whole(2, wire.line(answer))
    if isinstance(answer, int):
        return wire.sint(3, answer)
    return wire.whole(1, answer)
