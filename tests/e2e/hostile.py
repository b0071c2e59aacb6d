"""A peer of our own links that says what it likes: by TLS with any certificate, or in the clear.

    with Peer(address, "gateway", "g1", stem=stem) as peer:     # dials, greets, is welcome
        peer.control("admin", tag=1, events={"limit": 9})       # any Control, as in wire/control.proto
        peer.records(REQUEST, request(kind=1, id=b"a", body=b"…"))
        peer.wait(lambda f: f.type == CONTROL and f.control.get("admin_reply"))

    with Listener(stem=stem) as listener:                       # whom others dial
        peer = listener.accept("node", "n1")

It answers PINGs by itself. docs/protocol.md has every byte.
"""
import os
import queue
import re
import select
import socket
import ssl
import struct
import threading
import time

HELLO, WELCOME, REFUSED, PING, PONG, CONTROL, RAFT = 1, 2, 3, 4, 5, 8, 9
REQUEST, ANSWER, STATE, STATE_ACK, PUSH = 16, 17, 18, 19, 20
ROLES = {"coordinator": 1, "node": 2, "gateway": 3, "cli": 4}
COMMAND, NO_REPLY, IDEMPOTENT, HELD, CALL, SESSION, AWAKE = 1, 2, 4, 8, 16, 32, 64  # flags of a request


# ---- protobuf, by wire/control.proto itself


def read_schema():
    """{message: {field: (number, type, repeated)}}."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../wire/control.proto")
    schema, message, enums = {}, None, set()
    with open(path) as file:
        for line in file:
            line = line.split("//")[0].strip()
            if begin := re.match(r"(message|enum) (\w+) *{(})?", line):
                message = begin[2]
                schema[message] = {}
                if begin[1] == "enum":
                    enums.add(message)
            elif field := re.match(r"(repeated )?(\w+) (\w+) = (\d+)", line):
                kind = "uint32" if field[2] in enums else field[2]
                schema[message][field[3]] = (int(field[4]), kind, bool(field[1]))
    return schema


SCHEMA = read_schema()


def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def encode_value(number, kind, value):
    if kind == "fixed64":
        return varint(number << 3 | 1) + struct.pack("<Q", value)
    if kind in ("uint32", "uint64", "bool"):
        return varint(number << 3) + varint(int(value))
    if kind == "string":
        value = value.encode() if isinstance(value, str) else value
    elif kind != "bytes":
        value = encode(kind, value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def encode(message, fields):
    out = b""
    for name, value in fields.items():
        number, kind, repeated = SCHEMA[message][name]
        for one in value if repeated else [value]:
            out += encode_value(number, kind, one)
    return out


def take_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def decode_values(kind, wire, raw):
    """The values of a field: several, if it is packed."""
    if wire == 0:
        return [raw]
    if kind == "fixed64":
        return list(struct.unpack(f"<{len(raw) // 8}Q", raw))
    if kind == "fixed32":
        return list(struct.unpack(f"<{len(raw) // 4}I", raw))
    if kind in ("uint32", "uint64", "bool"):
        values, at = [], 0
        while at < len(raw):
            value, at = take_varint(raw, at)
            values.append(value)
        return values
    return [raw.decode() if kind == "string" else raw if kind == "bytes" else decode(kind, raw)]


def decode(message, data):
    """Fields that are there, by name; those that the schema doesn't have are left out."""
    names = {number: (name, kind, repeated) for name, (number, kind, repeated) in SCHEMA[message].items()}
    out, at = {}, 0
    while at < len(data):
        key, at = take_varint(data, at)
        if key & 7 == 0:
            raw, at = take_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = take_varint(data, at)
            raw, at = data[at:at + size], at + size
        if key >> 3 in names:
            name, kind, repeated = names[key >> 3]
            values = decode_values(kind, key & 7, raw)
            out[name] = out.get(name, []) + values if repeated else values[-1]
    return out


