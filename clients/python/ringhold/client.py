# SPDX-License-Identifier: Apache-2.0
"""The client: dials, greets, asks, and stays connected. One event loop; no thread of its own.

    idle -connect-> waiting -its time has come-> dialling -> greeting -hello-ack, auth-ok, bound-> ready
    ready -goaway-> leaving -all is answered-> waiting, for another gateway
    any -the line drops-> waiting        any -kicked for good, close()-> ended
"""

from __future__ import annotations

import asyncio
import random
import ssl as tls
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from .packets import BODY_MAX, HEAD, Flag, InvalidPacket, Packets, Status, Type, asking, packet

VERSION = 1
SESSION_SIZE = 24
BEGUN = struct.Struct(">24sQI")
AUTH_OK = struct.Struct(">QHB")
NAME_BIND = 0x7FFFFFFF
NAME_UNBIND = 0x7FFFFFFE
NAME_MAX = 0x7FFFFF00  # of a request
ACK_AFTER = 0.5
ACK_COUNT = 16
ACK_SIZE = 16 * 1024
AGAIN_AFTER = 0.2
LEAVE_WITHIN = 10.0
OWED_QUIET = 10.0
HEARTBEAT_LEAST = 1.0  # less is no gateway's
BODY_LEAST = 512  # less is no gateway's largest body
PING_MAX = 64
RETRY_MAX = 3600.0  # nobody is sent away for longer
UNREAD_MAX = 64 * 1024  # of a gateway that does not read: it gets no more pongs and acks
KICK_TOO_LARGE = 101
MAY_HAVE_RUN = (Status.ACTOR_FAILED, Status.UNKNOWN, Status.TIMEOUT)
# After these kicks it comes again: the way there took too long, or the gateway had no memory.
PASSING_KICKS = (102, 104, 105, 106)
# What it showed to say who it is was no good.
LOGIN_KICKS = range(107, 114)

Bytes = bytes | bytearray | memoryview | str


class RingholdError(Exception):
    """A request that has no good answer."""

    def __init__(self, status: int, payload: bytes = b"", retry_after: float = 0.0) -> None:
        try:
            self.status, name = Status(status), Status(status).name
        except ValueError:  # a later version's
            self.status, name = Status.UNKNOWN, f"status {status}"
        said = payload.decode("utf-8", "replace")
        super().__init__(f"{name}: {said}" if said else name)
        self.payload = payload  # what the gateway or the actor says about it
        self.retry_after = retry_after  # seconds after which asking again may do better; 0 = now or never
        self.may_have_run = self.status in MAY_HAVE_RUN  # False: it did not run and never will


class KickedError(Exception):
    """The gateway sent the client away for good (docs/protocol-client.md has the codes), or it was closed (code 0)."""

    def __init__(self, code: int, why: str) -> None:
        super().__init__(why if code == 0 else f"kicked with {code}: {why}")
        self.code = code


class Entity(NamedTuple):
    """Who the gateway says that we are."""

    id: bytes
    kind: int
    expires: int  # seconds since 1970; of the token


def _bytes(value: Bytes | None) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else bytes(value)


def _actor_id(value: Bytes) -> bytes:
    raw = _bytes(value)
    if not 1 <= len(raw) <= 255:
        raise ValueError("an id has 1 to 255 bytes")
    return raw


@dataclass(slots=True, eq=False)
class _Entry:
    """What was asked and has no answer. A notify has no future, and is forgotten once it is sent."""

    name: int
    out: bytearray
    future: asyncio.Future[bytes] | None
    idempotent: bool
    sent: bool = False
    here: bool = False  # on this line
    former: bool = False  # on an earlier one
    kept: bool = False  # in a session that outlives its line
    timer: asyncio.TimerHandle | None = None

    def mark(self, again: bool) -> None:
        """It is sent again, or for the first time."""
        flags = self.out[HEAD + 4] & ~Flag.AGAIN
        self.out[HEAD + 4] = flags | (Flag.AGAIN if again and self.sent and self.kept else 0)


@dataclass(slots=True, eq=False)
class _Session:
    """What it is bound to, or wants to be."""

    id: bytes
    kind: int
    settle: asyncio.Future[None] | None
    state: str = "wanted"  # then asked or resuming, held, leaving
    plain: bool = False  # it ends with its line
    name: bytes | None = None  # to resume it
    pushed: int = 0
    was_held: bool = False
    waits: bool = False  # for answers, to be asked
    unacked: int = 0
    unacked_size: int = 0
    left: asyncio.Future[None] | None = None


