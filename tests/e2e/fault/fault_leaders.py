#!/usr/bin/env python3
"""The leader is killed 24 times under load: no request fails, no lease is lost.

KILLS=N: so many times. The next dies as soon as the one before is back, nodes have renewed with
who leads now, and the load went on.
"""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, until
from ledger import Load, judge

KILLS = int(os.environ.get("KILLS", "24"))
BETWEEN = 1000  # requests that are answered before the next one dies


def whole(fleet):
    """All coordinators follow the leader, and it has heard of all nodes."""
    s = fleet.status()
    return all(c["role"] in ("leader", "follower") for c in s["coordinators"]) and all(
        n["state"] in ("live", "leaving") for n in s["nodes"]
    )


def no_request_fails_while_leaders_die(binary):
    with Fleet(binary) as fleet:
        journals = fleet.data("journals")
        os.mkdir(journals)
        env = {"RINGHOLD_LEDGER": journals}
        fleet.coordinators(3)
        names = ["n1", "n2", "n3"]
        nodes = [fleet.node(name, ["--actor", "ledger"], env) for name in names]
        gateways = [fleet.gateway(name).resp for name in ("g1", "g2")]
        fleet.settled(names)
        load = Load(gateways, ids=500, rate=1500, slow_ms=30, patience=60)
        for kill in range(KILLS):
            leader = fleet.leader()
            leader.kill().wait()
            answered = load.answered()
            # The ring changes too, so that transactions are under way when leaders die.
            words = ["node", "drain", "n3"] + (["cancel"] if kill % 2 == 1 else [])
            fleet.coordinator(int(leader.name[1:]))
            fleet.run(*words, "--coordinators", fleet.addresses, "--cluster", fleet.cluster)
            until("the group is whole", lambda: whole(fleet), deadline=60)
            until("the load goes on", lambda a=answered: load.answered() >= a + BETWEEN, deadline=60)
        requests = load.finish()
        fleet.settled(deadline=90)
        verdict = judge(requests, journals)
        print(f"# {KILLS} leaders killed; {verdict.words()}")
        for process in nodes:
            # One that lost its incarnation ends; one whose lease ran low says so.
            assert process.running, process.tail()
            assert not process.log_has("lease_soft"), process.tail()
            assert not process.log_has("lease_gated"), process.tail()
        verdict.must_be_clean(planned=True)


main([no_request_fails_while_leaders_die])
