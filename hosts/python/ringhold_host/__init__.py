# SPDX-License-Identifier: Apache-2.0
"""Actors of a Ringhold node whose code is a Python program, by docs/host-protocol.md.

    class Counter(Actor, kind="counter"):
        count = 0

        async def receive(self, turn: Turn, message: Message) -> Answer:
            self.count += 1
            return self.count

    asyncio.run(Host("unix:/run/ringhold/host.sock", [Counter], name="game").run())
"""

from .actor import Actor, Pending, Turn, Values
from .host import Host
from .kinds import (
    Alarm,
    Answer,
    Busy,
    CallError,
    Cold,
    Error,
    Message,
    Ref,
    Refused,
    Session,
    SessionEvent,
    Status,
    Why,
)

__all__ = [
    "Actor",
    "Alarm",
    "Answer",
    "Busy",
    "CallError",
    "Cold",
    "Error",
    "Host",
    "Message",
    "Pending",
    "Ref",
    "Refused",
    "Session",
    "SessionEvent",
    "Status",
    "Turn",
    "Values",
    "Why",
]
