# SPDX-License-Identifier: Apache-2.0
"""An actor, its life at this host, and its turns."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, MutableMapping
from typing import Any, ClassVar, Protocol

from . import wire
from .kinds import Alarm, Answer, Busy, CallError, Cold, Error, Message, Ref, Session, Status, Why, put_answer
from .wire import Effect, Result

log = logging.getLogger("ringhold_host")


class Link(Protocol):
    """What a life needs of its connection."""

    frame_max: int

    def say(self, says: bytes) -> None:
        """Says a HostSays, in the next frame."""

    async def drain(self) -> None:
        """Waits while the node does not read."""

    def number(self, kind: str) -> int:
        """The node's number of a kind; LookupError: this host has none of that name."""

    def forget(self, activation: int) -> None:
        """The node says no more of it."""

    def keep(self, task: "asyncio.Task[None]") -> None:
        """Holds a task until it is through."""


def ms(seconds: float) -> int:
    return round(seconds * 1000)


class Values(MutableMapping[str, bytes]):
    """The named values of a durable actor, in the order of their keys. What changes them is an effect of the open turn."""

    def __init__(self, life: "Life"):
        self._life = life
        self._held: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> bytes:
        return self._held[key]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._held))

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __setitem__(self, key: str, value: bytes) -> None:
        """A key of 1 to 255 bytes in UTF-8, a value of up to 1 MiB."""
        body = wire.data(1, wire.text(key)) + wire.data(2, value)
        self._life.change(Effect.PUT, body, self._held, key)
        self._held[key] = bytes(value)

    def __delitem__(self, key: str) -> None:
        """KeyError: there is none."""
        if key not in self._held:
            raise KeyError(key)
        self._life.change(Effect.DELETE, wire.data(1, wire.text(key)), self._held, key)
        del self._held[key]

    def clear(self) -> None:
        for key in self:
            del self[key]

    def under(self, prefix: str) -> list[str]:
        """The keys that begin so, in order."""
        return sorted(key for key in self._held if key.startswith(prefix))


class Actor:
    """The code of one actor: derive a class for each kind. Its methods run one at a time, in the loop of Host.run; they may
    wait, and others' go on meanwhile. What a class has of `alarm`, `session` and `flush` is what the node's --kind must say.

    An exception that a method's text does not name breaks the actor: what the turn has done since it waited is dropped, its request is
    answered with an error, and the next one starts the actor afresh.
    """

    kind: ClassVar[str] = ""
    durable: ClassVar[bool] = False
    _life: "Life"

    def __init_subclass__(cls, *, kind: str = "", durable: bool | None = None, **more: Any):
        super().__init_subclass__(**more)
        if kind:
            cls.kind = kind
        if durable is not None:
            cls.durable = durable
        if cls.durable and cls.has("flush"):
            raise TypeError(f"{cls.__name__} is durable, so it has no flush")
        if cls.has("alarm") and not cls.durable:
            raise TypeError(f"{cls.__name__} has alarms, so it must be durable")

    @classmethod
    def has(cls, method: str) -> bool:
        return getattr(cls, method) is not getattr(Actor, method)

    # ---- what it is: from __init__ on, and after its end

    @property
    def id(self) -> str:
        return self._life.ref.id

    @property
    def ref(self) -> Ref:
        return self._life.ref

    @property
    def fence(self) -> int:
        """Grows from owner to owner: for a store of your own."""
        return self._life.fence

    @property
    def values(self) -> Values:
        return self._life.values

    @property
    def alarms(self) -> dict[str, Alarm]:
        """Those that are set, by name. A copy."""
        return dict(self._life.alarms)

    # ---- what it does: override what you need

    async def activate(self, turn: "Turn", state: bytes | None) -> None:
        """It comes to life. `state`: what `handoff` wrote at the former owner; None: it starts afresh. Any exception, here and of
        __init__: it could not be made, and is tried again later."""

    async def receive(self, turn: "Turn", message: Message) -> Answer:
        """Answers a request. Error: that is the answer, and undoes nothing (Turn.undo does). If nobody waits for the answer it is undone, for
        a send_once was not taken then."""
        raise Error("ERR this actor takes no requests")

    async def timer(self, turn: "Turn", number: int) -> None:
        """One of Turn.start_timer went off."""

    async def alarm(self, turn: "Turn", alarm: Alarm) -> None:
        """One of Turn.set_alarm went off. Error: what the turn has changed since it waited is undone, and the alarm comes again after
        a back-off."""

    async def session(self, turn: "Turn", session: Session) -> None:
        """Hears of a client. Error: turns it away."""

    async def flush(self, turn: "Turn", why: Why) -> None:
        """Saves what the actor has, by writes that are conditional on the fence. Any exception: it is asked again."""

    async def handoff(self, turn: "Turn") -> bytes:
        """Writes its state for the next owner. Busy: not now; Cold: there is none."""
        raise Cold

    async def resume(self) -> None:
        """It stays after all."""

    async def deactivate(self, why: Why) -> None:
        """This life is over: free what it has. Nothing can be said any more."""


