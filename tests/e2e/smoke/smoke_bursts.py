#!/usr/bin/env python3
"""A burst of large replies on links that have only seen small ones: it is slowed down, and nothing
is lost with a link that overflows.
"""
import signal
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

KEYS = 300
MOST = 1024  # requests that a gateway takes of one connection
LARGE = 60_000  # MOST of them are more than a link queues, and less than a gateway keeps for one client


def figures(address):
    text = Resp(address)("INFO", "ringhold")
    return {k: v for k, v in (line.split(":") for line in text.split() if ":" in line)}


def start(fleet):
    """A node, a gateway, and large values. The lease is not over while the node is stopped."""
    fleet.coordinators(1, extra=["--lease", "60s"])
    node = fleet.node("n1")
    address = fleet.gateway("g1", ["--deadline-ms", "60000"]).resp
    redis = Resp(address)
    for i in range(KEYS):
        assert redis("SET", f"k{i}", "x" * LARGE) == "OK"
    redis.close()
    return node, address


class Client(threading.Thread):
    """A connection that has seen small replies, and asks for many large ones when it is told to."""

    def __init__(self, address, count):
        super().__init__(daemon=True)
        self.redis = Resp(address)
        self.count = count
        self.go = threading.Event()
        self.failure = None
        for i in range(100):
            assert self.redis("EXISTS", f"k{i}") == 1
        self.start()

    def run(self):
        self.go.wait()
        try:
            for i in range(self.count):
                assert len(self.redis.read()) == LARGE, i
        except Exception as error:  # of a thread: told by the case
            self.failure = error

    def ask(self):
        self.redis.send(*[("GET", f"k{i % KEYS}") for i in range(self.count)])

    def end(self):
        self.join()
        self.redis.close()
        assert self.failure is None, self.failure


def burst(binary, clients, count):
    with Fleet(binary) as fleet:
        node, address = start(fleet)
        all_clients = [Client(address, count) for _ in range(clients)]
        before = figures(address)
        # The node reads all the requests at once.
        node.kill(signal.SIGSTOP)
        for c in all_clients:
            c.ask()
        until(
            "the requests to be on their way",
            lambda: int(figures(address)["in_flight"]) >= min(clients * count, MOST),
        )
        node.kill(signal.SIGCONT)
        for c in all_clients:
            c.go.set()
        for c in all_clients:
            c.end()
        after = figures(address)
        for name in ("unknown", "timeout", "rejected", "overloaded"):
            assert after[name] == before[name], (name, after)
        # On a busy machine some are sent again for want of an answer, but not for a link that was full.
        assert not node.log_has("the peer does not read what it is sent"), node.tail()


def one_connection_asks_for_much(binary):
    burst(binary, 1, 3000)


def many_connections_ask_at_once(binary):
    burst(binary, 30, 60)


if __name__ == "__main__":
    main([one_connection_asks_for_much, many_connections_ask_at_once])