class _Line(asyncio.Protocol):
    """A connection. What comes after drop() is not heard."""

    def __init__(self, client: Client, packets: Packets) -> None:
        self.client: Client | None = client
        self.packets = packets
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self.client is None:
            self.transport.abort()
        else:
            self.client._opened()

    def data_received(self, data: bytes) -> None:
        if self.client is not None:
            self.client._received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.client is not None:
            self.client._lost("the gateway closed the connection" if exc is None else str(exc))

    def unread(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def send(self, data: bytes | bytearray) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def drop(self) -> None:
        self.client = None
        if self.task is not None:
            self.task.cancel()
        if self.transport is not None:
            self.transport.abort()


def _where(gateway: str) -> tuple[str, int, bool]:
    """Host, port, and whether by TLS."""
    url = urlsplit(gateway if "://" in gateway else f"tcp://{gateway}")
    if url.scheme not in ("tcp", "tls") or not url.hostname or url.port is None:
        raise ValueError(f"{gateway}: a gateway is HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT")
    return url.hostname, url.port, url.scheme == "tls"


def _nothing(*_: Any) -> None:
    pass


class Client:
    """A client of a fleet: give it gateways, connect() it, ask.

    All times are in seconds. Its methods may be called in one event loop only, from coroutines and callbacks alike; none
    of them waits. An exception of a callback goes to the loop's exception handler.
    """

    def __init__(
        self,
        gateways: str | Iterable[str],
        *,
        token: Bytes = "",
        ssl: tls.SSLContext | None = None,
        requests_max: int = 1024,
        out_max: int = 1024 * 1024,
        packet_max: int = 1024 * 1024 + 64,
        answer_timeout: float = 15.0,
        greet_timeout: float = 10.0,
        back_off: tuple[float, float] = (0.2, 10.0),
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Gateways are tried in turn, from one that is drawn.

        token: shown to gateways that ask: a token, or what the game's login takes, up to 1024 bytes
        ssl: for tls:// gateways (the system's certificates)
        requests_max, out_max: requests without an answer at a time, and the bytes of all these
        packet_max: bytes of the largest packet that is taken
        answer_timeout: after which a request ends, answered or not
        back_off: of the first try after a failure, then doubled up to the second number
        draw: of jitter, 0 to 1
        """
        self._gateways = [g.strip() for g in (gateways.split(",") if isinstance(gateways, str) else gateways)]
        if not self._gateways:
            raise ValueError("a client has gateways to go to")
        for gateway in self._gateways:
            _where(gateway)
        self._token = _bytes(token)
        self._ssl = ssl
        self._requests_max, self._out_max, self._packet_max = requests_max, out_max, packet_max
        self._answer_timeout, self._greet_timeout, self._back_off = answer_timeout, greet_timeout, back_off
        self._draw = draw
        self._state = "idle"
        self._turn = int(draw() * len(self._gateways))
        self._line: _Line | None = None
        self._failures = 0
        self._ready_at = 0.0
        self._body_max = BODY_MAX  # of a packet, as the gateway said last
        self._told_max = 0  # bytes of the largest notify that went out on this line
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._retry_after = 0.0
        self._greeted = self._known = self._pinged = False
        self._heartbeat = self._heard_at = 0.0
        self._asked: dict[int, _Entry] = {}  # by name, in the order in which they were asked
        self._size = 0  # bytes of these
        self._last_name = 0
        self._home: tuple[bytes, int] | None = None  # what we were bound to before we were rebound
        self._session: _Session | None = None
        self._attempts = 0  # resumes that were sent, of all sessions
        self._given: bytes | None = None  # a token, by the gateway that knew us last: shown instead of ours
        self._showed_given = False
        self._connecting: asyncio.Future[None] | None = None

        self.on_push: Callable[[bytes, int, int], object] = _nothing
        """A push came: payload, its sequence, how many before it are lost."""
        self.on_known: Callable[[Entity], object] = _nothing
        """The gateway says who we are, in each connection that asks for a token."""
        self.on_rebound: Callable[[Entity], object] = _nothing
        """Our actor lets us go on as another entity, and on_bound follows. Ask that one from here on."""
        self.on_ready: Callable[[], object] = _nothing
        """Ready to ask: also each time that it is back."""
        self.on_bound: Callable[[bool], object] = _nothing
        """Bound. True: the actor begins a session with us; else ours goes on unharmed."""
        self.on_begun: Callable[[], object] = _nothing
        """The actor was lost and begun afresh: what it knew of us is gone."""
        self.on_lost: Callable[[str], object] = _nothing
        """The line is gone, and why; it dials again."""
        self.on_goaway: Callable[[float, str], object] = _nothing
        """The gateway stops, and it goes to another one, after so many seconds."""
        self.on_kicked: Callable[[KickedError], object] = _nothing
        """Sent away for good."""
        self.on_refused: Callable[[RingholdError], object] = _nothing
        """The bind of an earlier connection was refused in this one."""

    @property
    def state(self) -> str:
        """idle, waiting, dialling, greeting, ready, leaving or ended."""
        return self._state

    @property
    def gateway(self) -> str:
        """The gateway that it is at, or goes to."""
        return self._gateways[self._turn % len(self._gateways)]

    @property
    def pending(self) -> int:
        """Requests and notifies without an answer."""
        return len(self._asked)

    def set_token(self, token: Bytes) -> None:
        """Show this one from the next connection on."""
        self._token = _bytes(token)
        self._given = None

    async def connect(self) -> None:
        """Go and stay connected. Returns when the first gateway takes us; KickedError: none ever will."""
        if self._state in ("ready", "leaving"):
            return
        if self._connecting is None:
            self._connecting = self._loop().create_future()
            self._connecting.add_done_callback(lambda f: f.cancelled() or f.exception())
        connecting = self._connecting
        if self._state in ("idle", "ended"):
            if self._state == "ended":
                self._last_name = 0
            self._failures = 0
            self._dial_in(0)
        await asyncio.shield(connecting)

    async def __aenter__(self) -> Client:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def request(
        self, id: Bytes, payload: Bytes | None = None, *, kind: int = 0, idempotent: bool = False, deadline: float = 0.0
    ) -> asyncio.Future[bytes]:
        """Ask an entity; await what is returned for the answer, or a RingholdError.

        Requests to one entity run in the order of these calls. A request that is not awaited is sent all the same.
        idempotent: it may run more than once, and is sent again after anything. deadline: for the gateway to answer in;
        0 = its own. ValueError: there is no such id, kind or deadline.
        """
        future: asyncio.Future[bytes] = self._loop().create_future()
        try:
            self._ask(Type.REQUEST, id, payload, kind, idempotent, deadline, future)
        except (RingholdError, KickedError) as error:
            future.set_exception(error)
        return future

    def notify(
        self, id: Bytes, payload: Bytes | None = None, *, kind: int = 0, idempotent: bool = False, deadline: float = 0.0
    ) -> None:
        """Tell an entity something, in order with its requests; nobody says what became of it.

        RingholdError: it is too large, or too much is under way. KickedError: the client is closed.
        """
        self._ask(Type.NOTIFY, id, payload, kind, idempotent, deadline, None)

    def bind(self, id: Bytes, *, kind: int = 0) -> asyncio.Future[None]:
        """Be bound to this entity, in this connection and the next ones. Best called before connect()."""
        if self._session is not None:
            raise RuntimeError("it is bound already")
        self._session = _Session(_actor_id(id), kind, self._loop().create_future())
        future = cast("asyncio.Future[None]", self._session.settle)
        if self._state == "ready":
            self._ask_session()
        return future

    def unbind(self) -> asyncio.Future[None]:
        """End that."""
        s = self._session
        if s is None or s.left is not None:
            raise RuntimeError("it is not bound")
        left = s.left = self._loop().create_future()
        if s.state == "held":
            s.state = "leaving"
            self._send(packet(Type.UNBIND, struct.pack(">I", NAME_UNBIND)))
        elif s.state == "wanted":
            self._unbound()
        # else when its answer is here
        return left

    def close(self) -> None:
        """Hang up. What has no answer ends as UNKNOWN (it was sent) or MOVING (it never ran)."""
        if self._state != "ended":
            self._end(KickedError(0, "the client was closed"), tell=False)

    # ---- asking

    @staticmethod
    def _loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def _ask(
        self, type_: Type, id: Bytes, payload: Bytes | None, kind: int, idempotent: bool, deadline: float,
        future: asyncio.Future[bytes] | None,
    ) -> None:  # fmt: skip
        if self._state == "ended":
            raise KickedError(0, "the client was closed")
        if not 0 <= kind <= 0xFFFF or not 0 <= deadline < 2**22:
            raise ValueError("a kind is a number below 65536, a deadline is below 48 days")
        if self._last_name == NAME_MAX:
            raise RingholdError(Status.OVERLOADED, b"all names are used: close, and connect")
        name = self._last_name + 1
        flags = Flag.IDEMPOTENT if idempotent else 0
        ms = int(deadline * 1000) or int(deadline > 0)
        out = asking(type_, name, _actor_id(id), _bytes(payload), kind=kind, flags=flags, deadline_ms=ms)
        if len(self._asked) >= self._requests_max or self._size + len(out) > self._out_max:
            raise RingholdError(Status.OVERLOADED, b"too much is under way", AGAIN_AFTER)
        if len(out) > HEAD + self._body_max:
            raise RingholdError(*self._too_large())
        self._last_name = name
        entry = _Entry(name, bytearray(out), future, idempotent)
        self._asked[name] = entry
        self._size += len(out)
        entry.timer = self._loop().call_later(self._answer_timeout, self._too_late, entry)
        self._flush()

    def _too_late(self, entry: _Entry) -> None:
        self._settle(entry, Status.TIMEOUT if entry.sent else Status.MOVING)
        self._bind_if_it_waits()
        self._leave_if_done()

    def _too_large(self) -> tuple[Status, bytes]:
        return Status.BAD_REQUEST, f"the gateway takes {self._body_max} bytes".encode()

    def _forget(self, entry: _Entry) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        if self._asked.pop(entry.name, None) is not None:
            self._size -= len(entry.out)

    def _settle(self, entry: _Entry, status: int, payload: bytes = b"", retry_after: float = 0.0) -> None:
        self._forget(entry)
        if entry.future is None or entry.future.done():
            return
        if status == Status.OK:
            entry.future.set_result(payload)
        else:
            entry.future.set_exception(RingholdError(status, payload, retry_after))

    def _flush(self) -> None:
        # Behind a bind that is not answered yet nothing is sent: it would run even if that is refused.
        s = self._session
        if self._state != "ready" or (s is not None and s.state not in ("held", "leaving")):
            return
        kept = s is not None and s.name is not None
        for entry in list(self._asked.values()):
            if entry.here:
                continue
            entry.here = True
            self._send(entry.out)
            entry.sent = True
            entry.kept = kept
            if entry.future is None:
                self._told_max = max(self._told_max, len(entry.out))
                self._forget(entry)

    def _least(self) -> int:
        """All before this name are answered."""
        return next((e.name for e in self._asked.values() if e.future is not None), self._last_name + 1)

    def _owes(self) -> bool:
        return any(entry.here for entry in self._asked.values())

    def _send(self, data: bytes | bytearray) -> None:
        if self._line is not None:
            self._line.send(bytes(data))

    def _is_read(self) -> bool:
        """Does the gateway read? One that floods us and does not must not fill our memory."""
        return self._line is not None and self._line.unread() < UNREAD_MAX

    def _tell(self, callback: Callable[..., object], *arguments: Any) -> None:
        try:
            callback(*arguments)
        except Exception as error:  # noqa: BLE001 - the game's own, and not ours to end by
            self._loop().call_exception_handler({"message": f"a callback of {self!r} failed", "exception": error})

    # ---- timers

    def _after(self, name: str, seconds: float, run: Callable[[], None]) -> None:
        def rings() -> None:
            del self._timers[name]
            run()

        self._stop(name)
        self._timers[name] = self._loop().call_later(seconds, rings)

    def _stop(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _jittered(self, least: float) -> float:
        return least + self._draw() * least

    # ---- the line

    def _dial_in(self, seconds: float) -> None:
        self._state = "waiting"
        self._after("dial", seconds, self._dial)

    def _dial(self) -> None:
        host, port, by_tls = _where(self.gateway)
        line = self._line = _Line(self, Packets(self._packet_max))
        context = (self._ssl or tls.create_default_context()) if by_tls else None

        async def go() -> None:
            try:
                await self._loop().create_connection(lambda: line, host, port, ssl=context)
            except (OSError, UnicodeError) as error:  # the latter of a host's name
                if line.client is not None:
                    line.task = None
                    self._lost(str(error))

        self._state = "dialling"
        self._after("greet", self._greet_timeout, lambda: self._lost("the gateway did not greet in time"))
        line.task = self._loop().create_task(go())

    def _opened(self) -> None:
        self._state = "greeting"
        self._heard_at = self._loop().time()
        self._send(packet(Type.HELLO, struct.pack(">HBBH", 0x5248, VERSION, VERSION, 0)))

    def _received(self, line: _Line, data: bytes) -> None:
        self._heard_at = self._loop().time()
        self._pinged = False
        try:
            for type_, body in line.packets.take(data):
                self._hear(type_, body)
                if self._line is not line:  # it gave up meanwhile
                    return
        except (InvalidPacket, struct.error):
            self._lost("the gateway sent an invalid packet")

    def _drop_line(self) -> None:
        for name in list(self._timers):
            self._stop(name)
        if self._line is not None:
            self._line.drop()
        self._line = None
        self._greeted = self._known = self._pinged = False

    def _lost(self, why: str) -> None:
        # A gateway that greets and hangs up is as good as none: only one that lasted ends a row.
        lowest, highest = self._back_off
        if self._state in ("ready", "leaving") and self._loop().time() - self._ready_at >= highest:
            self._failures = 0
        self._drop_line()
        s = self._session
        if s is not None:
            s.plain = False  # the next gateway may be a newer one
            if s.state == "leaving" or s.left is not None:
                self._unbound()
            else:
                s.state = "wanted"
        self._rewind(self._session is not None and self._session.name is not None)
        wait = self._draw() * min(highest, lowest * 2 ** min(self._failures, 16))
        if self._retry_after > 0:
            wait = self._jittered(self._retry_after)
        self._retry_after = 0.0
        self._failures += 1
        self._turn += 1
        self._dial_in(wait)
        self._tell(self.on_lost, why)

    def _rewind(self, keeps: bool) -> None:
        """From the oldest on, again: what never ran, what the session runs once, what may run twice."""
        self._told_max = 0
        for entry in list(self._asked.values()):
            entry.here = False
            entry.former = entry.sent
            if entry.sent and not (keeps and entry.kept) and not entry.idempotent:
                self._settle(entry, Status.UNKNOWN)

    def _limit(self, body_max: int) -> None:
        """The gateway says what it takes: what is larger does not go out."""
        self._body_max = min(body_max, BODY_MAX)
        for entry in list(self._asked.values()):
            if len(entry.out) > HEAD + self._body_max:
                status, payload = self._too_large()
                self._settle(entry, Status.UNKNOWN if entry.sent else status, payload)

    def _blame(self) -> bool:
        """Something that went out on this line was too large: it is not sent again. False: nothing went out.

        A gateway reads in order and stops at the first that is too large: what is as large as any that went out was that
        one, or came behind it. If a notify was as large it is not sure; nor is it of what an earlier line sent.
        """
        out = [entry for entry in self._asked.values() if entry.here]
        most = max((len(entry.out) for entry in out), default=0)
        for entry in out:
            if len(entry.out) == most:
                unsure = entry.former or most <= self._told_max
                self._settle(entry, Status.UNKNOWN if unsure else Status.BAD_REQUEST, b"the gateway calls it too large")
        return most > 0 or self._told_max > 0

    def _forget_session(self) -> None:
        for entry in self._asked.values():
            entry.kept = False
            entry.mark(again=False)

    def _end(self, error: KickedError, *, tell: bool) -> None:
        self._drop_line()
        self._state = "ended"
        for entry in list(self._asked.values()):
            self._settle(entry, Status.UNKNOWN if entry.sent else Status.MOVING)
        s, self._session = self._session, None
        if s is not None:
            _fail(s.settle, error)
            _finish(s.left)
        connecting, self._connecting = self._connecting, None
        _fail(connecting, error)
        if tell:
            self._tell(self.on_kicked, error)

    # ---- greeting

    def _hear(self, type_: int, body: bytes) -> None:
        if type_ in (Type.RESPONSE, Type.PUSH, Type.REBOUND, Type.BEGUN) and not self._known:
            raise InvalidPacket("not greeted yet")
        hears = {
            Type.HELLO_ACK: self._on_hello_ack,
            Type.AUTH_OK: self._on_auth_ok,
            Type.PING: self._on_ping,
            Type.PONG: _nothing,
            Type.KICK: self._on_kick,
            Type.GOAWAY: self._on_goaway,
            Type.RESPONSE: self._on_response,
            Type.PUSH: self._on_push,
            Type.REBOUND: self._on_rebound,
            Type.BEGUN: self._on_begun,
        }.get(cast(Type, type_))
        if hears is not None:
            hears(body)
        elif type_ < 128:
            raise InvalidPacket("no such packet")

    def _on_hello_ack(self, body: bytes) -> None:
        version, _, flags, heartbeat_ms, largest = struct.unpack_from(">BBHII", body)
        if self._greeted or len(body) < 24 or version != VERSION or largest < BODY_LEAST:
            raise InvalidPacket("no hello-ack")
        self._greeted = True
        self._heartbeat = max(heartbeat_ms / 1000, HEARTBEAT_LEAST) if heartbeat_ms > 0 else 0.0
        self._limit(largest)
        self._listen()
        if flags & 1 == 0:
            self._go_on()
        elif self._given is not None or self._token:
            self._show_who()
        else:
            self._end(KickedError(106, "the gateway asks for a token"), tell=True)

    def _show_who(self) -> None:
        self._showed_given = self._given is not None
        if not self._showed_given and self._home is not None and self._session is not None:
            # Who shows what it had at first is who it was then.
            self._session.id, self._session.kind = self._home
            self._session.name = None
            self._home = None
        self._send(packet(Type.AUTH, self._token if self._given is None else self._given))

    def _take_entity(self, body: bytes) -> Entity:
        """An entity, and perhaps a token of it."""
        expires, kind, size = AUTH_OK.unpack_from(body)
        end = AUTH_OK.size + size
        if size == 0 or end > len(body):
            raise InvalidPacket("no entity")
        if len(body) >= end + 2:
            (token,) = struct.unpack_from(">H", body, end)
            if token > len(body) - end - 2:
                raise InvalidPacket("no whole token")
            if token > 0:
                self._given = body[end + 2 : end + 2 + token]
        return Entity(body[AUTH_OK.size : end], kind, expires)

    def _on_rebound(self, body: bytes) -> None:
        self._given = None
        who = self._take_entity(body)
        s, line = self._session, self._line
        if s is not None and s.state == "held":
            self._stop("ack")
            self._forget_session()
            self._home = self._home or (s.id, s.kind)
            self._session = _Session(who.id, who.kind, s.settle, waits=True)
        self._tell(self.on_rebound, who)
        if self._line is line:
            self._bind_if_it_waits()

    def _bind_if_it_waits(self) -> None:
        """Behind a bind, nothing of before is answered."""
        s = self._session
        if s is not None and s.waits and self._state == "ready" and not self._owes():
            self._ask_session()

    def _on_auth_ok(self, body: bytes) -> None:
        if not self._greeted or self._known:
            raise InvalidPacket("no auth was asked")
        line = self._line
        self._tell(self.on_known, self._take_entity(body))
        if self._line is line:  # else it was closed meanwhile
            self._go_on()

    def _go_on(self) -> None:
        self._known = True
        if self._session is None:
            self._be_ready()
        else:
            self._ask_session()

    def _be_ready(self) -> None:
        self._stop("greet")
        self._state = "ready"
        self._ready_at = self._loop().time()
        connecting, self._connecting = self._connecting, None
        _finish(connecting)
        self._flush()
        self._tell(self.on_ready)

    def _listen(self) -> None:
        """Ping when nothing comes, and leave one that does not answer."""
        if self._heartbeat == 0:
            return
        quiet = min(self._heartbeat, OWED_QUIET) if self._owes() else self._heartbeat
        silent = self._loop().time() - self._heard_at
        if silent >= 2 * quiet:
            self._lost("the gateway sends nothing")
            return
        if silent >= quiet and not self._pinged:
            self._pinged = True
            self._send(packet(Type.PING))
        self._after("listen", min(quiet, OWED_QUIET) / 2, self._listen)

    # ---- sessions

    def _ask_session(self) -> None:
        s = cast(_Session, self._session)
        s.waits = False
        if s.name is None:
            s.state = "asked"
            self._send(asking(Type.BIND, NAME_BIND, s.id, kind=s.kind, flags=0 if s.plain else Flag.KEEP))
        else:
            self._attempts += 1
            attempt = self._attempts if self._attempts <= 0xFFFF else 0
            s.state = "resuming"
            shown = s.name + struct.pack(">QIH", s.pushed, self._least(), attempt)
            self._send(asking(Type.RESUME, NAME_BIND, s.id, shown, kind=s.kind))

    def _on_bind_answer(self, status: int, retry_after: float, payload: bytes) -> None:
        s = self._session
        if s is None or s.state not in ("asked", "resuming") or "bind" in self._timers:
            return  # with that timer it is a second answer: it is asked again later
        if status == Status.OK:
            self._bound(s, payload)
        elif s.state == "resuming":
            self._resume_refused(s, status, retry_after, payload)
        else:
            self._bind_refused(s, status, retry_after, payload)

    def _bound(self, s: _Session, payload: bytes) -> None:
        fresh = s.state == "asked"
        if fresh:
            s.name = None
            s.pushed = 0  # if the next one is a later one than 1, those between are lost
        else:
            for entry in self._asked.values():
                entry.mark(again=True)
        if len(payload) >= BEGUN.size:
            s.name = payload[:SESSION_SIZE]
        s.state = "held"
        s.was_held = True
        _finish(s.settle)
        if s.left is not None:
            s.state = "leaving"
            self._send(packet(Type.UNBIND, struct.pack(">I", NAME_UNBIND)))
        self._tell_and_go_on(self.on_bound, fresh)

    def _tell_and_go_on(self, callback: Callable[..., object], *arguments: Any) -> None:
        """The session is settled: what waited for that goes out, unless who is told of it ends this line."""
        line = self._line
        self._tell(callback, *arguments)
        if self._line is not line:
            return
        if self._state == "greeting":
            self._be_ready()
        else:
            self._flush()

    def _bind_again(self, retry_after: float) -> None:
        wait = self._jittered(min(retry_after, RETRY_MAX) if retry_after > 0 else AGAIN_AFTER)
        self._after("greet", wait + self._greet_timeout, lambda: self._lost("nobody binds it in time"))
        self._after("bind", wait, self._ask_session)

    def _refused(self, s: _Session, status: int, payload: bytes) -> None:
        error = RingholdError(status, payload)
        first = s.settle is not None and not s.settle.done()
        self._session = None
        self._forget_session()
        _finish(s.left)
        _fail(s.settle, error)
        self._tell_and_go_on(_nothing if first else self.on_refused, error)

    def _bind_refused(self, s: _Session, status: int, retry_after: float, payload: bytes) -> None:
        if status == Status.BAD_REQUEST and payload.startswith(b"requests are in progress"):
            self._bind_again(retry_after)  # what was asked of the actor before
        elif status == Status.BAD_REQUEST and not s.plain:
            s.plain = True  # a gateway that keeps no sessions yet
            self._ask_session()
        elif status in (Status.MOVING, Status.OVERLOADED, Status.RATE_LIMITED):
            self._bind_again(retry_after)
        elif status == Status.NO_OWNER and s.was_held:
            self._bind_again(retry_after)  # its nodes are being replaced
        elif status in (Status.UNKNOWN, Status.TIMEOUT):
            self._lost("the bind got no answer")  # it may be bound: a new connection is not
        else:
            self._refused(s, status, payload)

    def _resume_refused(self, s: _Session, status: int, retry_after: float, payload: bytes) -> None:
        if status == Status.UNAUTHORIZED:
            self._refused(s, status, payload)
        elif status == Status.REJECTED and payload.startswith(b"REPLACED"):
            self._end(KickedError(1, payload.decode("utf-8", "replace")), tell=True)
        elif status in (Status.REJECTED, Status.BAD_REQUEST):
            s.name = None
            self._forget_session()
            self._rewind(keeps=False)
            self._ask_session()
        else:
            self._bind_again(retry_after)

    def _unbound(self) -> None:
        s, self._session = cast(_Session, self._session), None
        _fail(s.settle, KickedError(0, "it was unbound"))
        self._forget_session()
        _finish(s.left)

    def _note_heard(self, size: int) -> None:
        s = self._session
        if s is None or s.state != "held" or s.name is None:
            return
        s.unacked += 1
        s.unacked_size += size
        if s.unacked >= ACK_COUNT or s.unacked_size > ACK_SIZE:
            self._ack()
        elif "ack" not in self._timers:
            self._after("ack", ACK_AFTER, self._ack)

    def _ack(self) -> None:
        s = self._session
        self._stop("ack")
        if s is None or s.state != "held" or s.name is None or not self._is_read():
            return
        s.unacked = s.unacked_size = 0
        self._send(packet(Type.ACK, struct.pack(">QI", s.pushed, self._least())))

    # ---- what comes

    def _on_response(self, body: bytes) -> None:
        name, status, retry_ms = struct.unpack_from(">IBI", body)
        payload = body[9:]
        if name == NAME_BIND:
            self._on_bind_answer(status, retry_ms / 1000, payload)
        elif name == NAME_UNBIND:
            if self._session is not None and self._session.state == "leaving":
                self._unbound()
        else:
            self._on_answer(self._asked.get(name), status, retry_ms / 1000, payload)
            self._bind_if_it_waits()
            self._leave_if_done()

    def _on_answer(self, entry: _Entry | None, status: int, retry_after: float, payload: bytes) -> None:
        if entry is None or entry.future is None:
            return  # it has ended here, as nobody answered in time
        if status == Status.MOVING and self._state == "leaving":
            # It never ran: it goes to the next gateway, in its place. Of what an earlier line sent this one cannot know.
            if entry.out[HEAD + 4] & Flag.AGAIN == 0:
                entry.sent = entry.kept = False
            entry.here = False
            return
        self._settle(entry, status, payload, retry_after)
        self._note_heard(9 + len(payload))

    def _on_push(self, body: bytes) -> None:
        (sequence,) = struct.unpack_from(">Q", body)
        s = self._session
        if s is None or s.state != "held":
            return
        if s.name is None and sequence == 1:
            s.pushed = 0  # the actor, begun afresh
        if sequence <= s.pushed:
            return
        lost = sequence - s.pushed - 1
        s.pushed = sequence
        self._note_heard(len(body) + 1)
        self._tell(self.on_push, body[8:], sequence, lost)

    def _on_begun(self, body: bytes) -> None:
        name, _, _ = BEGUN.unpack_from(body)
        s = self._session
        if s is None or s.state != "held":
            return
        s.name = name
        s.pushed = 0
        self._forget_session()
        self._tell(self.on_begun)

    def _on_goaway(self, body: bytes) -> None:
        (retry_ms,) = struct.unpack_from(">I", body)
        self._retry_after = min(retry_ms / 1000, RETRY_MAX)
        line = self._line
        self._tell(self.on_goaway, self._retry_after, body[4:].decode("utf-8", "replace"))
        if self._line is not line:
            return
        if self._state == "ready":
            self._state = "leaving"
            self._after("leave", LEAVE_WITHIN, lambda: self._lost("the gateway is stopping"))
            self._leave_if_done()
        elif self._state == "greeting":
            self._lost("the gateway accepts no clients now")

    def _leave_if_done(self) -> None:
        if self._state == "leaving" and not self._owes():
            self._lost("the gateway is stopping")

    def _on_ping(self, body: bytes) -> None:
        if len(body) > PING_MAX:
            raise InvalidPacket("no ping")
        if self._is_read():
            self._send(packet(Type.PONG, body))

    def _on_kick(self, body: bytes) -> None:
        (code,) = struct.unpack_from(">I", body)
        why = body[4:].decode("utf-8", "replace")
        if code in LOGIN_KICKS and self._showed_given and not self._known:
            self._given = None  # it is over: log in again
            self._lost(f"kicked with {code}: {why}")
        elif code in PASSING_KICKS or (code == KICK_TOO_LARGE and self._blame()):
            if self._session is not None:
                self._session.name = None  # a kick ends it
            self._lost(f"kicked with {code}: {why}")
        else:
            self._end(KickedError(code, why), tell=True)


def _finish(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _fail(future: asyncio.Future[None] | None, error: Exception) -> None:
    if future is not None and not future.done():
        future.set_exception(error)
