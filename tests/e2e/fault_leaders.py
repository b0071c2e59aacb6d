#!/usr/bin/env python3
"""The leader is killed every 5 s for 2 minutes under load: no request fails, no lease is lost.

SECONDS=N: for so long.
"""
import os
import time

from fleet import Fleet, main, until
from ledger import Load, judge

SECONDS = float(os.environ.get("SECONDS", "120"))
EVERY = 5.0


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
        begin = time.monotonic()
        kills = 0
        while time.monotonic() - begin < SECONDS:
            leader = fleet.leader()
            leader.kill().wait()
            kills += 1
            # The ring changes too, so that transactions are under way when leaders die.
            words = ["node", "drain", "n3"] + (["cancel"] if kills % 2 == 0 else [])
            fleet.coordinator(int(leader.name[1:]))
            fleet.run(*words, "--coordinators", fleet.addresses, "--cluster", fleet.cluster)
            until("5 s have gone by", lambda k=kills: time.monotonic() - begin >= k * EVERY)
        requests = load.finish()
        fleet.settled(deadline=90)
        verdict = judge(requests, journals)
        print(f"# {kills} leaders killed in {time.monotonic() - begin:.0f} s; {verdict.words()}")
        for process in nodes:
            # One that lost its incarnation ends; one whose lease ran low says so.
            assert process.running, process.tail()
            assert not process.log_has("lease_soft"), process.tail()
            assert not process.log_has("lease_gated"), process.tail()
        verdict.must_be_clean(planned=True)


main([no_request_fails_while_leaders_die])
