#!/usr/bin/env python3
"""Clients that are bound to an actor, and what it pushes to them: in order, also across moves and crashes."""
import os
import socket
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, pairs, refused, succeeds, until

KICKED, REPLACED = 1007, 1
NO_SESSION = 14
MESSAGES = 60  # pushed while the owner is drained


class Client(Resp):
    """Keeps what is pushed apart from what is answered."""

    def __init__(self, address, resp3=False):
        super().__init__(address)
        self.pushed = []
        if resp3:
            self("HELLO", "3")

    def read(self):
        peek = self.file.peek(1)[:1]
        if peek == b">":
            line = self.file.readline()
            self.pushed.append([super(Client, self).read() for _ in range(int(line[1:-2]))])
            return self.read()
        if peek == b"%":
            line = self.file.readline()
            return [super(Client, self).read() for _ in range(2 * int(line[1:-2]))]
        item = super().read()
        if isinstance(item, list) and item and item[0] in ("message", "kick"):
            self.pushed.append(item)
            return self.read()
        return item

    def push(self):
        """The next thing pushed."""
        while not self.pushed:
            if self.file.peek(1)[:1] == b">":
                line = self.file.readline()
                self.pushed.append([Resp.read(self) for _ in range(int(line[1:-2]))])
            else:
                self.pushed.append(Resp.read(self))
        return self.pushed.pop(0)

    def closed(self):
        try:
            self.push()
        except (ConnectionError, OSError):
            return True
        return False


def plugin(fleet):
    return ["--actor", os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")]


def figures(redis):
    text = redis("INFO", "sessions")
    return {k: int(v) for k, v in (line.split(":") for line in text.split("\r\n") if ":" in line)}


def events(redis, name):
    return redis("CALL", name, "events")


def one_session_at_a_time(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", plugin(fleet) + ["--kind", "1:kv"])
        gateway = fleet.gateway("g1")
        ops = Resp(gateway.resp)
        assert ops("CALL", "a", "push x") == str(NO_SESSION)

        # What is refused.
        assert "NOKIND" in refused(ops, "BIND", "@9/a")
        assert "NOSESSION" in refused(ops, "BIND", "@1/a"), refused(ops, "BIND", "@1/a")
        assert "REFUSED" in refused(ops, "BIND", "shy")
        assert "not bound" in refused(ops, "UNBIND")
        assert "255" in refused(ops, "BIND", "x" * 256)

        # Bound, and pushed to; in both protocols.
        first, second = Client(gateway.resp), Client(gateway.resp, resp3=True)
        assert first("BIND", "a") == "OK"
        assert "already" in refused(first, "BIND", "b")
        assert first.push() == ["message", "a", "hello"]
        assert ops("CALL", "a", "push one") == "0"
        assert first.push() == ["message", "a", "one"]

        # A newer one takes its place.
        assert second("BIND", "a") == "OK"
        kick = first.push()
        assert kick[:2] == ["kick", REPLACED], kick
        assert first.closed()
        assert second.push() == ["message", "a", "hello"]
        until("told", lambda: events(ops, "a") == "BOUND REPLACED")

        # Pushes to others' clients go where these are, and wake nobody.
        assert ops("CALL", "b", "ids hi a nobody") == "0"
        assert second.push() == ["message", "a", "hi"]
        assert events(ops, "nobody") == ""

        # Kicked; the actor is told when the connection is closed.
        assert ops("CALL", "a", "kick go away") == "0"
        assert ops("CALL", "a", "push x") == str(NO_SESSION)
        assert second.push() == ["kick", KICKED, "go away"]
        assert second.closed()
        until("told", lambda: events(ops, "a") == "BOUND REPLACED LOST2")

        # Unbound, and hung up.
        third = Client(gateway.resp)
        assert third("BIND", "a") == "OK"
        assert third("UNBIND") == "OK"
        assert events(ops, "a").endswith("BOUND LOST1")
        assert third("BIND", "a") == "OK"
        third.close()
        until("told", lambda: events(ops, "a").endswith("BOUND LOST1 BOUND LOST1"))

        # One that ends by itself kicks its client; one that breaks keeps it.
        fourth = Client(gateway.resp)
        assert fourth("BIND", "a") == "OK"
        assert "as it was told" in refused(ops, "CALL", "a", "fail")
        until("it is there again", lambda: events(ops, "a") == "RESUMED")
        assert fourth.push()[2] == "hello" and fourth.push()[2] == "hello"
        assert ops("CALL", "a", "end") == "0"
        assert fourth.push()[:2] == ["kick", 3]
        assert fourth.closed()

        # Who does not read is cut.
        slow = Client(gateway.resp)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert slow("BIND", "c") == "OK"
        for _ in range(8):
            ops("CALL", "c", "flood 16")
        until("cut", lambda: figures(ops)["closed_unread_pushes"] == 1)
        until("told", lambda: events(ops, "c") == "BOUND LOST3")
        f = figures(ops)
        assert f["bound_clients"] == 0 and f["closed_kicked"] == 3 and f["pushes_lost"] == 0, f


def read_counted(client, count):
    """The next `count` numbers that were pushed."""
    numbers = []
    while len(numbers) < count:
        what, name, text = client.push()
        if text != "hello":
            numbers.append(int(text))
    return numbers


def sessions_outlive_moves_and_crashes(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2", "n3"):
            fleet.node(name, plugin(fleet))
        fleet.settled(["n1", "n2", "n3"])
        gateway, other = fleet.gateway("g1"), fleet.gateway("g2")
        ops = Resp(gateway.resp)
        names = [f"p{i}" for i in range(24)]  # so many that no node is left without one
        clients, guests = {}, {f"guest{i}": Client(other.resp) for i in range(24)}
        for i, name in enumerate(names):
            clients[name] = Client(gateway.resp, resp3=i % 2 == 1)
            assert clients[name]("BIND", name) == "OK"
            assert ops("CALL", name, "count 5") == "0"
        for name, guest in guests.items():
            assert guest("BIND", name) == "OK"
        other.kill()

        # The owner is drained: nothing is lost, doubled or out of order, and the actors notice nothing.
        fleet.tell("node", "drain", "n1")
        fleet.settled(["n2", "n3"])
        for name in names:
            numbers = read_counted(clients[name], MESSAGES)
            assert numbers == list(range(1, MESSAGES + 1)), (name, numbers)
            assert events(ops, name) == "BOUND", events(ops, name)
        f = figures(ops)
        assert f["pushes_lost"] == f["pushes_dropped_copy"] == f["sessions_resumed"] == 0, f

        # An owner dies: its actors begin afresh, and find their clients bound.
        owner = {name: pairs(ops("WHERE", name))["node"] for name in [*names, *guests]}
        lost = [name for name in names if owner[name] == "n2"]
        assert 0 < len(lost) < len(names), owner
        fleet.process("n2").kill()
        for name in lost:
            until(f"{name} is bound again", lambda name=name: succeeds(ops, "CALL", name, "events") == "RESUMED")
            assert ops("CALL", name, "push after") == "0"
            while clients[name].push()[2] != "after":
                pass
        for name in names:
            assert events(ops, name) == ("RESUMED" if name in lost else "BOUND")

        # Clients of a gateway that died are missed.
        for name in guests:
            if owner[name] == "n3":
                until("the gateway is missed", lambda name=name: events(ops, name) == "BOUND LOST4")


main([one_session_at_a_time, sessions_outlive_moves_and_crashes])
