# SPDX-License-Identifier: Apache-2.0
"""The host that `ringhold conform host ADDRESS` tries: docs/host-protocol.md, "Conformance", says what its actors do.

    PYTHONPATH=hosts/python python3 hosts/python/examples/conform.py unix:/tmp/conform.sock
"""

import asyncio
import logging
import sys
import time

from ringhold_host import Actor, Alarm, Answer, Error, Host, Message, Ref, Session, SessionEvent, Turn


class Conform(Actor, kind="conform", durable=True):
    note = b""

    async def activate(self, turn: Turn, state: bytes | None) -> None:
        self.note = state or b""

    async def handoff(self, turn: Turn) -> bytes:
        return self.note

    def other(self, id: str) -> Ref:
        return Ref(self.ref.kind, id)

    async def receive(self, turn: Turn, message: Message) -> Answer:
        if message.arguments:
            return len(message.arguments)
        match message.payload.decode().split(" "):
            case ["echo", what]:
                return what.encode()
            case ["text"]:
                return "OK"
            case ["integer"]:
                return -42
            case ["error"]:
                raise Error("ERR on purpose")
            case ["fail"]:
                raise ZeroDivisionError("on purpose")
            case ["call", id, what]:
                return await turn.call(self.other(id), what.encode())
            case ["effects"]:
                turn.send(self.other("bob"), b"one")
                turn.push(b"two")
                turn.push_ids(self.ref.kind, ["a", "b"], b"three")
            case ["put", key, value]:
                self.values[key] = value.encode()
            case ["delete", key]:
                self.values.pop(key, None)
            case ["get", key]:
                return self.values.get(key)
            case ["undo", key, value]:
                self.values[key] = value.encode()
                turn.undo()
            case ["putcall", key, value, id]:
                self.values[key] = value.encode()
                self.values[key] = await turn.call(self.other(id), key.encode())
            case ["alarm", name]:
                turn.set_alarm(name, time.time() + 3600, name.encode())
            case ["timer", number]:
                turn.start_timer(int(number), 0.05)
            case ["note", what]:
                self.note = what.encode()
            case ["note"]:
                return self.note
        return None

    async def alarm(self, turn: Turn, alarm: Alarm) -> None:
        self.values["rang"] = alarm.name.encode()

    async def timer(self, turn: Turn, number: int) -> None:
        turn.push(f"tick {number}".encode())

    async def session(self, turn: Turn, session: Session) -> None:
        if session.event == SessionEvent.BOUND:
            turn.push(b"welcome", session.number)


if __name__ == "__main__":
    logging.basicConfig()
    asyncio.run(Host(sys.argv[1], [Conform], name="conform").run())