class Pending:
    """A call that goes on: await it once for the answer. CallError: there is none."""

    def __init__(self, turn: "Turn"):
        self._turn = turn
        self.future: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[Any, None, bytes]:
        return self._wait().__await__()

    async def _wait(self) -> bytes:
        if not self.future.done():
            await self._turn.commit()
        status, payload = await self.future
        if status != Status.OK:
            raise CallError(status, wire.string(payload))
        return payload


class Turn:
    """What an actor does for one message, timer, alarm or the like. It is said to the node when the turn ends, or when it waits for
    a call (or `commit`): of a durable actor all until then is one commit. RuntimeError: the turn is over."""

    def __init__(self, life: "Life", number: int):
        self._life = life
        self.number = number
        self.over = False
        self._effects: list[bytes] = []
        self._changes: list[Callable[[], object]] = []  # how each is undone

    def effect(self, field: Effect, body: bytes) -> None:
        if self.over:
            raise RuntimeError("the turn is over")
        self._effects.append(wire.whole(3, wire.whole(field, body)))

    def change(self, field: Effect, body: bytes, held: dict[str, Any], name: str) -> None:
        """An effect on what `held` has by that name, which the caller changes now."""
        if not self._life.durable:
            raise RuntimeError("this kind is not durable")
        self.effect(field, body)
        if name in held:
            before = held[name]
            self._changes.append(lambda: held.__setitem__(name, before))
        else:
            self._changes.append(lambda: held.pop(name, None))

    def step(self, done: bytes = b"") -> bytes:
        """The Step of what was done since the last; of its end, too. RuntimeError: it is too big."""
        head = wire.uint(1, self._life.activation) + wire.uint(2, self.number)
        step = wire.whole(3, b"".join((head, *self._effects, done)))
        self._effects.clear()
        self._changes.clear()
        if len(step) + 16 > self._life.link.frame_max:
            raise RuntimeError("a step is bigger than a frame may be")
        return step

    def drop(self) -> None:
        """The turn failed: what it did since its last step is not said."""
        self.undo_changes()
        self._effects.clear()

    def undo_changes(self) -> bool:
        changed = bool(self._changes)
        while self._changes:
            self._changes.pop()()
        return changed

    # ---- other actors

    def named(self, kind: str, id: str) -> Ref:
        """The name of an actor of a kind that this host serves."""
        return Ref(self._life.link.number(kind), id)

    def start(self, to: Ref, payload: bytes, *, timeout: float = 5, idempotent: bool = False) -> Pending:
        """Begins a call: the node makes it when the turn waits or ends. Those of one turn may go on side by side. `timeout` is 1 ms to
        60 s; `idempotent` allows it to run again after a crash."""
        number = self._life.last_call + 1
        body = wire.uint(1, number) + wire.uint(2, to.kind, 16) + wire.data(3, wire.text(to.id)) + wire.data(4, payload)
        self.effect(Effect.CALL, body + wire.uint(5, ms(timeout), 32) + wire.uint(6, idempotent))
        self._life.last_call = number
        pending = self._life.calls[number] = Pending(self)
        return pending

    async def call(self, to: Ref, payload: bytes, *, timeout: float = 5, idempotent: bool = False) -> bytes:
        """Asks another actor, and waits for the answer: as `start`, awaited."""
        return await self.start(to, payload, timeout=timeout, idempotent=idempotent)

    def send(self, to: Ref, payload: bytes) -> None:
        """A message that nobody answers: at most once, in order with the calls to the same actor."""
        self.effect(Effect.SEND, wire.uint(1, to.kind, 16) + wire.data(2, wire.text(to.id)) + wire.data(3, payload))

    def send_once(self, to: Ref, payload: bytes) -> None:
        """A message of a durable actor that arrives exactly once, whatever dies."""
        self.effect(Effect.SEND_ONCE, wire.uint(1, to.kind, 16) + wire.data(2, wire.text(to.id)) + wire.data(3, payload))
        self._changes.append(lambda: None)  # `undo` takes it back

    # ---- clients

    def push(self, payload: bytes, session: int = 0) -> None:
        """Up to 256 KiB to one client, by Session.number; 0: to all of the actor's."""
        self.effect(Effect.PUSH, wire.uint(1, session) + wire.data(2, payload))

    def push_ids(self, kind: int, ids: Iterable[str], payload: bytes) -> None:
        """The same bytes to the clients of other actors of one kind: a room's."""
        to = b"".join(wire.whole(2, wire.text(id)) for id in ids)
        if to:
            self.effect(Effect.PUSH_IDS, wire.uint(1, kind, 16) + to + wire.data(3, payload))

    def kick(self, code: int, text: str = "", session: int = 0) -> None:
        """Ends the connection of a client (0: of all), with a code of 1000 or more."""
        self.effect(Effect.KICK, wire.uint(1, session) + wire.uint(2, code, 32) + wire.data(3, wire.line(text)))

    def rebind(self, to: Ref, session: int = 0) -> None:
        """Lets a client (0: all) go on as another actor."""
        self.effect(Effect.REBIND, wire.uint(1, session) + wire.uint(2, to.kind, 16) + wire.data(3, wire.text(to.id)))

    # ---- what is durable; values are Actor.values

    def undo(self) -> None:
        """Takes back what the turn has changed of values and alarms, and sent once, since it began, or waited."""
        if self.undo_changes():
            self.effect(Effect.UNDO, b"")

    def set_alarm(self, name: str, due: float, payload: bytes = b"", every: float = 0) -> None:
        """Sets an alarm, instead of the one that has its name: `due` in seconds since 1970, then each `every` seconds (0: once)."""
        due_ms, every_ms = ms(due), ms(every)
        body = wire.data(1, wire.text(name)) + wire.uint(2, due_ms) + wire.uint(3, every_ms) + wire.data(4, payload)
        self.change(Effect.SET_ALARM, body, self._life.alarms, name)
        self._life.alarms[name] = Alarm(name, due_ms / 1000, bytes(payload), every_ms / 1000)

    def cancel_alarm(self, name: str) -> None:
        """Cancels an alarm, if there is one."""
        self.change(Effect.CANCEL_ALARM, wire.data(1, wire.text(name)), self._life.alarms, name)
        self._life.alarms.pop(name, None)

    # ---- timers, and the end

    def start_timer(self, number: int, after: float, every: float = 0) -> None:
        """Has `timer` called after so many seconds, and then each `every` unless that is 0, instead of the timer of that number. It
        ends with this life."""
        self.effect(Effect.START_TIMER, wire.uint(1, number) + wire.uint(2, ms(after), 32) + wire.uint(3, ms(every), 32))

    def stop_timer(self, number: int) -> None:
        """Stops a timer, if it runs."""
        self.effect(Effect.STOP_TIMER, wire.uint(1, number))

    def flush_soon(self) -> None:
        """Asks for a `flush`."""
        self.effect(Effect.FLUSH_SOON, b"")

    def passivate(self) -> None:
        """Ends the actor when this turn is done."""
        self.effect(Effect.PASSIVATE, b"")

    async def commit(self) -> None:
        """Says what the turn has done so far: of a durable actor it is saved, in order with what else the turn does, and stays though
        the turn fails later. Waits only if the node does not read."""
        if self._effects:
            self._life.link.say(self.step())
            await self._life.link.drain()


