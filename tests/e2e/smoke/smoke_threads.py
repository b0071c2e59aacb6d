#!/usr/bin/env python3
"""A gateway with several threads: for its clients and for operators it is one gateway, and a drain
waits for all of its threads."""
import signal
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

THREADS = 4
CONNECTIONS = 12


def info(address):
    redis = Resp(address)
    text = redis("INFO")
    redis.close()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


class Client(threading.Thread):
    """Writes and reads its own keys until it is told to stop; every answer must be right."""

    def __init__(self, address, number):
        super().__init__(daemon=True)
        self.redis = Resp(address)
        self.number = number
        self.over = threading.Event()
        self.turns = 0
        self.failure = None
        self.start()

    def run(self):
        try:
            while not self.over.is_set():
                for i in range(16):
                    key, value = f"c{self.number}-{i}", str(self.turns)
                    assert self.redis("SET", key, value) == "OK"
                    assert self.redis("GET", key) == value
                self.turns += 1
        except Exception as error:  # of a thread: told by the case
            self.failure = error

    def end(self):
        self.over.set()
        self.join()
        self.redis.close()
        assert self.failure is None, self.failure
        assert self.turns > 0


def requests_go_on_while_a_node_leaves(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        n2 = fleet.node("n2")
        gateway = fleet.gateway("g1", ("--threads", str(THREADS)))
        fleet.settled(["n1", "n2"])
        clients = [Client(gateway.resp, i) for i in range(CONNECTIONS)]
        n2.kill(signal.SIGTERM)
        assert n2.wait() == 0
        for c in clients:
            c.end()
        fleet.settled(["n1"])
        # One gateway, which has what all its threads have.
        until("all threads are linked", lambda: [
            (g["gateway"], g["threads"], g["linked"]) for g in fleet.status()["gateways"]
        ] == [("g1", THREADS, THREADS)])  # fmt: skip
        # INFO of any thread tells what all have counted.
        asked = sum(c.turns for c in clients) * 16 * 2
        until("all requests in INFO", lambda: int(info(gateway.resp)["requests"]) == asked)
        figures = info(gateway.resp)
        assert figures["threads"] == str(THREADS)
        assert int(figures["total_connections_received"]) >= CONNECTIONS
        for name in ("unknown", "timeout", "rejected", "overloaded"):
            assert figures[name] == "0", (name, figures)
        out = fleet.tell("check")
        assert "1 nodes and 1 gateways" in out, out
        gateway.kill(signal.SIGTERM)
        assert gateway.wait() == 0


def wrong_values_are_refused(binary):
    with Fleet(binary) as fleet:
        for value in ("0", "65", "many"):
            code, _, err = fleet.run("gateway", "--threads", value)
            assert (code, err) == (
                1,
                "ringhold gateway: --threads: must be a whole number from 1 to 64\n",
            ), (code, err)
        code, _, err = fleet.run("gateway", "--threads", "4", "--in-flight", "3")
        assert code == 1 and "at least one for each of 4 threads" in err, (code, err)


if __name__ == "__main__":
    main([requests_go_on_while_a_node_leaves, wrong_values_are_refused])
