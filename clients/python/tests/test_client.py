# SPDX-License-Identifier: Apache-2.0
"""How long the client waits, and what it sends, on a clock and a line of this test."""

import asyncio
import struct
import unittest
from collections.abc import Coroutine
from typing import Any

from ringhold import Client, KickedError, RingholdError, Status
from ringhold.packets import HEAD, Flag, Type, packet

BIND = 0x7FFFFFFF


class Line:
    """A transport that keeps what is written."""

    def __init__(self, protocol: Any) -> None:
        self.protocol, self.sent, self.unread, self.closed = protocol, [], 0, False

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.closed = True

    def hears(self, type_: int, form: str = "", *fields: Any, more: bytes = b"") -> None:
        self.protocol.data_received(packet(type_, struct.pack(">" + form, *fields) + more))

    def greets(self, largest: int = 65536, flags: int = 0, heartbeat_ms: int = 0) -> None:
        self.hears(Type.HELLO_ACK, "BBHIIIQ", 1, 0, flags, heartbeat_ms, largest, 1024, 1)

    def answers(self, name: int, status: int, payload: bytes = b"", retry_ms: int = 0) -> None:
        self.hears(Type.RESPONSE, "IBI", name, status, retry_ms, more=payload)

    def hangs_up(self) -> None:
        self.protocol.connection_lost(None)


