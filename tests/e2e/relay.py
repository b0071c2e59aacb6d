"""A TCP relay before gateways, as deployments have one: connections go to its target, and when that is gone to the next one.
It writes down what Redis clients say when they come, and can keep answers back, so that a gateway dies with requests that ran
and were not answered."""
import selectors
import socket
import threading


class Half:
    """One direction's bytes of a connection, cut into RESP values as far as somebody wants to know them."""

    def __init__(self):
        self.bytes = b""

    def take(self, data):
        """Yields the values that are whole now: (first byte, text of the line) of a line, or a list of a command's words."""
        self.bytes += data
        while True:
            value, at = self.parse(0)
            if at is None:
                return
            self.bytes = self.bytes[at:]
            yield value

    def parse(self, at):
        end = self.bytes.find(b"\r\n", at)
        if end < 0:
            return None, None
        kind, rest, at = self.bytes[at : at + 1], self.bytes[at + 1 : end], end + 2
        if kind in b"$=!" and int(rest) >= 0:
            end = at + int(rest) + 2
            return (self.bytes[at : end - 2], end) if len(self.bytes) >= end else (None, None)
        if kind in b"*~>%|" and int(rest) >= 0:
            items = []
            for _ in range(int(rest) * (2 if kind in b"%|" else 1)):
                item, at = self.parse(at)
                if at is None:
                    return None, None
                items.append(item)
            return items, at
        return kind + rest, at


class Line:
    """A client's connection and the gateway's."""

    def __init__(self, relay, client, server):
        self.relay, self.client, self.server = relay, client, server
        self.held = b""
        self.asks, self.answers = Half(), Half()
        self.said = []  # [words, answer] in order, the answer None until it came
        self.answered = 0

    def heard(self, data):
        if len(self.said) < self.relay.NOTED:
            self.said += [[words, None] for words in self.asks.take(data) if isinstance(words, list)]

    def told(self, data):
        if self.answered < min(len(self.said), self.relay.NOTED):
            for value in self.answers.take(data):
                if self.answered < len(self.said):
                    self.said[self.answered][1] = value
                    self.answered += 1


class Relay:
    NOTED = 40  # commands of a connection that are written down

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = self.listener.getsockname()
        self.lock = threading.Lock()
        self.lines, self.opened = set(), []  # those that are open; all
        self.holds = self.ended = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended:
            for key, _ in self.selector.select(0.05):
                with self.lock:
                    if key.data is None:
                        self.accept()
                    elif key.data in self.lines:
                        self.carry(key.data, key.fileobj)

    def accept(self):
        client, _ = self.listener.accept()
        try:
            server = socket.create_connection(self.target, timeout=5)
        except OSError:
            client.close()
            return
        line = Line(self, client, server)
        for s in (client, server):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.selector.register(s, selectors.EVENT_READ, line)
        self.lines.add(line)
        self.opened.append(line)

    def carry(self, line, source):
        try:
            data = source.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.close(line)
        elif source is line.client:
            line.heard(data)
            self.send(line, line.server, data)
        else:
            line.told(data)
            line.held += data
            if not self.holds:
                self.let_go(line)

    def let_go(self, line):
        held, line.held = line.held, b""
        if held:
            self.send(line, line.client, held)

    def send(self, line, to, data):
        try:
            to.sendall(data)
        except OSError:
            self.close(line)

    def close(self, line):
        if line in self.lines:
            self.lines.remove(line)
            for s in (line.client, line.server):
                self.selector.unregister(s)
                s.close()

    # ---- what a test does

    def hold(self):
        """Answers stay here from now on; what is asked goes on to the gateway."""
        with self.lock:
            self.holds = True

    def held(self):
        """Connections with answers that stay here."""
        with self.lock:
            return sum(1 for line in self.lines if line.held)

    def release(self):
        with self.lock:
            self.holds = False
            for line in list(self.lines):
                self.let_go(line)

    def cut(self, target):
        """All connections end, with what stays here; who comes again gets to `target`."""
        with self.lock:
            self.holds, self.target = False, target
            for line in list(self.lines):
                self.close(line)

    def stop(self):
        self.ended = True
        self.thread.join()
        with self.lock:
            for line in list(self.lines):
                self.close(line)
        self.listener.close()
