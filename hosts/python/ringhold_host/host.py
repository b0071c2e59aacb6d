# SPDX-License-Identifier: Apache-2.0
"""A host, and its connection to the node, which it makes again."""

import asyncio
import logging
import time
from collections.abc import Sequence

from . import wire
from .actor import Actor, Life
from .kinds import Alarm, Message, Refused, Session, Why
from .wire import Fields, Malformed, Says

log = logging.getLogger("ringhold_host")

VERSION = 1
HELLO_S = 10.0
BACK_OFF_MIN_S = 0.1
BACK_OFF_MAX_S = 2.0
END_S = 1.0  # for `deactivate` when the host ends
READ_SIZE = 1 << 20


class Host:
    """Has kinds, and serves them to one node. All of it belongs to the loop that `run` is in.

    `address` is that of the node's --host, "unix:PATH" or "127.0.0.1:PORT", and `token`, which TCP needs, the first line of its
    --host-token file. `name` is for the node's log: 1 to 63 plain characters. The node gives no more than `turns` turns at a
    time, whose payloads, states and values are no more than `size` bytes.
    """

    def __init__(
        self,
        address: str,
        kinds: Sequence[type[Actor]],
        *,
        name: str = "python",
        token: str = "",
        turns: int = 4096,
        size: int = 16 << 20,
    ):
        if not address.startswith("unix:") and not address.rpartition(":")[2].isdecimal():
            raise ValueError(f"{address} is neither unix:PATH nor 127.0.0.1:PORT")
        self.address, self.name, self.token = address, name, token
        self.kinds = {code.kind: code for code in kinds}
        if "" in self.kinds or not 1 <= len(self.kinds) == len(kinds):
            raise ValueError("each kind needs a name of its own: class Player(Actor, kind=\"player\")")
        self.numbers: dict[str, int] = {}  # of the kinds, as the node said last
        self._window = turns, size
        self._connection: Connection | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def kind(self, name: str) -> int:
        """The node's number of a kind. LookupError: this host has none of that name, or was never connected."""
        return self.numbers[name]

    def window(self, turns: int, size: int) -> None:
        """Sets how much the node may give at a time, from now on."""
        self._window = turns, size
        if self._connection is not None and self._connection.welcomed:
            self._connection.say(wire.whole(4, self.window_said()))

    def window_said(self) -> bytes:
        turns, size = self._window
        return wire.uint(1, turns, 32) + wire.uint(2, size)

    def keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def run(self) -> None:
        """Serves the node until it is cancelled. When the connection is lost, all actors end, and it connects again.
        Refused: the node does not want this host, and no later try would help."""
        back_off, told = BACK_OFF_MIN_S, ""
        try:
            while True:
                begun = time.monotonic()
                try:
                    await self._serve()
                except (OSError, Malformed, Refused) as problem:
                    taken = isinstance(problem, Refused) and problem.reason == Refused.TAKEN
                    if isinstance(problem, Refused) and problem.reason in Refused.FINAL:
                        raise
                    if time.monotonic() - begun > BACK_OFF_MAX_S or taken:
                        back_off, told = BACK_OFF_MIN_S, told if taken else ""
                    why = str(problem) or "it did not answer in time"
                    if why != told:
                        log.warning("%s: %s", self.address, why)
                    told = why
                await asyncio.sleep(back_off)
                back_off = min(2 * back_off, BACK_OFF_MAX_S)
        finally:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=END_S)

    async def _serve(self) -> None:
        async with asyncio.timeout(HELLO_S):
            if self.address.startswith("unix:"):
                path = self.address.removeprefix("unix:")
                reader, writer = await asyncio.open_unix_connection(path, limit=READ_SIZE)
            else:
                at, _, port = self.address.rpartition(":")
                reader, writer = await asyncio.open_connection(at.strip("[]"), int(port), limit=READ_SIZE)
        self._connection = c = Connection(self, writer)
        try:
            c.say(wire.whole(1, self._hello()))
            async with asyncio.timeout(HELLO_S):
                while not c.welcomed:
                    c.take_bytes(await reader.read(READ_SIZE))
            while True:
                c.take_bytes(await reader.read(READ_SIZE))
        finally:
            self._connection = None
            c.close()

    def _hello(self) -> bytes:
        hello = [wire.data(1, b"ringhold"), wire.uint(2, VERSION), wire.uint(3, VERSION)]
        hello += [wire.data(4, wire.line(self.name)), wire.data(5, wire.line(self.token))]
        for name, code in self.kinds.items():
            has = [code.durable, code.has("alarm"), code.has("session"), code.has("flush")]
            said = [wire.data(1, wire.line(name)), *(wire.uint(2 + i, it) for i, it in enumerate(has))]
            hello.append(wire.whole(6, b"".join(said)))
        if self._window != (4096, 16 << 20):
            hello.append(wire.whole(7, self.window_said()))
        return b"".join(hello)