# ---- records: the fields of wire/record.h and wire/session.h, 0 unless they are given


def request(kind=0, id=b"a", body=b"", flags=0, gateway=0, session=1, session_epoch=0, seq=1, prev=0, base=1, first=0,
            version=0, ttl_ms=10000, hops=0, copy=1, chain=()):
    head = struct.pack("<QQIQQQQQIHBBBBBI", gateway, session, session_epoch, seq, prev, base, first, version, ttl_ms,
                       kind, hops, copy, flags, len(chain), len(id), len(body))
    return head + struct.pack(f"<{len(chain)}Q", *chain) + id + body


def caller(kind, id):
    """What the body of a request with CALL begins with: who asks."""
    return struct.pack("<HB", kind, len(id)) + id


def answer(gateway=0, session=1, seq=1, token=0, version=0, aux=0, code=0, copy=1, body=b""):
    return struct.pack("<QQQQQQBBI", gateway, session, seq, token, version, aux, code, copy, len(body)) + body


def state(txn, source, index=0, flags=0, kind=0, total=None, offset=0, id=b"a", chunk=b""):
    """flags = 1: the last, without id and chunk; index says how many there were."""
    total = len(chunk) if total is None else total
    head = struct.pack("<QQIBHIIIBI", txn, source, index, flags, kind, total, offset, crc32c(chunk), len(id), len(chunk))
    return head + id + chunk


def state_ack(txn, source, next=0, refused=0):
    return struct.pack("<QQIB", txn, source, next, refused)


def push(gateway, connection, number=1, round=1, code=0, type=0, payload=b""):
    return struct.pack("<QQQIIBI", gateway, connection, number, round, code, type, len(payload)) + payload


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def answers_of(body):
    """The answer records of a frame: dicts."""
    names = ("gateway", "session", "seq", "token", "version", "aux", "code", "copy")
    out, at = [], 0
    while at < len(body):
        *values, size = struct.unpack_from("<QQQQQQBBI", body, at)
        out.append({**dict(zip(names, values)), "body": body[at + 54:at + 54 + size]})
        at += 54 + size
    return out


# ---- links


class Frame:
    def __init__(self, type, count, body):
        self.type, self.count, self.body = type, count, body

    @property
    def control(self):
        return decode("Control", self.body) if self.type == CONTROL else {}

    def __repr__(self):
        return f"<{self.type} x{self.count} {self.control or self.body[:40]}>"


def context_of(stem, server=False):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(f"{stem}.pem", f"{stem}.key")
    return context


def pair_of(address):
    host, port = address.rsplit(":", 1) if isinstance(address, str) else address
    return host, int(port)


