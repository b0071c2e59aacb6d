#!/usr/bin/env python3
"""A node that may activate one actor at a time: the next ones wait in line, and who comes when that is full is told to come
again, and is counted. Nobody's request is lost."""
import http.client
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, free_port, main

IDS = [b"room-%d" % i for i in range(20)]
SLOW = """
local room = ringhold.kind("room")
function room.on_activate(self, state) ringhold.sleep(200) end
function room.hello(self, name) return "here" end
"""


def dropped(address):
    """So many the node has refused, by its metrics."""
    host, port = address.rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=10)
    c.request("GET", "/metrics")
    lines = c.getresponse().read().decode().splitlines()
    c.close()
    name = 'ringhold_node_dropped_total{reason="activations"} '
    return next(int(line[len(name) :]) for line in lines if line.startswith(name))


def what_is_too_much_to_activate_at_once_waits_or_comes_again(binary):
    with Fleet(binary) as fleet:
        script = fleet.data("game.lua")
        with open(script, "w") as f:
            f.write(SLOW)
        fleet.coordinators(1)
        limits = ("--activations", "1", "--activations-waiting", "2")
        admin = f"127.0.0.1:{free_port()}"
        fleet.node("n1", ["--lua", script, "--admin", admin, *limits])
        g = fleet.gateway("g1", ["--frames", "127.0.0.1:0"])
        client = packets.Client(tuple(g.fields["frames"].rsplit(":", 1)))
        refused, left = 0, list(enumerate(IDS))
        while left:
            client.send(*(packets.asking(packets.REQUEST, i, entity, b"hello x") for i, entity in left))
            answers = [client.response() for _ in left]
            assert all(a.status in (packets.OK, packets.OVERLOADED) for a in answers), answers
            again = {a.request: a.retry_ms for a in answers if a.status == packets.OVERLOADED}
            assert all(ms > 0 for ms in again.values()), answers
            assert len(again) < len(left), "nobody got in"
            refused += len(again)
            left = [(i, entity) for i, entity in left if i in again]
            time.sleep(max(again.values(), default=0) / 1000)  # as it was told
        # The gateway tries again for a second before it says so.
        assert dropped(admin) > 0 and dropped(admin) >= refused, (refused, dropped(admin))
        client.close()


main([what_is_too_much_to_activate_at_once_waits_or_comes_again])
