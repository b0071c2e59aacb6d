# SPDX-License-Identifier: Apache-2.0
"""A host, with a node that the test plays: byte for byte the conversation of docs/host-protocol.md, and what else may come."""

import asyncio
import logging
import pathlib
import tempfile
import unittest

from ringhold_host import (
    Actor, Alarm, Answer, Busy, CallError, Cold, Error, Host, Message, Ref, Refused, Session, SessionEvent, Status, Turn, Why, wire,
)  # fmt: skip
from ringhold_host.wire import Effect, Fields, Result, Says

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "host-protocol.md"
DEADLINE_S = 30


def frame(*messages: bytes) -> bytes:
    body = b"".join(wire.whole(1, m) for m in messages)
    return len(body).to_bytes(4, "big") + body


def says(what: Says, *fields: bytes) -> bytes:
    return wire.whole(what, b"".join(fields))


def welcome(*names: str) -> bytes:
    served = [wire.whole(3, wire.data(1, name.encode()) + wire.uint(2, 3 + i)) for i, name in enumerate(names)]
    return says(Says.WELCOME, wire.uint(1, 1), *served, wire.uint(5, 1 << 20))


def activate(activation: int, *more: bytes, kind: int = 3) -> bytes:
    return says(Says.ACTIVATE, wire.uint(1, activation), wire.uint(2, 1), wire.uint(3, kind), wire.data(4, b"ann"), *more)


def turn(what: Says, number: int, *fields: bytes, activation: int = 1) -> bytes:
    return says(what, wire.uint(1, activation), wire.uint(2, number), *fields)


def message(number: int, payload: str, *more: bytes, activation: int = 1) -> bytes:
    return turn(Says.MESSAGE, number, wire.data(3, payload.encode()), *more, activation=activation)


def answer(call: int, payload: bytes, status: int = 0) -> bytes:
    return says(Says.ANSWER, wire.uint(1, 1), wire.uint(2, call), wire.uint(3, status), wire.data(4, payload))


class Step:
    """What a host said of a turn."""

    def __init__(self, said: bytes):
        (field, body), *more = wire.fields(said)
        assert field == 3 and not more and isinstance(body, bytes), said
        f = Fields(body)
        self.activation, self.turn = f.uint(1), f.uint(2)
        self.effects = [next(wire.fields(e)) for e in f.all(3)]
        self.kinds = [field for field, _ in self.effects]
        self.done = bool(f.all(4))
        done = Fields(f.data(4))
        self.result, self.state, self.fail = done.uint(1), done.data(3), done.string(4)
        self.reply = next(wire.fields(done.data(2)), (0, b""))[1]

    def fields(self, index: int) -> Fields:
        body = self.effects[index][1]
        assert isinstance(body, bytes)
        return Fields(body)