class Peer:
    """One end of a link. `stem`: of its certificate's files, None = in the clear. `hello`: more of its fields.
    `up` is true once both ends are welcome; else `why` tells what the other said, or that it closed."""

    def __init__(self, address, role, name, stem=None, cluster="ringhold", timeout=20, plain=None, **hello):
        self.timeout, self.why, self.welcomes = timeout, None, 0
        self.dials = plain is None
        plain = plain or socket.create_connection(pair_of(address), timeout=timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = plain
        if stem is not None:
            self.socket = context_of(stem, not self.dials).wrap_socket(plain, server_side=not self.dials)
        self.hello = {"product": "ringhold 0", "protocol": 5, "protocol_min": 4, "cluster": cluster,
                      "role": ROLES[role], "name": name, "format": 99, "format_min": 1, **hello}
        self.there = None  # the other's hello
        self.frames = queue.Queue()
        self.changed = threading.Condition()
        self.lock = threading.Lock()  # TLS takes one caller at a time
        self.closed = False
        self.socket.setblocking(False)
        if self.dials:
            self.frame(HELLO, encode("Hello", self.hello))
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        with self.changed:
            self.changed.wait_for(lambda: self.up or self.why, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closed = True
        self.thread.join()
        self.socket.close()

    @property
    def up(self):
        return self.why is None and self.welcomes == 2

    # ---- saying

    def send(self, data):
        end = time.monotonic() + self.timeout
        while data:
            with self.lock:
                try:
                    data = data[self.socket.send(data):]
                    continue
                except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
                    pass
            assert time.monotonic() < end, "the other end takes nothing more"
            select.select([], [self.socket], [], 0.05)

    def frame(self, type, body=b"", count=1, flags=0):
        self.send(struct.pack("<IBBH", len(body) + 8, type, flags, count) + body)

    def records(self, type, *records):
        self.frame(type, b"".join(records), len(records))

    def control(self, body, source_incarnation=0, target_incarnation=0, version=0, era=0, **fields):
        """A Control of that body: control("renew", seq=1), control("admin", tag=1, status={})."""
        envelope = {"era": era, "source_incarnation": source_incarnation, "target_incarnation": target_incarnation,
                    "version": version}
        message = {name: value for name, value in envelope.items() if value}
        self.frame(CONTROL, encode("Control", {**message, body: fields}))

    # ---- hearing

    def read(self):
        data = b""
        while not self.closed:
            try:
                with self.lock:
                    more = self.socket.recv(65536)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                select.select([self.socket], [], [], 0.05)
                continue
            except (OSError, ssl.SSLError, ValueError) as error:
                self.end(str(error))
                return
            if not more:
                self.end("closed")
                return
            data += more
            while len(data) >= 8 and len(data) >= (size := struct.unpack_from("<I", data)[0]):
                _, type, _, count = struct.unpack_from("<IBBH", data)
                try:
                    self.on_frame(Frame(type, count, data[8:size]))
                except OSError as error:
                    self.end(str(error))
                    return
                data = data[size:]

    def end(self, why):
        with self.changed:
            self.why = self.why or why
            self.changed.notify_all()
        self.frames.put(None)

    def on_frame(self, frame):
        if frame.type == PING:
            self.frame(PONG)
        elif frame.type == HELLO:
            self.there = decode("Hello", frame.body)
            if not self.dials:
                self.frame(HELLO, encode("Hello", self.hello))
            self.frame(WELCOME)
            self.welcome()
        elif frame.type == WELCOME:
            self.welcome()
        elif frame.type == REFUSED:
            self.end(decode("Hello", frame.body).get("product", ""))  # HelloRefused: its first field is a text, too
        elif frame.type != PONG:
            self.frames.put(frame)

    def welcome(self):
        with self.changed:
            self.welcomes += 1
            self.changed.notify_all()

    def wait(self, fits=lambda frame: True, timeout=None):
        """The next frame that fits; those before it are passed over. None: the link ended first."""
        end = time.monotonic() + (timeout or self.timeout)
        while True:
            try:
                frame = self.frames.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no such frame came; the link {'is up' if self.up else self.why}") from None
            if frame is None:
                self.frames.put(None)
                return None
            if fits(frame):
                return frame

    def ask(self, body, answered_by, **fields):
        """The field of the Control that answers one."""
        self.control(body, **fields)
        frame = self.wait(lambda f: answered_by in f.control)
        return None if frame is None else frame.control[answered_by]

    def ended(self, timeout=None):
        """Wait until the other end closed the link; what it said, or how."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.why, timeout or self.timeout), "the link is still up"
        return self.why


class Listener:
    """A port that others dial, each as if it were the process that they look for there."""

    def __init__(self, host="127.0.0.1", port=0, stem=None):
        self.stem = stem
        self.socket = socket.create_server((host, port))
        self.address = "%s:%d" % self.socket.getsockname()[:2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def accept(self, role, name, timeout=20, **hello):
        self.socket.settimeout(timeout)
        plain, _ = self.socket.accept()
        plain.settimeout(timeout)
        return Peer(None, role, name, self.stem, timeout=timeout, plain=plain, **hello)
