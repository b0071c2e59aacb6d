# SPDX-License-Identifier: Apache-2.0
"""A host of purses: durable actors who give others gold, by numbered requests. README.md says what they are asked and what
they keep.

    ringhold node --name n1 --store sqlite:game.db --host unix:/tmp/host.sock --kind 0:host=purse,durable …
    PYTHONPATH=hosts/python python3 examples/purse/purse.py unix:/tmp/host.sock
"""

import asyncio
import logging
import sys
from collections.abc import Callable

from ringhold_host import Actor, Answer, Error, Host, Message, Ref, Turn

USAGE = "ERR earn N AMOUNT, give N WHOM AMOUNT, gold"


class Purse(Actor, kind="purse", durable=True):
    """Has no memory but its values."""

    def number(self, name: str) -> int:
        return int(self.values.get(name, b"0"))

    def add(self, name: str, by: int) -> bytes:
        self.values[name] = str(self.number(name) + by).encode()
        return self.values[name]

    def request(self, seq: int, change: Callable[[], bytes]) -> Answer:
        """Each request is done once: who asks again hears the answer again. All that it changes is one commit."""
        done = self.number("done")
        if seq < done:
            raise Error("ERR a later request is done")
        if seq > done:
            self.values["done"] = str(seq).encode()
            self.values["answer"] = change()
        return self.values["answer"]

    def give(self, turn: Turn, seq: int, whom: str, amount: int) -> bytes:
        if amount > self.number("gold"):
            return b"POOR"
        turn.send_once(Ref(self.ref.kind, whom), f"take {seq} {amount}".encode())
        return self.add("gold", -amount)

    def take(self, giver: str, seq: int, amount: int) -> None:
        """What another purse gives arrives once."""
        self.add(f"from/{giver}/{seq}", amount)
        self.add("gold", amount)

    async def receive(self, turn: Turn, message: Message) -> Answer:
        match message.sender, message.payload.decode(errors="replace").split():
            case None, ["earn", seq, last]:
                amount = counted(last)
                return self.request(counted(seq), lambda: self.add("gold", amount))
            case None, ["give", seq, whom, last]:
                n, amount = counted(seq), counted(last)
                return self.request(n, lambda: self.give(turn, n, whom, amount))
            case Ref(_, giver), ["take", seq, last]:
                self.take(giver, counted(seq), counted(last))
                return None
            case _, ["gold"]:
                return str(self.number("gold"))
        raise Error(USAGE)


def counted(word: str) -> int:
    if word.isascii() and word.isdecimal() and len(word) < 16 and int(word) > 0:
        return int(word)
    raise Error(USAGE)


if __name__ == "__main__":
    logging.basicConfig()
    asyncio.run(Host(sys.argv[1], [Purse], name="purse").run())