class Connection:
    """One connection to the node: bytes in, turns begun; what they say, out. A Link of its lives."""

    def __init__(self, host: Host, writer: asyncio.StreamWriter):
        self.host, self.writer = host, writer
        self.frame_max = 1 << 16  # until the welcome says it
        self.welcomed = False
        self.closed = False
        self._frames = wire.Frames()
        self._codes: dict[int, type[Actor]] = {}  # by the node's numbers
        self._lives: dict[int, Life] = {}  # by activation
        self._out: list[bytes] = []

    def close(self) -> None:
        self.closed = True
        for life in self._lives.values():
            life.end(Why.BROKEN)  # the node has ended them as well
        self._lives.clear()
        self.writer.close()

    # ---- what lives need

    def say(self, says: bytes) -> None:
        if self.closed:
            return
        self._out.append(says)
        if len(self._out) == 1:  # turns that end in the same round of the loop go along
            asyncio.get_running_loop().call_soon(self._write)

    def _write(self) -> None:
        out, self._out = self._out, []
        if not self.closed:
            self.writer.write(b"".join(wire.frames(out)))

    async def drain(self) -> None:
        try:
            if not self.closed:
                await self.writer.drain()
        except ConnectionError:
            pass  # its reader hears of it, and ends the lives

    def number(self, kind: str) -> int:
        return self.host.kind(kind)

    def forget(self, activation: int) -> None:
        self._lives.pop(activation, None)

    def keep(self, task: "asyncio.Task[None]") -> None:
        self.host.keep(task)

    # ---- what the node says

    def take_bytes(self, more: bytes) -> None:
        if not more:
            raise ConnectionResetError("the node closed the connection")
        for frame in self._frames.feed(more):
            for message in wire.Fields(frame).all(1):
                self._take(*wire.said(message))

    def _take(self, what: Says, f: Fields) -> None:
        if what == Says.GOODBYE:
            raise Refused(f.uint(1), f.string(2))
        if self.welcomed == (what == Says.WELCOME):
            raise Malformed("the welcome is the first message, and no other")
        match what:
            case Says.WELCOME:
                self._welcome(f)
            case Says.PING:
                self.say(wire.whole(2, wire.uint(1, f.uint(1))))
            case Says.ACTIVATE:
                self._activate(f)
            case _:
                life = self._lives.get(f.uint(1))
                if life is not None:  # else it failed to come to life
                    self._take_of(life, what, f)

    def _welcome(self, f: Fields) -> None:
        numbers = {served.string(1): served.uint(2) for served in map(Fields, f.all(3))}
        if f.uint(1) != VERSION or not self.host.kinds.keys() <= numbers.keys():
            raise Malformed("the welcome has another version, or lacks a kind")
        self._codes = {numbers[name]: code for name, code in self.host.kinds.items()}
        self.host.numbers = numbers
        self.frame_max = f.uint(5)
        self.welcomed = True

    def _activate(self, f: Fields) -> None:
        code = self._codes.get(f.uint(3))
        if code is None or f.uint(1) in self._lives:
            raise Malformed("an activation of no kind of ours, or one that is there")
        life = self._lives[f.uint(1)] = Life(self, code, f)
        life.begin(f.uint(2), life.activate)

    def _take_of(self, life: Life, what: Says, f: Fields) -> None:
        turn = f.uint(2)
        match what:
            case Says.MESSAGE:
                message = Message.read(f)
                life.begin(turn, lambda t: life.receive(t, message))
            case Says.TIMER:
                life.begin(turn, lambda t: life.timer(t, f.uint(3)))
            case Says.ALARM:
                alarm = Alarm.read(f)
                life.begin(turn, lambda t: life.alarm(t, alarm))
            case Says.SESSION:
                session = Session.read(f)
                life.begin(turn, lambda t: life.session(t, session))
            case Says.FLUSH:
                why = wire.known(Why, f.uint(3))
                life.begin(turn, lambda t: life.flush(t, why))
            case Says.HANDOFF:
                life.begin(turn, life.handoff)
            case Says.ANSWER:
                life.answer(turn, f.uint(3), f.data(4))
            case Says.RESUME:
                life.resume()
            case Says.DEACTIVATE:
                del self._lives[life.activation]
                life.end(wire.known(Why, turn))