def done(result: Result = Result.OK, reply: bytes = b"", state: bytes = b"", fail: str = "") -> bytes:
    """The end of a step."""
    body = wire.uint(1, result) + reply + wire.data(3, state) + wire.data(4, wire.line(fail))
    return wire.whole(4, body)


class Life:
    """One life of an actor at this host: an activation."""

    def __init__(self, link: Link, code: type[Actor], f: wire.Fields):
        self.link = link
        self.activation = f.uint(1)
        self.ref = Ref(f.uint(3), f.string(4))
        self.fence = f.uint(5)
        self.state = f.data(7) if f.uint(6) else None
        self.durable = code.durable
        self.values = Values(self)
        self.alarms: dict[str, Alarm] = {}
        self.calls: dict[int, Pending] = {}
        self.last_call = 0
        self._turn = Turn(self, 0)  # the last; `over` if none is open
        self._turn.over = True
        self._task: asyncio.Task[None] | None = None  # the last that was begun
        held = self.values._held  # pylint: disable=protected-access
        for pair in map(wire.Fields, f.all(9)):
            held[pair.string(1)] = pair.data(2)
        for alarm in map(Alarm.read_set, map(wire.Fields, f.all(10))):
            self.alarms[alarm.name] = alarm
        self.code = code.__new__(code)
        self.code._life = self  # pylint: disable=protected-access
        self.made = False  # its __init__ has run

    def change(self, field: Effect, body: bytes, held: dict[str, Any], name: str) -> None:
        self._turn.change(field, body, held, name)

    # ---- turns

    def begin(self, number: int, run: Callable[[Turn], Awaitable[bytes]]) -> None:
        """Runs a turn in a task. One that is no later than the last is stale, and dropped."""
        if number <= self._turn.number:
            return
        if not self._turn.over:
            raise wire.Malformed("a turn comes amidst another")
        self._turn = Turn(self, number)
        self._go(self._do(self._turn, run, self._task))

    def _go(self, work: Any) -> None:
        self._task = asyncio.get_running_loop().create_task(work)
        self.link.keep(self._task)

    async def _do(self, turn: Turn, run: Callable[[Turn], Awaitable[bytes]], before: "asyncio.Task[None] | None") -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])  # `resume`
        try:
            try:
                step = turn.step(await run(turn))
            except Exception as problem:  # pylint: disable=broad-exception-caught
                if turn.over:
                    return  # this life was over already
                log.exception("%s %r: turn %d failed", self.code.kind, self.ref.id, turn.number)
                turn.drop()
                if turn.number == 1:
                    step = turn.step(done(Result.FAILED))
                else:
                    step = turn.step(done(Result.FAILED, fail=f"ERR the actor failed: {type(problem).__name__}: {problem}"))
        except asyncio.CancelledError:
            if turn.over:
                return  # nobody listens
            turn.drop()
            step = turn.step(done(Result.FAILED, fail="ERR the actor failed: its turn was cancelled"))
        if turn.over:
            return  # it was told to stop, and went on
        turn.over = True
        self._no_answers()
        self.link.say(step)

    async def activate(self, turn: Turn) -> bytes:
        try:
            self.code.__init__()  # type: ignore[misc]
            self.made = True
            await self.code.activate(turn, self.state)
        except Exception:
            self.link.forget(self.activation)
            raise
        self.state = None
        return done()

    async def receive(self, turn: Turn, message: Message) -> bytes:
        try:
            answer = await self.code.receive(turn, message)
        except Error as error:
            if message.no_reply:
                turn.undo()  # of a send_once the node does so anyhow
            return done(reply=wire.whole(2, wire.whole(5, wire.line(str(error)))))
        return done(reply=wire.whole(2, put_answer(answer)) if answer is not None else b"")

    async def timer(self, turn: Turn, number: int) -> bytes:
        await self.code.timer(turn, number)
        return done()

    async def alarm(self, turn: Turn, alarm: Alarm) -> bytes:
        fired = self.alarms.get(alarm.name)
        try:
            if not self.code.has("alarm"):
                raise Error("ERR it takes no alarms")
            await self.code.alarm(turn, alarm)
        except Error:
            turn.undo_changes()  # so does the node
            return done(Result.FAILED)
        if fired is not None and not alarm.every and self.alarms.get(alarm.name) is fired:
            del self.alarms[alarm.name]  # unless it was set anew
        return done()

    async def session(self, turn: Turn, session: Session) -> bytes:
        try:
            await self.code.session(turn, session)
        except Error:
            return done(Result.FAILED)
        return done()

    async def flush(self, turn: Turn, why: Why) -> bytes:
        try:
            await self.code.flush(turn, why)
        except Exception:  # pylint: disable=broad-exception-caught
            log.exception("%s %r: flush failed", self.code.kind, self.ref.id)
            return done(Result.FAILED)
        return done()

    async def handoff(self, turn: Turn) -> bytes:
        try:
            return done(state=await self.code.handoff(turn))
        except Busy:
            return done(Result.BUSY)
        except Cold:
            return done(Result.COLD)

    # ---- beside turns

    def _no_answers(self) -> None:
        """What comes later is dropped, by the node as well."""
        for call in list(self.calls):
            self.answer(call, Status.UNKNOWN, b"UNKNOWN outcome: the turn ended before the answer")

    def answer(self, call: int, status: int, payload: bytes) -> None:
        pending = self.calls.pop(call, None)
        if pending is not None and not pending.future.done():
            pending.future.set_result((status, payload))

    def resume(self) -> None:
        if self.code.has("resume"):
            self._go(self._guarded(self.code.resume()))

    def end(self, why: Why) -> None:
        """This life is over: what its turn says is not heard any more."""
        before, was_open = self._task, not self._turn.over
        self._turn.over = True
        if before is not None and was_open:
            before.cancel()
        self._no_answers()
        if self.code.has("deactivate") and self.made:
            self._go(self._deactivate(before, why))

    async def _deactivate(self, before: "asyncio.Task[None] | None", why: Why) -> None:
        if before is not None and not before.done():
            await asyncio.wait([before])
        await self._guarded(self.code.deactivate(why))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception:  # pylint: disable=broad-exception-caught
            log.exception("%s %r: it failed", self.code.kind, self.ref.id)
