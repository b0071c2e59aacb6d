"""A fleet whose links are by TLS, what an eavesdropper on loopback sees of it, and peers that are none of it."""
import ctypes
import os
import socket
import ssl
import struct
import subprocess
import threading

from fleet import Fleet, free_port


class Secured(Fleet):
    """Each daemon has a certificate of its own, and the CLI an operator's."""

    def __init__(self, binary, cluster="ringhold"):
        super().__init__(binary, cluster)
        self.tls = self.data("tls")
        self.made = set()
        self.authority()

    def authority(self):
        self.quietly("tls", "init", "--dir", self.tls, "--cluster", self.cluster)
        self.operator = self.certificate("operator", "tests")

    def quietly(self, *words):
        code, out, err = self.run(*words)
        assert code == 0, (words, out, err)

    def certificate(self, role, name, *more):
        """Stem of its files."""
        if (role, name) not in self.made or more:
            self.quietly("tls", role, name, "--dir", self.tls, *more)
            self.made.add((role, name))
        return os.path.join(self.tls, f"{role}-{name}")

    def flags(self, stem):
        ca = os.path.join(self.tls, "ca.pem")
        return ["--link-ca", ca, "--link-certificate", f"{stem}.pem", "--link-key", f"{stem}.key"]

    def start(self, name, words, env=None, ready=True, program=None):
        role = words[0]
        if role in ("coordinator", "node", "gateway") and "--link-ca" not in words:
            words = words + self.flags(self.certificate(role, name[1:] if role == "coordinator" else name))
        if role == "node" and f"{self.host(name)}:0" in words:  # one that Capture knows
            at = words.index(f"{self.host(name)}:0")
            words = words[:at] + [f"{self.host(name)}:{self.port()}"] + words[at + 1:]
        return super().start(name, words, env, ready, program)

    def run(self, *words, deadline=60):
        if "--coordinators" in words and "--link-ca" not in words:
            words = (*words, *self.flags(self.operator))
        return super().run(*words, deadline=deadline)


class Capture:
    """What goes over loopback from and to the ports of this test, by connection. Needs CAP_NET_RAW."""

    def __init__(self):
        free_port()
        first = free_port.__self__.first
        last = first + free_port.__self__.COUNT - 1
        program = (  # of BPF: TCP, and the source or the target is one of them. It sees IP's header first
            (0x30, 0, 0, 9), (0x15, 0, 8, 6), (0xB1, 0, 0, 0),
            (0x48, 0, 0, 0), (0x35, 0, 1, first), (0x25, 0, 3, last),
            (0x48, 0, 0, 2), (0x35, 0, 2, first), (0x25, 1, 0, last),
            (0x06, 0, 0, 0x40000), (0x06, 0, 0, 0),
        )
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in program))
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 * 1024 * 1024)  # SO_RCVBUFFORCE
        self.socket.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", len(program), ctypes.addressof(code)))
        self.socket.bind(("lo", 3))  # ETH_P_ALL
        self.socket.settimeout(0.2)
        self.packets = []
        self.over = False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    @staticmethod
    def possible():
        try:
            socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)).close()
        except PermissionError:
            return False
        return True

    def read(self):
        while not self.over:
            try:
                data, where = self.socket.recvfrom(70000)
            except socket.timeout:
                continue
            if where[2] != 4 and data[0] >> 4 == 4 and data[9] == 6:  # once each; IPv4; TCP
                self.packets.append(data)

    def stop(self):
        """{port: [(source, bytes in order of arrival)]}: for both directions of each port."""
        self.over = True
        self.thread.join()
        _, lost = struct.unpack("II", self.socket.getsockopt(263, 6, 8))  # PACKET_STATISTICS
        assert lost == 0, f"{lost} packets were not seen"
        self.socket.close()
        streams = {}
        for data in self.packets:
            at = (data[0] & 15) * 4
            size = struct.unpack("!H", data[2:4])[0]
            source, target = struct.unpack("!HH", data[at:at + 4])
            opens = data[at + 13] & 0x12 == 0x02  # SYN
            payload = data[at + (data[at + 12] >> 4) * 4:size]
            stream = streams.setdefault((source, target), {"whole": False, "bytes": bytearray()})
            if opens:
                stream.update(whole=True, bytes=bytearray())
                streams.pop((target, source), None)
                streams[(target, source)] = {"whole": True, "bytes": bytearray()}
            stream["bytes"] += payload
        return streams


# ---- peers that are none of the fleet


def field(number, value):
    """A field of protobuf: a text, or a number."""
    if isinstance(value, int):
        assert value < 128
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def hello(cluster, role, name, protocol=5):
    """The frame that a link begins with. Role: 1 coordinator, 2 node, 3 gateway, 4 cli."""
    fields = ((1, "ringhold 0"), (2, protocol), (3, protocol), (4, cluster), (5, role), (6, name))
    body = b"".join(field(*f) for f in fields)
    return struct.pack("<IBBH", len(body) + 8, 1, 0, 1) + body


def talk(address, say=b"", stem=None, version=None, timeout=20):
    """Connect by TLS, with a certificate or without, say that; what comes until the other side closes. The
    text of the error, if the handshake fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if stem is not None:
        context.load_cert_chain(f"{stem}.pem", f"{stem}.key")
    got = b""
    try:
        with socket.create_connection(address, timeout=timeout) as plain, context.wrap_socket(plain) as tls:
            tls.sendall(say)
            while True:
                more = tls.recv(4096)
                if not more:
                    return got
                got += more
    except (ssl.SSLError, OSError) as error:
        return got + f" {error}".encode()


def expired(fleet, stem):
    """The same certificate with the same key, but it has ended."""
    out, ca = stem + "-expired", os.path.join(fleet.tls, "ca")
    for words in (
        ["-in", f"{stem}.pem", "-x509toreq", "-signkey", f"{stem}.key", "-copy_extensions", "copyall", "-out", f"{out}.csr"],
        ["-req", "-in", f"{out}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-copy_extensions", "copyall"]
        + ["-days", "-1", "-out", f"{out}.pem"],
    ):
        subprocess.run(["openssl", "x509", *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    os.link(f"{stem}.key", f"{out}.key")
    return out


def foreign(fleet, role, name):
    """The same words, signed by an authority that nobody here trusts."""
    folder = fleet.data("foreign")
    fleet.quietly("tls", "init", "--dir", folder, "--cluster", fleet.cluster)
    fleet.quietly("tls", role, name, "--dir", folder)
    return os.path.join(folder, f"{role}-{name}")
