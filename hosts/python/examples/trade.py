# SPDX-License-Identifier: Apache-2.0
"""A small game at a host: players with a durable inventory who give each other things, and rooms that push what is said to
everybody in them.

    ringhold node --name n1 --store sqlite:game.db --host unix:/tmp/host.sock \\
        --kind 0:host=player,durable,alarms,sessions=kick --kind 4:host=room
    PYTHONPATH=hosts/python python3 hosts/python/examples/trade.py unix:/tmp/host.sock

A client says to a player: "add sword 2", "bag", "give bob sword 1", "join lobby", "say lobby hello", "remind 5 tea". What is pushed
to it: "* bob gave you sword 1", "lobby ann: hello".
"""

import asyncio
import json
import logging
import os
import sys
import time

from ringhold_host import Actor, Alarm, Answer, Error, Host, Message, Ref, Session, Turn


def number(word: str) -> int:
    """What a client says is a count: 1 or more, and no more than a game needs."""
    if word.isascii() and word.isdecimal() and len(word) < 10 and int(word) > 0:
        return int(word)
    raise Error("ERR a count is a number from 1 on")


def delay(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1
    if 0 <= seconds < 1e9:
        return seconds
    raise Error("ERR remind SECONDS WHAT")


class Player(Actor, kind="player", durable=True):
    """Has an inventory: a value of the store for each thing, with its count."""

    def count(self, thing: str) -> int:
        return int(self.values.get("item/" + thing, b"0"))

    def change(self, thing: str, by: int) -> int:
        count = self.count(thing) + by
        if count == 0:
            self.values.pop("item/" + thing, None)
        else:
            self.values["item/" + thing] = str(count).encode()
        return count

    async def receive(self, turn: Turn, message: Message) -> Answer:
        words = message.payload.decode(errors="replace").split()
        if message.sender is not None:
            return self.take(turn, message.sender, words)
        match words:
            case ["bag"]:
                things = [key.removeprefix("item/") for key in self.values.under("item/")]
                return " ".join(f"{thing}={self.count(thing)}" for thing in things)
            case ["add", thing, count]:
                return self.change(thing, number(count))
            case ["give", to, thing, count] if to != self.id:
                return self.give(turn, to, thing, number(count))
            case ["join", room]:
                await turn.call(turn.named("room", room), b"join")
                return "joined"
            case ["say", room, *said]:
                heard = await turn.call(turn.named("room", room), f"say {' '.join(said)}".encode())
                return f"said to {heard.decode()}"
            case ["remind", seconds, what]:
                turn.set_alarm("remind/" + what, time.time() + delay(seconds), what.encode())
                return "OK"
            case ["crash"]:
                os._exit(3)
        raise Error("ERR add, bag, give, join, say, remind")

    def take(self, turn: Turn, giver: Ref, words: list[str]) -> Answer:
        """What another player gives."""
        match words:
            case ["gift", thing, count]:
                self.change(thing, number(count))
                turn.push(f"* {giver.id} gave you {thing} {count}".encode())
                return None
        raise Error("ERR players give only")

    def give(self, turn: Turn, to: str, thing: str, count: int) -> Answer:
        """The thing leaves one inventory by the commit that saves the gift, which arrives once."""
        if self.count(thing) < count:
            raise Error(f"NOITEM you have only {self.count(thing)}")
        turn.send_once(Ref(self.ref.kind, to), f"gift {thing} {count}".encode())
        return self.change(thing, -count)

    async def alarm(self, turn: Turn, alarm: Alarm) -> None:
        what = alarm.payload.decode()
        turn.push(f"* {what}, {self.change('reminded-' + what, 1)}".encode())

    async def session(self, turn: Turn, session: Session) -> None:
        """Lets every client in."""


class Room(Actor, kind="room"):
    """Knows who is in it. Its memory moves with it; a crash forgets it."""

    def __init__(self) -> None:
        self.members: set[str] = set()
        self.said = 0

    async def activate(self, turn: Turn, state: bytes | None) -> None:
        if state is not None:
            was = json.loads(state)
            self.members, self.said = set(was["members"]), was["said"]

    async def handoff(self, turn: Turn) -> bytes:
        return json.dumps({"members": sorted(self.members), "said": self.said}).encode()

    async def receive(self, turn: Turn, message: Message) -> Answer:
        word, _, rest = message.payload.decode(errors="replace").partition(" ")
        match word, message.sender:
            case "join", Ref(_, player):
                self.members.add(player)
                return len(self.members)
            case "say", Ref(kind, player):
                if player not in self.members:
                    raise Error("NOTHERE join first")
                self.said += 1
                turn.push_ids(kind, sorted(self.members), f"{self.id} {player}: {rest}".encode())
                return len(self.members)
            case "who", _:
                return f"{' '.join(sorted(self.members))}, {self.said} said"
            case "hang", _:
                await asyncio.sleep(3600)
            case "tick", _:
                turn.start_timer(1, 0.05)
                return "OK"
        raise Error("ERR join, say, who")

    async def timer(self, turn: Turn, number: int) -> None:
        """Counts as if somebody had said something."""
        self.said += 1


if __name__ == "__main__":
    logging.basicConfig()
    token = os.environ.get("RINGHOLD_HOST_TOKEN", "")
    asyncio.run(Host(sys.argv[1], [Player, Room], name="trade", token=token).run())
