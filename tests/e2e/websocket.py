"""RFC 6455, the client's side, written from it alone; it can also do what a client must not."""
import base64
import hashlib
import os
import socket
import struct

import packets

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FIN = 0x80
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode, payload=b"", fin=True, rsv=0, mask=True):
    head = bytes([(FIN if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if len(payload) < 126:
        head += bytes([bit | len(payload)])
    elif len(payload) < 1 << 16:
        head += bytes([bit | 126]) + struct.pack(">H", len(payload))
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", len(payload))
    if not mask:
        return head + payload
    key = os.urandom(4)
    stream = key * (len(payload) // 4 + 1)
    veiled = int.from_bytes(payload, "big") ^ int.from_bytes(stream[: len(payload)], "big")
    return head + key + veiled.to_bytes(len(payload), "big")


def request(address, key, path="/", method="GET", version="HTTP/1.1", drop=(), **more):
    """The request of an upgrade; `drop` leaves headers out, `more` adds or replaces: Sec_WebSocket_Version=12."""
    headers = {
        "Host": "%s:%s" % tuple(address),
        "Upgrade": "websocket",
        "Connection": "keep-alive, Upgrade",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
    }
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    lines = [f"{name}: {value}" for name, value in headers.items() if name not in drop]
    return "\r\n".join([f"{method} {path} {version}", *lines, "", ""]).encode()


def connect(address, timeout=60, tls=None):
    host, port = address
    plain = socket.create_connection((host, int(port)), timeout=timeout)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain if tls is None else tls.wrap_socket(plain, server_hostname="localhost")


def heads(file):
    """The first line of what came, its headers (lower case), and its text if it has a length."""
    first = file.readline().decode()
    headers = {}
    while True:
        line = file.readline().decode().strip()
        if not line:
            break
        name, value = line.split(":", 1)
        headers[name.lower()] = value.strip()
    body = file.read(int(headers["content-length"])) if "content-length" in headers else b""
    return first, headers, body


def answer(file):
    """The status of an answer, its headers and its text."""
    status, headers, body = heads(file)
    return (int(status.split()[1]) if status else 0), headers, body


class WebSocket:
    def __init__(self, address, timeout=60, tls=None, behind=b"", **more):
        self.socket = connect(address, timeout, tls)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(request(address, key, **more) + behind)
        self.status, self.headers, _ = answer(self.file)
        assert self.status == 101, (self.status, self.headers)
        proof = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
        assert self.headers["sec-websocket-accept"] == proof, self.headers

    def send(self, *frames):
        self.socket.sendall(b"".join(frames))

    def read(self):
        """Opcode and payload of the next frame; the gateway's are whole and unmasked."""
        head = self.file.read(2)
        if len(head) < 2:
            raise ConnectionError("closed")
        assert head[0] & 0x70 == 0 and head[0] & FIN and head[1] < 0x80, head
        size = head[1]
        if size == 126:
            (size,) = struct.unpack(">H", self.file.read(2))
            assert size >= 126
        elif size == 127:
            (size,) = struct.unpack(">Q", self.file.read(8))
            assert size >= 1 << 16
        return head[0] & 0xF, self.file.read(size)

    def closed(self):
        """The code of the close that comes, maybe behind other frames; then the stream ends."""
        while True:
            opcode, body = self.read()
            if opcode == CLOSE:
                break
        code = struct.unpack(">H", body[:2])[0] if body else None
        self.send(frame(CLOSE, body[:2]))
        assert self.file.read(1) == b""
        self.close()
        return code

    def close(self):
        self.file.close()
        self.socket.close()


class Client(packets.Client):
    """Packets, each a binary message."""

    def __init__(self, address, greet=True, timeout=60, tls=None, **more):  # pylint: disable=super-init-not-called
        self.ws = WebSocket(address, timeout, tls, **more)
        self.kept = []
        self.last = 0
        if greet:
            self.send(packets.hello())
            type_, body = self.read()
            assert type_ == packets.HELLO_ACK, (type_, body)
            self.ack = packets.Ack._make(struct.unpack(">BBHIIIQ", body[:24]))

    def send(self, *all_packets):
        self.ws.send(*(frame(BINARY, p) for p in all_packets))

    def read(self):
        opcode, message = self.ws.read()
        if opcode == CLOSE:
            self.code = struct.unpack(">H", message[:2])[0]
            raise ConnectionError("closed")
        assert opcode == BINARY and len(message) == 4 + int.from_bytes(message[1:4], "big"), (opcode, message)
        return message[0], message[4:]

    def close(self):
        self.ws.close()
