#!/usr/bin/env python3
"""Under ThreadSanitizer: a fleet under load for SECONDS (60) while nodes drain and come back.

`make races` builds for it. Every process must end without a report, and the ledger is judged as ever.
"""
import os
import signal
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, until
from ledger import Load, judge

SECONDS = float(os.environ.get("SECONDS", "60"))


def no_race_under_load_with_moves(binary):
    with Fleet(binary) as fleet:
        journals = fleet.data("journals")
        os.mkdir(journals)
        options = os.environ.get("TSAN_OPTIONS", "")
        env = {"RINGHOLD_LEDGER": journals, "TSAN_OPTIONS": options + ":halt_on_error=0:exitcode=66"}
        # The sanitizer makes everything ten times slower: leases must not end for that.
        fleet.coordinators(3, env, extra=["--lease", "10s"])
        names = ["n1", "n2", "n3"]
        words = ["--actor", "ledger", "--threads", "4"]
        for name in names:
            fleet.node(name, words, env)
        gateway = fleet.gateway("g1", env=env).resp
        fleet.settled(names)
        load = Load([gateway], ids=2000, hot=32, clients=8, rate=400, slow_ms=50, patience=60)
        end = time.monotonic() + SECONDS
        moves = 0
        while time.monotonic() < end:
            name = names[moves % len(names)]
            code = fleet.process(name).kill(signal.SIGTERM).wait(120)
            assert code == 0, f"{name} ended with {code}: {fleet.process(name).tail(20)}"
            fleet.node(name, words, env)
            fleet.settled(names, deadline=120)
            moves += 1
        verdict = judge(load.finish(), journals)
        for p in reversed(fleet.processes):
            # The first asks it to drain, which the last node can't; the second ends it.
            until(f"{p.name} ends", lambda p=p: not p.kill(signal.SIGTERM).running, 120, 0.5)
        reports = []
        for p in fleet.processes:
            if p.log_has("ThreadSanitizer"):
                with open(p.log, errors="replace") as f:
                    reports.append(p.name + ": " + "".join([x for x in f if "/" in x or "Thread" in x][:12]))
        print(f"# {moves} restarts in {SECONDS:.0f} s; {verdict.words()}")
        assert not reports, f"{len(reports)} processes with reports, the first: {reports[0]}"
        verdict.must_be_clean(planned=True)


main([no_race_under_load_with_moves])
