#!/usr/bin/env python3
"""Two logins of one id at two gateways at once: never two are bound. LOGINS=10000 for more than a taste."""
import os
import random
import struct
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, until
from packets import Client

ROUNDS = int(os.environ.get("LOGINS", "250"))  # of each kind
REPLACED = 1
KICK_OLD, REJECT_NEW = 0, 1


def plugin(fleet, name):
    return os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", name)


def frames(gateway):
    return tuple(gateway.fields["frames"].rsplit(":", 1))


def start(fleet):
    fleet.coordinators(1)
    for name in ("n1", "n2"):
        fleet.node(name, ["--kind", f"0:{plugin(fleet, 'pusher.so')}", "--kind", f"1:{plugin(fleet, 'jealous.so')}"])
    fleet.settled(["n1", "n2"])
    gateways = [fleet.gateway(name, ["--frames", "127.0.0.1:0"]) for name in ("g1", "g2")]
    for g in gateways:
        client = Client(frames(g))
        for kind in (KICK_OLD, REJECT_NEW):
            until("both kinds are there", lambda: client.ask(b"a", b"x", kind=kind).status == packets.OK)
        client.close()
    return gateways


def both_log_in(rng, gateways, name, kind):
    """At once, more or less; the one and the other."""
    clients = [Client(frames(g)) for g in gateways]
    first, second = rng.sample(clients, 2)
    flags = packets.KEEP if rng.random() < 0.5 else 0
    first.send(packets.asking(packets.BIND, 1, name, kind=kind, flags=flags))
    if rng.random() < 0.5:
        end = time.perf_counter() + rng.random() * 0.001
        while time.perf_counter() < end:
            pass
    second.send(packets.asking(packets.BIND, 1, name, kind=kind, flags=flags))
    return clients


def next_of(client):
    """The next thing that isn't a greeting: the round that was pushed, or the code of a kick."""
    while True:
        type_, body = client.wait(packets.PUSH, packets.KICK)
        if type_ == packets.KICK:
            return "kick", struct.unpack(">I", body[:4])[0]
        if body[8:] != b"hello":
            return "push", body[8:]


def the_newer_one_stays(binary):
    rng = random.Random()
    with Fleet(binary) as fleet:
        gateways = start(fleet)
        ops = Resp(gateways[0].resp)
        for i in range(ROUNDS):
            name = b"id-%d" % (i % 7)
            clients = both_log_in(rng, gateways, name, KICK_OLD)
            for c in clients:
                answer = c.response()
                assert answer.status == packets.OK, answer
            assert ops("CALL", name.decode(), f"push {i}") == "0"
            said = sorted(next_of(c) for c in clients)
            assert said == [("kick", REPLACED), ("push", b"%d" % i)], (i, said)
            for c in clients:
                c.close()


def the_older_one_stays(binary):
    rng = random.Random()
    with Fleet(binary) as fleet:
        gateways = start(fleet)
        ops = Resp(gateways[0].resp)
        for i in range(ROUNDS):
            name = f"id-{i % 7}"
            clients = both_log_in(rng, gateways, name.encode(), REJECT_NEW)
            answers = {c: c.response() for c in clients}
            winner, loser = sorted(clients, key=lambda c: answers[c].status)
            assert answers[winner].status == packets.OK, answers.values()
            assert answers[loser].status == packets.REJECTED, answers.values()
            assert answers[loser].payload.startswith(b"TAKEN"), answers.values()
            assert ops("CALL", f"@1/{name}", str(i)) == "0"
            assert next_of(winner) == ("push", b"%d" % i)
            assert winner.unbind().status == packets.OK
            for c in clients:
                c.close()


main([the_newer_one_stays, the_older_one_stays])
