#!/usr/bin/env python3
"""A node embedded in a game server's own poll() loop: examples/embedded.c serves, moves away under load, and stops."""
import os
import signal
import socket
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

IDS = [f"orc-{i}" for i in range(60)]


def start(fleet, name):
    program = os.path.join(os.path.dirname(fleet.binary), "examples", "embedded")
    return fleet.start(name, [name, fleet.addresses, fleet.data(name)], program=program)


def say(server, what):
    """What a player is told by UDP: by the same loop as the actors."""
    host, port = server.fields["udp"].rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        s.sendto(what.encode(), (host, int(port)))
        return s.recv(200).decode()


def world(server):
    return {k: int(v) for k, v in (w.split("=") for w in say(server, "look").split())}


class Load(threading.Thread):
    """Hits every id in turn until it is told to stop; each answer is one more than the last."""

    def __init__(self, address, wounds):
        super().__init__()
        self.redis = Resp(address)
        self.wounds = wounds
        self.over = False
        self.error = None

    def run(self):
        try:
            while not self.over:
                for i in IDS:
                    answer = int(self.redis("CALL", i, "hit"))
                    self.wounds[i] = self.wounds.get(i, 0) + 1
                    assert answer == self.wounds[i], (i, answer, self.wounds[i])
        except Exception as error:
            self.error = error

    def end(self):
        self.over = True
        self.join()
        assert self.error is None, repr(self.error)


def a_loop_of_its_own_hosts_actors(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        one = start(fleet, "e1")
        gateway = fleet.gateway("g1")
        wounds = {}
        load = Load(gateway.resp, wounds)
        load.start()
        until("every monster was hit", lambda: len(wounds) == len(IDS) or load.error)
        assert world(one)["monsters"] == len(IDS)
        before = world(one)["tick"]
        until("the world goes on", lambda: world(one)["tick"] > before)

        # A player hits a monster by the server itself, which knows where it lives.
        assert say(one, "where ogre") == "e1"
        assert [say(one, "hit ogre") for _ in range(3)] == ["1", "2", "3"]

        # Another comes, under load: some monsters move there. Then the first one drains: all do.
        two = start(fleet, "e2")
        until("some moved", lambda: world(two)["monsters"] > 0)
        ogres = [f"ogre-{i}" for i in range(20)]
        until("it has its share", lambda: {say(one, f"where {i}") for i in ogres} == {"e1", "e2"})
        for server in one, two:  # whoever is asked finds each of them, here or there
            assert {say(server, f"hit {i}") for i in ogres} == {"1" if server is one else "2"}
        one.kill(signal.SIGTERM)
        assert one.wait() == 0, one.tail()
        assert say(two, "where ogre") == "e2" and say(two, "hit ogre") == "4"
        assert {say(two, f"hit {i}") for i in ogres} == {"3"}
        until("all live here", lambda: load.error or world(two)["monsters"] == len(IDS) + 1 + len(ogres))
        seen = sum(wounds.values())
        until("it serves them all", lambda: load.error or sum(wounds.values()) > seen + len(IDS))
        load.end()

        # Who is alone drains for ever: a second signal ends that.
        two.kill(signal.SIGTERM)
        until("it drains", lambda: two.log_has("leaving"))
        assert world(two)["monsters"] == len(IDS) + 1 + len(ogres)
        assert say(two, "hit ogre") == "not now"
        two.kill(signal.SIGTERM)
        assert two.wait() == 128 + signal.SIGTERM, two.tail()


main([a_loop_of_its_own_hosts_actors])