class Loop(asyncio.SelectorEventLoop):
    """Time goes by only when there is nothing else to do, and then at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.lines: asyncio.Queue[Line] = asyncio.Queue()
        self._selector.select = self.skip  # type: ignore[method-assign]

    def skip(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing will ever happen"
        self.now += timeout + (1e-6 if timeout > 0 else 0)
        return []

    def time(self) -> float:
        return self.now

    async def create_connection(self, factory: Any, *_: Any, **__: Any) -> Any:
        line = Line(factory())
        self.lines.put_nowait(line)
        line.protocol.connection_made(line)
        return line, line.protocol


def run(test: Coroutine[Any, Any, None], loop: Loop) -> None:
    try:
        loop.run_until_complete(test)
    finally:
        loop.close()


class Waits(unittest.TestCase):
    def setUp(self) -> None:
        self.loop = Loop()

    def play(self, test: Coroutine[Any, Any, None]) -> None:
        run(test, self.loop)

    async def dials(self) -> Line:
        """The next line that it dials."""
        return await self.loop.lines.get()

    async def ready(self, client: Client) -> Line:
        connecting = asyncio.ensure_future(client.connect())
        line = await self.dials()
        line.greets()
        await connecting
        return line

    def test_a_gateway_that_greets_and_hangs_up_is_as_good_as_none(self) -> None:
        async def test() -> None:
            line = await self.ready(client := Client("a:1", draw=lambda: 0.999))
            waits = []
            for _ in range(8):
                line.hangs_up()
                begun = self.loop.now
                line = await self.dials()
                waits.append(self.loop.now - begun)
                line.greets()
                self.assertEqual(client.state, "ready")
            for before, wait in zip(waits[:5], waits[1:6]):
                self.assertGreater(wait, 1.9 * before, waits)
            self.assertTrue(9 < waits[7] <= 10.1, waits)
            await asyncio.sleep(10.1)  # one that lasted ends the row
            line.hangs_up()
            begun = self.loop.now
            line = await self.dials()
            self.assertLess(self.loop.now - begun, 0.3)
            line.greets()
            line.hears(Type.GOAWAY, "I", 0xFFFFFFFF)  # nobody is sent away for longer than an hour, and twice that
            begun = self.loop.now
            await self.dials()
            self.assertTrue(3600 <= self.loop.now - begun <= 7201)
            client.close()

        self.play(test())

    def test_one_that_does_not_read_gets_no_more_pongs(self) -> None:
        async def test() -> None:
            line = await self.ready(client := Client("a:1"))
            sent = len(line.sent)
            line.hears(Type.PING, more=bytes(64))
            self.assertEqual(len(line.sent), sent + 1)
            line.unread = 1 << 20
            line.hears(Type.PING, more=bytes(64))
            self.assertEqual(len(line.sent), sent + 1)
            line.hears(Type.PING, more=bytes(65))
            self.assertTrue(line.closed)
            client.close()

        self.play(test())

    def test_what_may_have_run_is_not_sent_again_by_itself(self) -> None:
        async def test() -> None:
            line = await self.ready(client := Client("a:1"))
            plain, twice = client.request("x", "a"), client.request("x", "b", idempotent=True)
            line.hangs_up()
            never = client.request("x", "c")
            with self.assertRaises(RingholdError) as caught:
                await plain
            self.assertTrue(caught.exception.may_have_run and caught.exception.status is Status.UNKNOWN)
            line = await self.dials()
            line.greets()
            self.assertEqual([out[HEAD + 9 :] for out in line.sent[1:]], [b"b", b"c"])
            line.answers(2, Status.OK, b"B")
            line.answers(3, 99, b"later")
            self.assertEqual(await twice, b"B")
            with self.assertRaises(RingholdError) as caught:
                await never
            self.assertTrue(caught.exception.may_have_run)
            client.close()

        self.play(test())

    def test_a_session_that_is_kept_runs_each_once(self) -> None:
        async def test() -> None:
            client = Client("a:1")
            bound = client.bind("me", kind=7)
            connecting = asyncio.ensure_future(client.connect())
            line = await self.dials()
            line.greets()
            self.assertEqual(line.sent[-1][HEAD + 4], Flag.KEEP)
            line.answers(BIND, Status.OK, bytes(24) + struct.pack(">QI", 1, 30000))
            await bound
            await connecting
            asked = client.request("me", "a", kind=7)
            line.hangs_up()
            line = await self.dials()
            line.greets()
            self.assertEqual(line.sent[-1][0], Type.RESUME)
            line.answers(BIND, Status.OK, bytes(24) + struct.pack(">QI", 1, 30000))
            self.assertEqual(line.sent[-1][HEAD + 4], Flag.AGAIN)
            pushed: list[tuple[bytes, int, int]] = []
            client.on_push = lambda *push: pushed.append(push)
            for sequence in (1, 1, 3):
                line.hears(Type.PUSH, "Q", sequence, more=b"hi")
            self.assertEqual(pushed, [(b"hi", 1, 0), (b"hi", 3, 1)])
            line.answers(1, Status.OK, b"A")
            self.assertEqual(await asked, b"A")
            await asyncio.sleep(1)
            self.assertEqual(line.sent[-1], packet(Type.ACK, struct.pack(">QI", 3, 2)))
            line.hears(Type.KICK, "I", 1000, more=b"bye")
            with self.assertRaises(KickedError):
                await client.request("me", "b", kind=7)

        self.play(test())

    def test_what_is_wrong_is_refused_at_once(self) -> None:
        async def test() -> None:
            for gateways in ("", "a", "a:x", "ws://a:1", []):
                with self.assertRaises(ValueError, msg=gateways):
                    Client(gateways)
            line = await self.ready(client := Client("a:1", requests_max=1))
            for wrong in ({"id": ""}, {"id": "x" * 256}, {"id": "x", "kind": 65536}, {"id": "x", "deadline": -1}):
                with self.assertRaises(ValueError, msg=wrong):
                    client.request(**wrong)
            for payload, status in (("x" * 65536, Status.BAD_REQUEST), ("x", None), ("y", Status.OVERLOADED)):
                asked = client.request("x", payload)
                if status is not None:
                    with self.assertRaises(RingholdError) as caught:
                        await asked
                    self.assertEqual((caught.exception.status, caught.exception.may_have_run), (status, False))
            self.assertEqual(client.pending, 1)
            line.answers(1, Status.OK)
            client.close()

        self.play(test())

    def test_who_is_connected_is_connected_at_once(self) -> None:
        async def test() -> None:
            await self.ready(client := Client("a:1"))
            await client.connect()
            client.close()

        self.play(test())

    def test_a_heartbeat_of_no_gateway_is_a_second(self) -> None:
        async def test() -> None:
            connecting = asyncio.ensure_future((client := Client("a:1")).connect())
            line = await self.dials()
            line.greets(heartbeat_ms=1)
            await connecting
            await asyncio.sleep(0.9)
            self.assertEqual(len(line.sent), 1)
            await asyncio.sleep(0.9)
            self.assertEqual((line.sent[1:], line.closed), ([packet(Type.PING)], False))
            client.close()

        self.play(test())

    def test_names_end_before_those_of_the_session(self) -> None:
        async def test() -> None:
            line = await self.ready(client := Client("a:1"))
            client._last_name = 0x7FFFFEFF
            last = client.request("x")
            line.answers(0x7FFFFF00, Status.OK, b"last")
            self.assertEqual(await last, b"last")
            with self.assertRaises(RingholdError) as caught:
                client.notify("x")
            self.assertIs(caught.exception.status, Status.OVERLOADED)
            client.close()
            line = await self.ready(client)
            client.notify("x")
            self.assertEqual(line.sent[-1][HEAD : HEAD + 4], b"\0\0\0\1")
            client.close()

        self.play(test())

    def test_a_callback_that_fails_ends_nothing(self) -> None:
        async def test() -> None:
            failed: list[Any] = []
            self.loop.set_exception_handler(lambda _, context: failed.append(context["exception"]))
            client = Client("a:1")
            client.on_ready = lambda: 1 / 0
            line = await self.ready(client)
            self.assertIsInstance(failed[0], ZeroDivisionError)
            asked = client.request("x")
            line.answers(1, Status.OK, b"still here")
            self.assertEqual(await asked, b"still here")
            client.close()

        self.play(test())
