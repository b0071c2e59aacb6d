"""The binary protocol of docs/protocol-client.md, the client's side: written from that page alone."""
import base64
import hmac
import socket
import struct
import time
from collections import namedtuple

HELLO, HELLO_ACK, PING, PONG, KICK, REQUEST, RESPONSE, NOTIFY, PUSH, GOAWAY, BIND, UNBIND, AUTH = range(1, 14)
AUTH_OK, BEGUN, ACK = 15, 16, 17
RESUME = 14
OK, ACTOR_FAILED, UNKNOWN, TIMEOUT, MOVING, OVERLOADED, NO_OWNER, QUARANTINED, REJECTED, BAD_REQUEST = range(10)
UNAUTHORIZED = 10
IDEMPOTENT, DEADLINE, KEEP, AGAIN, TRACE = 1, 2, 4, 8, 16
MAGIC = 0x5248
ACK_AUTH, ACK_TRACE = 1, 2

Ack = namedtuple("Ack", "version zero flags heartbeat_ms packet_max requests_max connection")
Response = namedtuple("Response", "request status retry_ms payload")
Session = namedtuple("Session", "name next keep_ms")  # the name is opaque


def packet(type_, body=b""):
    return bytes([type_]) + len(body).to_bytes(3, "big") + body


def asking(type_, request, entity, payload=b"", kind=0, flags=0, deadline_ms=None, trace=b""):
    flags |= (0 if deadline_ms is None else DEADLINE) | (TRACE if trace else 0)
    head = struct.pack(">IBBH", request, flags, len(entity), kind)
    deadline = b"" if deadline_ms is None else struct.pack(">I", deadline_ms)
    return packet(type_, head + deadline + trace + entity + payload)


def hello(low=1, high=1, flags=0):
    return packet(HELLO, struct.pack(">HBBH", MAGIC, low, high, flags))


def session(payload):
    assert len(payload) == 36, payload
    return Session(payload[:24], *struct.unpack(">QI", payload[24:]))


def ack(pushes, answers):
    return packet(ACK, struct.pack(">QI", pushes, answers))


def letters(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(key, secret, entity, kind=0, cluster=b"ringhold", ttl=60):
    expires = int(time.time()) + ttl
    payload = struct.pack(">QHB", expires, kind, len(cluster)) + cluster + entity
    body = f"rh1.{key}.{letters(payload)}"
    return f"{body}.{letters(hmac.digest(secret, body.encode(), 'sha256'))}"


class Client:
    def __init__(self, address, greet=True, timeout=60, tls=None, source=None):
        host, port = address
        self.socket = socket.create_connection((host, int(port)), timeout, None if source is None else (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")
        self.kept = []  # packets that came while another one was waited for
        self.last = 0
        if greet:
            self.send(hello())
            type_, body = self.read()
            assert type_ == HELLO_ACK, (type_, body)
            self.ack = Ack._make(struct.unpack(">BBHIIIQ", body[:24]))

    def send(self, *packets):
        self.socket.sendall(b"".join(packets))

    def read(self):
        head = self.file.read(4)
        if len(head) < 4:
            raise ConnectionError("closed")
        return head[0], self.file.read(int.from_bytes(head[1:], "big"))

    def wait(self, *types):
        """The next packet of one of these types; pings are answered, others are kept."""
        for i, (type_, _) in enumerate(self.kept):
            if type_ in types:
                return self.kept.pop(i)
        while True:
            type_, body = self.read()
            if type_ in types:
                return type_, body
            if type_ == PING:
                self.send(packet(PONG, body))
            else:
                self.kept.append((type_, body))

    def response(self):
        body = self.wait(RESPONSE)[1]
        return Response(*struct.unpack(">IBI", body[:9]), body[9:])

    def ask(self, entity, payload=b"", type_=REQUEST, **more):
        self.last += 1
        self.send(asking(type_, self.last, entity, payload, **more))
        answer = self.response()
        assert answer.request == self.last, (answer, self.last)
        return answer

    def bind(self, entity, **more):
        return self.ask(entity, type_=BIND, **more)

    def keep(self, entity, **more):
        """Bind so that the session outlives this connection."""
        answer = self.bind(entity, flags=KEEP, **more)
        assert answer.status == OK, answer
        return session(answer.payload)

    def resume(self, entity, name, pushes=0, answers=1, **more):
        return self.ask(entity, name + struct.pack(">QI", pushes, answers), type_=RESUME, **more)

    def unbind(self):
        self.last += 1
        self.send(packet(UNBIND, struct.pack(">I", self.last)))
        return self.response()

    def auth(self, text):
        """Show a token: (expires, kind, id) of who we are now, or (code, text) of the kick."""
        self.send(packet(AUTH, text.encode()))
        type_, body = self.wait(AUTH_OK, KICK)
        if type_ == KICK:
            return struct.unpack(">I", body[:4])[0], body[4:].decode()
        expires, kind, size = struct.unpack(">QHB", body[:11])
        return expires, kind, body[11 : 11 + size]

    def push(self):
        body = self.wait(PUSH)[1]
        return struct.unpack(">Q", body[:8])[0], body[8:]

    def notice(self, type_):
        """Number and text of a KICK or a GOAWAY."""
        body = self.wait(type_)[1]
        return struct.unpack(">I", body[:4])[0], body[4:].decode()

    def closed(self):
        try:
            while True:
                self.read()
        except OSError:
            return True

    def close(self):
        self.file.close()
        self.socket.close()
