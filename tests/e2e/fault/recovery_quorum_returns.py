#!/usr/bin/env python3
"""Recovery, scenario 1: the quorum is lost after PREPARE, and comes back.

A transaction is prepared: the nodes hold its requests and may not decide alone. All coordinators
die at once. While they are away the fleet serves on for a lease, then pauses. When they return, the
new leader finishes what was in doubt, the nodes go on with the actors in their memory, and every
request that clients sent meanwhile is answered.
"""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, healthy, main, nothing_held, until
from ledger import Load, judge


def quorum_is_lost_after_prepare_and_returns(binary):
    with Fleet(binary) as fleet:
        journals = fleet.data("journals")
        os.mkdir(journals)
        env = {"RINGHOLD_LEDGER": journals}
        arm = fleet.data("arm")

        # A fleet of two nodes, and clients that ask all the time and wait up to a minute.
        fleet.coordinators(3, env={"RINGHOLD_INJECT_FILE": arm})
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", "ledger"], env)
        gateway = fleet.gateway("g1", ["--deadline-ms", "60000"]).resp
        fleet.settled(["n1", "n2"])
        load = Load([gateway], ids=300, rate=500, patience=90)
        until("requests are answered", lambda: load.answered() > 500)

        # A third node joins. The leader dies when the first vote is in, the others with it.
        with open(arm, "w") as f:
            f.write("prepared-received")
        fleet.node("n3", ["--actor", "ledger"], env, ready=False)
        leader = until(
            "the leader dies with a transaction prepared",
            lambda: [p for p in fleet.processes if p.name[0] == "c" and not p.running],
        )[0]
        for process in fleet.processes:
            if process.name[0] == "c":
                process.kill().wait()

        # Longer than a lease without coordinators: the nodes pause. Nothing is lost by that.
        nodes = [fleet.process(name) for name in ("n1", "n2", "n3")]
        until("the nodes pause", lambda: all(n.log_has("lease_gated") for n in nodes))

        # They come back, on their folders; nothing else is done.
        for number in (1, 2, 3):
            fleet.coordinator(number, ready=False)
        fleet.settled(["n1", "n2", "n3"], deadline=90)
        nothing_held(fleet)
        txns = fleet.ask("txn", "list", "--limit", "200")
        assert all(t["state"] in ("committed", "aborted") for t in txns), txns

        # Memory survived the pause: the same processes serve, and every request has its answer.
        before = load.answered()
        until("requests are answered again", lambda: load.answered() > before + 500)
        verdict = judge(load.finish(), journals)
        print(f"# {leader.name} led; {verdict.words()}")
        assert all(n.running for n in nodes)
        verdict.must_be_clean(planned=True)
        healthy(fleet)


main([quorum_is_lost_after_prepare_and_returns])