class Node:
    """The other end of a host's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer
        self.came: list[bytes] = []

    def write(self, *messages: bytes) -> None:
        self.writer.write(frame(*messages))

    async def frame(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            size = await self.reader.readexactly(4)
            return size + await self.reader.readexactly(int.from_bytes(size, "big"))

    async def next(self) -> bytes:
        while not self.came:
            self.came = Fields((await self.frame())[4:]).all(1)
        return self.came.pop(0)

    async def step(self) -> Step:
        return Step(await self.next())

    async def ping(self, number: int) -> None:
        self.write(says(Says.PING, wire.uint(1, number)))
        assert await self.next() == wire.whole(2, wire.uint(1, number))

    async def ended(self) -> bool:
        async with asyncio.timeout(DEADLINE_S):
            return await self.reader.read(1) == b""


class Teller(Actor, kind="player"):
    """Asks bob, and tells its client what he says."""

    ended: "asyncio.Queue[Why]"

    async def receive(self, turn: Turn, message: Message) -> Answer:
        heard = await turn.call(turn.named("player", "bob"), b"hello", timeout=1)
        turn.push(b"bob says " + heard)
        return b"done"

    async def deactivate(self, why: Why) -> None:
        self.ended.put_nowait(why)


class Keeper(Actor, kind="keeper", durable=True):
    """Does what its payload says."""

    def __init__(self) -> None:
        self.state = b""
        self.heard: list[object] = []

    async def activate(self, turn: Turn, state: bytes | None) -> None:
        if state == b"bad":
            turn.push(b"nobody hears it")
            raise ValueError("bad state")
        self.state = state or b""

    async def handoff(self, turn: Turn) -> bytes:
        if self.state == b"busy":
            raise Busy
        if self.state == b"cold":
            raise Cold
        return self.state

    async def alarm(self, turn: Turn, alarm: Alarm) -> None:
        self.values["rang"] = alarm.payload
        if alarm.payload == b"fail":
            raise Error("not now")
        if alarm.payload == b"again":
            turn.set_alarm(alarm.name, alarm.due, b"x")

    async def timer(self, turn: Turn, number: int) -> None:
        turn.push(f"tick {number}".encode())

    async def session(self, turn: Turn, session: Session) -> None:
        if session.event == SessionEvent.REPLACED:
            raise Error(f"{session.former} stays")
        turn.push(b"welcome", session.number)

    async def resume(self) -> None:
        await asyncio.sleep(0)
        self.heard.append("resumed")

    async def receive(self, turn: Turn, message: Message) -> Answer:
        one = Ref(3, "one")
        match message.payload.decode():
            case "fail":
                self.values["a"] = b"lost"
                raise KeyError("on purpose")
            case "error":
                raise Error("no\nsuch thing")
            case "code":
                raise Error("BUSY in a trade")
            case "number":
                return -7
            case "wrong":
                return 1.5  # type: ignore[return-value]
            case "sender":
                return str(message.sender and message.sender.id)
            case "put":
                self.values["a"] = b"1"
                self.values.pop("b", None)
            case "undo":
                self.values["a"] = b"2"
                self.values["c"] = b""
                del self.values["a"]
                turn.undo()
            case "values":
                return " ".join(f"{k}={v.decode()}" for k, v in self.values.items())
            case "puts and fails":
                self.values["a"] = b"2"
                raise Error("not this")
            case "takes back":
                turn.send_once(one, b"")
                turn.undo()
                turn.undo()
            case "clear":
                self.values.clear()
            case "alarm":
                turn.set_alarm("tea", 5.001, b"x")
            case "alarms":
                return " ".join(f"{a.name}@{a.due}" for a in self.alarms.values())
            case "many":
                first, second = turn.start(one, b""), turn.start(Ref(3, "two"), b"")
                last = await second
                return (await first + last).decode()
            case "steps":
                self.values["a"] = b"1"
                await turn.call(one, b"")
                self.values["a"] = b"2"
                turn.undo()
                turn.undo()
            case "caught":
                try:
                    await turn.call(one, b"")
                except CallError as error:
                    return f"{error.status == Status.TIMEOUT} {error}"
            case "wait":
                await turn.call(one, b"")
            case "stubborn":
                try:
                    await turn.call(one, b"")
                except asyncio.CancelledError:
                    pass
                return "nobody hears it"
            case "leaves one":
                self.kept = turn, turn.start(one, b"")
            case "stray":
                over, pending = self.kept
                try:
                    await pending
                except CallError as error:
                    self.heard.append(int(error.status))
                try:
                    over.push(b"")
                except RuntimeError as error:
                    self.heard.append(str(error))
                return repr(self.heard)
            case "heard":
                return repr(self.heard)
            case "big":
                for _ in range(3):
                    turn.push(b"x" * 400_000)
            case "commits":
                turn.push(b"one")
                await turn.commit()
                await turn.commit()
                turn.push(b"two")
            case "bad numbers":
                for bad in (
                    lambda: turn.start_timer(-1, 1),
                    lambda: turn.start_timer(1, 1e9),
                    lambda: turn.send(Ref(1 << 16, "x"), b""),
                    lambda: turn.push("text"),  # type: ignore[arg-type]
                    lambda: self.values.__setitem__("k", "text"),  # type: ignore[assignment]
                ):
                    try:
                        bad()
                    except (ValueError, TypeError) as error:
                        self.heard.append(type(error).__name__)
                return " ".join(map(str, self.heard))
            case _:
                room = Ref(4, "room")
                turn.send(room, message.payload)
                turn.send_once(room, message.payload)
                turn.push_ids(3, ["a", "b"], message.payload)
                turn.push_ids(3, [], message.payload)
                turn.kick(1000, "bye")
                turn.rebind(Ref(3, "bob"))
                turn.start_timer(1, 1.5)
                turn.stop_timer(1)
                turn.cancel_alarm("x")
                turn.flush_soon()
                turn.passivate()
        return None


class Saver(Actor, kind="saver"):
    """Is not durable, and saves by itself."""

    async def flush(self, turn: Turn, why: Why) -> None:
        if why != Why.PERIODIC:
            raise OSError("the database is away")

    async def receive(self, turn: Turn, message: Message) -> Answer:
        self.values["a"] = b""
        return None


class HostTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        logging.disable(logging.CRITICAL)
        self.folder = tempfile.TemporaryDirectory(prefix="ringhold-host-")
        self.path = self.folder.name + "/host.sock"
        self.nodes: asyncio.Queue[Node] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []
        self.server = await asyncio.start_unix_server(self._come, self.path)
        self.running: asyncio.Task[None] | None = None

    def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.nodes.put_nowait(Node(reader, writer))

    async def afresh(self) -> None:
        await self.asyncTearDown()
        await self.asyncSetUp()

    async def asyncTearDown(self) -> None:
        if self.running is not None:
            self.running.cancel()
            await asyncio.wait([self.running])
        for writer in self.writers:
            writer.close()
        self.server.close()
        self.folder.cleanup()
        logging.disable(logging.NOTSET)

    async def node(self) -> Node:
        async with asyncio.timeout(DEADLINE_S):
            return await self.nodes.get()

    async def serve(self, *codes: type[Actor], **options: object) -> Node:
        self.host = Host("unix:" + self.path, codes, **options)  # type: ignore[arg-type]
        self.running = asyncio.create_task(self.host.run())
        return await self.node()

    async def keeper(self, *more: bytes) -> Node:
        """A keeper that lives."""
        node = await self.serve(Keeper)
        await node.next()
        node.write(welcome("keeper"), activate(1, *more))
        step = await node.step()
        self.assertEqual((step.activation, step.turn, step.done, step.result), (1, 1, True, Result.OK))
        return node

    async def asks(self, node: Node, *cases: tuple[str, bytes]) -> None:
        for number, (payload, reply) in enumerate(cases, 2):
            node.write(message(number, payload))
            step = await node.step()
            self.assertEqual((step.turn, step.done, step.reply), (number, True, reply), payload)

    # ---- the connection

    async def test_the_conversation_of_the_page(self) -> None:
        told = PAGE.read_text("utf-8").partition("## A conversation\n")[2]
        stream = bytes.fromhex("".join(line for line in told.partition("## Conformance\n")[0].splitlines() if line.startswith("    ")))
        frames = [len(f).to_bytes(4, "big") + f for f in wire.Frames().feed(stream)]
        self.assertEqual(len(frames), 11)
        Teller.ended = asyncio.Queue()
        node = await self.serve(Teller, name="game")
        for i, one in enumerate(frames):
            if i in (0, 3, 5, 7, 9):
                self.assertEqual((await node.frame()).hex(" "), one.hex(" "), f"frame {i}")
            else:
                node.writer.write(one)
        self.assertEqual(await asyncio.wait_for(Teller.ended.get(), DEADLINE_S), Why.IDLE)

    async def test_the_hello_says_what_the_kinds_have(self) -> None:
        node = await self.serve(Keeper, Saver, token="secret", turns=2, size=1000)
        hello = Fields(Fields(await node.next()).data(1))
        self.assertEqual((hello.data(5), hello.data(7)), (b"secret", b"\x08\x02\x10\xe8\x07"))
        self.assertEqual(hello.all(6), [b"\x0a\x06keeper\x10\x01\x18\x01\x20\x01", b"\x0a\x05saver\x28\x01"])

    async def test_a_window_is_told_at_any_time(self) -> None:
        node = await self.keeper()
        self.host.window(1, 100)
        self.assertEqual(await node.next(), wire.whole(4, b"\x08\x01\x10\x64"))

    async def test_pings_are_answered_while_turns_wait(self) -> None:
        node = await self.keeper()
        node.write(message(2, "wait"))
        self.assertFalse((await node.step()).done)
        await node.ping(1)
        await node.ping(2)

    async def test_what_waited_comes_with_the_welcome(self) -> None:
        node = await self.serve(Keeper)
        await node.next()
        node.write()  # says nothing, and is allowed
        node.write(welcome("keeper"), activate(1), says(Says.PING, wire.uint(1, 1)))
        self.assertEqual(await node.next(), wire.whole(2, wire.uint(1, 1)))
        self.assertTrue((await node.step()).done)

    async def test_it_comes_again_when_its_node_was_away(self) -> None:
        node = await self.keeper()
        node.write(message(2, "wait"))
        await node.step()
        node.writer.close()
        again = await self.node()
        await again.next()
        again.write(welcome("keeper"), activate(9))
        self.assertEqual((await again.step()).activation, 9)
        await again.ping(1)  # and nothing of the first one

    async def test_it_tries_again_while_another_host_has_its_kinds(self) -> None:
        node = await self.serve(Keeper)
        for _ in range(3):
            await node.next()
            node.write(says(Says.GOODBYE, wire.uint(1, 6), wire.data(2, b"taken")))
            node = await self.node()
        await node.next()
        node.write(welcome("keeper"))
        await node.ping(1)

    async def test_who_is_refused_for_good_ends(self) -> None:
        node = await self.serve(Keeper)
        node.write(says(Says.GOODBYE, wire.uint(1, 3), wire.data(2, b"the token is not the node's")))
        assert self.running is not None
        with self.assertRaisesRegex(Refused, "the token is not"):
            await asyncio.wait_for(self.running, DEADLINE_S)

    async def test_garbage_of_the_node_ends_the_connection(self) -> None:
        for garbage in (
            b"\xff\xff\xff\xff",
            b"\0\0\0\3\xff\xff\xff",
            b"\0\0\0\2\x0a\0",
            frame(b"\x22\x05"),
            frame(welcome("keeper")),
            frame(activate(1)),  # its number is in use
            frame(activate(2, kind=9)),
            frame(turn(Says.FLUSH, 2, wire.uint(3, 77))),
            frame(message(2, "wait"), message(3, "wait")),
        ):
            with self.subTest(garbage):
                await self.afresh()
                node = await self.keeper()
                node.writer.write(garbage)
                self.assertTrue(await node.ended())
                await (await self.node()).next()  # it comes again

    async def test_a_node_that_welcomes_wrongly_is_left(self) -> None:
        for wrong in (welcome("other"), says(Says.WELCOME, wire.uint(1, 2)), says(Says.PING, b""), activate(1)):
            with self.subTest(wrong):
                await self.afresh()
                node = await self.serve(Keeper)
                await node.next()
                node.write(wrong)
                self.assertTrue(await node.ended())

    def test_kinds_that_cannot_be(self) -> None:
        for wrong in ([], [Keeper, Keeper], [Actor]):
            with self.assertRaises(ValueError):
                Host("unix:x", wrong)
        with self.assertRaisesRegex(ValueError, "game is neither"):
            Host("game", [Keeper])
        with self.assertRaises(TypeError):
            type("Both", (Saver,), {}, durable=True)
        with self.assertRaises(TypeError):
            type("Alarms", (Actor,), {"alarm": Keeper.alarm})

    # ---- turns

    async def test_answers(self) -> None:
        node = await self.keeper()
        await self.asks(
            node,
            ("error", b"ERR no such thing"),
            ("code", b"BUSY in a trade"),
            ("number", 13),  # type: ignore[arg-type]  # -7, as sint64
            ("put", b""),
            ("sender", b"None"),
        )
        node.write(message(7, "sender", wire.uint(7, 4), wire.data(8, b"bob")))
        self.assertEqual((await node.step()).reply, b"bob")

    async def test_a_bug_breaks_the_actor_and_drops_what_it_did(self) -> None:
        for payload, fail in (("fail", "ERR the actor failed: KeyError: 'on purpose'"), ("wrong", "ERR the actor failed: TypeError"),
                              ("big", "ERR the actor failed: RuntimeError: a step is bigger")):
            with self.subTest(payload):
                await self.afresh()
                node = await self.keeper()
                node.write(message(2, payload))
                step = await node.step()
                self.assertEqual((step.done, step.kinds, step.fail[: len(fail)]), (True, [], fail))

    async def test_effects_are_in_order(self) -> None:
        node = await self.keeper()
        node.write(message(2, "all of them"))
        step = await node.step()
        self.assertEqual(step.kinds, [2, 3, 5, 6, 7, 13, 14, 12, 15, 16])
        self.assertEqual((step.fields(2).uint(1), step.fields(2).all(2)), (3, [b"a", b"b"]))
        self.assertEqual((step.fields(3).uint(2), step.fields(3).data(3)), (1000, b"bye"))
        self.assertEqual((step.fields(5).uint(1), step.fields(5).uint(2), step.fields(5).uint(3)), (1, 1500, 0))

    async def test_numbers_and_types_that_cannot_be_said_are_errors_at_once(self) -> None:
        node = await self.keeper()
        await self.asks(node, ("bad numbers", b"ValueError ValueError ValueError TypeError TypeError"), ("values", b""))

    async def test_commands_come_as_arguments(self) -> None:
        class Command(Actor, kind="command"):
            async def receive(self, turn: Turn, message: Message) -> Answer:
                return b",".join(message.arguments)

        node = await self.serve(Command)
        await node.next()
        node.write(welcome("command"), activate(1))
        await node.step()
        node.write(message(2, "", wire.whole(4, b"SET"), wire.whole(4, b""), wire.whole(4, b"v")))
        self.assertEqual((await node.step()).reply, b"SET,,v")

    async def test_values_are_kept_and_undone(self) -> None:
        node = await self.keeper(wire.whole(9, wire.data(1, b"b") + wire.data(2, b"old")), wire.whole(9, wire.data(1, b"a")))
        await self.asks(
            node,
            ("values", b"a= b=old"),
            ("put", b""),
            ("values", b"a=1"),
            ("undo", b""),
            ("values", b"a=1"),
            ("clear", b""),
            ("values", b""),
        )

    async def test_only_what_was_not_said_yet_is_undone(self) -> None:
        node = await self.keeper()
        node.write(message(2, "steps"))
        self.assertEqual((await node.step()).kinds, [Effect.PUT, Effect.CALL])
        node.write(answer(1, b""))
        self.assertEqual((await node.step()).kinds, [Effect.PUT, Effect.UNDO])
        node.write(message(3, "values"))
        self.assertEqual((await node.step()).reply, b"a=1")

    async def test_an_error_undoes_what_nobody_waits_for(self) -> None:
        node = await self.keeper()
        await self.asks(node, ("put", b""), ("puts and fails", b"ERR not this"), ("values", b"a=2"), ("put", b""))
        node.write(message(6, "puts and fails", wire.uint(5, 1)))
        self.assertEqual((await node.step()).kinds, [Effect.PUT, Effect.UNDO])
        node.write(message(7, "values"))
        self.assertEqual((await node.step()).reply, b"a=1")
        node.write(message(8, "takes back"))
        self.assertEqual((await node.step()).kinds, [Effect.SEND_ONCE, Effect.UNDO])

    async def test_a_kind_that_is_not_durable_has_no_values(self) -> None:
        node = await self.serve(Saver)
        await node.next()
        node.write(welcome("saver"), activate(1))
        self.assertTrue((await node.step()).done)
        node.write(message(2, ""))
        self.assertEqual((await node.step()).fail, "ERR the actor failed: RuntimeError: this kind is not durable")

    async def test_alarms_are_kept_and_go_off(self) -> None:
        node = await self.keeper(wire.whole(10, wire.data(1, b"wake") + wire.uint(2, 7000)))
        await self.asks(node, ("alarms", b"wake@7.0"), ("alarm", b""), ("alarms", b"wake@7.0 tea@5.001"))
        rings = [wire.data(3, b"tea"), wire.uint(5, 5001)]
        node.write(turn(Says.ALARM, 5, *rings, wire.data(4, b"fail")))
        self.assertEqual((await node.step()).result, Result.FAILED)
        node.write(message(6, "values"))
        self.assertEqual((await node.step()).reply, b"")
        for number, (payload, left) in enumerate(((b"again", b"wake@7.0 tea@5.001"), (b"x", b"wake@7.0"))):
            node.write(turn(Says.ALARM, 7 + 2 * number, *rings, wire.data(4, payload)))
            step = await node.step()
            self.assertEqual((step.result, step.kinds[0]), (Result.OK, Effect.PUT))
            node.write(message(8 + 2 * number, "alarms"))
            self.assertEqual((await node.step()).reply, left)

    async def test_timers_and_clients(self) -> None:
        node = await self.keeper()
        node.write(turn(Says.TIMER, 2, wire.uint(3, 7)))
        self.assertEqual((await node.step()).fields(0).data(2), b"tick 7")
        node.write(turn(Says.SESSION, 3, wire.uint(3, 1), wire.uint(5, 50)))
        self.assertEqual((await node.step()).fields(0).uint(1), 50)
        node.write(turn(Says.SESSION, 4, wire.uint(3, 2), wire.uint(5, 51), wire.uint(6, 50)))
        self.assertEqual((await node.step()).result, Result.FAILED)

    async def test_calls_go_side_by_side(self) -> None:
        node = await self.keeper()
        node.write(message(2, "many"))
        step = await node.step()
        self.assertEqual((step.done, step.kinds), (False, [1, 1]))
        self.assertEqual((step.fields(1).data(3), step.fields(1).uint(5)), (b"two", 5000))
        node.write(answer(1, b"a"))
        node.write(answer(2, b"b"))
        self.assertEqual((await node.step()).reply, b"ab")

    async def test_a_call_that_is_not_answered(self) -> None:
        node = await self.keeper()
        for number, (payload, reply) in enumerate((("caught", b"True TIMEOUT no answer"), ("wait", b"TIMEOUT no answer")), 2):
            node.write(message(number, payload))
            await node.step()
            node.write(answer(number - 1, b"TIMEOUT no answer", 9), answer(99, b"of no call"))
            self.assertEqual((await node.step()).reply, reply)

    async def test_a_turn_that_is_over_says_and_hears_nothing(self) -> None:
        node = await self.keeper()
        await self.asks(node, ("leaves one", b""), ("stray", b"[8, 'the turn is over']"))

    async def test_what_was_committed_is_said_at_once(self) -> None:
        node = await self.keeper()
        node.write(message(2, "commits"))
        first, last = await node.step(), await node.step()
        self.assertEqual((first.kinds, first.done, last.kinds, last.done), ([4], False, [4], True))

    async def test_turns_that_are_stale_are_dropped(self) -> None:
        node = await self.keeper()
        node.write(message(2, "number"))
        await node.step()
        node.write(message(2, "number"), message(1, "number"), message(3, "values"), message(5, "number", activation=77))
        self.assertEqual((await node.step()).turn, 3)
        await node.ping(1)

    # ---- a life

    async def test_a_state_moves(self) -> None:
        for state, result in ((b"moved", Result.OK), (b"busy", Result.BUSY), (b"cold", Result.COLD)):
            with self.subTest(state):
                await self.afresh()
                node = await self.keeper(wire.uint(6, 1), wire.data(7, state))
                node.write(turn(Says.HANDOFF, 2))
                step = await node.step()
                self.assertEqual((step.result, step.state), (result, state if result == Result.OK else b""))
                node.write(says(Says.RESUME, wire.uint(1, 1)), message(3, "heard"))
                self.assertEqual((await node.step()).reply, b"['resumed']")

    async def test_an_actor_that_cannot_be_made_is_forgotten(self) -> None:
        node = await self.keeper()
        node.write(activate(2, wire.uint(6, 1), wire.data(7, b"bad")))
        step = await node.step()
        self.assertEqual((step.activation, step.result, step.kinds, step.fail), (2, Result.FAILED, [], ""))
        node.write(message(2, "number", activation=2), activate(2))  # forgotten: the number is free
        self.assertEqual((await node.step()).result, Result.OK)

    async def test_a_turn_ends_with_its_life(self) -> None:
        for payload in ("wait", "stubborn"):
            with self.subTest(payload):
                await self.afresh()
                node = await self.keeper()
                node.write(message(2, payload))
                await node.step()
                node.write(says(Says.DEACTIVATE, wire.uint(1, 1), wire.uint(2, Why.FENCED)), activate(2))  # the same id, at once
                self.assertEqual((await node.step()).activation, 2)
                await node.ping(1)  # and nothing of the first one

    async def test_a_life_that_ends_before_it_began_is_not_told(self) -> None:
        node = await self.keeper()
        node.write(activate(2), says(Says.DEACTIVATE, wire.uint(1, 2)))
        await node.ping(1)

    async def test_a_flush_that_fails_is_said(self) -> None:
        node = await self.serve(Saver)
        await node.next()
        node.write(welcome("saver"), activate(1))
        await node.step()
        for number, (why, result) in enumerate(((Why.MOVED, Result.FAILED), (Why.PERIODIC, Result.OK)), 2):
            node.write(turn(Says.FLUSH, number, wire.uint(3, why)))
            step = await node.step()
            self.assertEqual((step.result, step.fail), (result, ""))

    async def test_ends_are_told_when_the_host_ends(self) -> None:
        Teller.ended = asyncio.Queue()
        node = await self.serve(Teller)
        await node.next()
        node.write(welcome("player"), activate(1), activate(2))
        await node.step()
        await node.step()
        assert self.running is not None
        self.running.cancel()
        await asyncio.wait([self.running])
        self.assertEqual([Teller.ended.get_nowait() for _ in range(2)], [Why.BROKEN] * 2)


if __name__ == "__main__":
    unittest.main()
