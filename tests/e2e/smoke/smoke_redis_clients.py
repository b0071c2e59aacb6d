#!/usr/bin/env python3
"""Redis clients that Debian has, on a fleet: answers that are late, a gateway that is killed while they count, and what is
stored against what was answered. `make redis-clients` does the same with the clients of the registries."""
import os
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main
from redis_client import Driver, judge

DRIVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "redis_clients")


def judged(binary, words):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        verdict = judge(fleet, [0], lambda address: Driver([*words(fleet.folder), *map(str, address)]), "key", late=1)
        assert verdict.good, verdict
        assert verdict.unknown["killed"] >= 1, verdict  # what the gateway took with it


def hiredis_counts_each_increment_once(binary):
    def words(folder):
        driver = os.path.join(folder, "driver")
        source = os.path.join(DRIVERS, "c", "driver.c")
        subprocess.run(["cc", "-o", driver, source, "-lhiredis", "-lpthread"], check=True)
        return [driver, "hiredis", "recommended"]

    judged(binary, words)


def python3_redis_counts_each_increment_once(binary):
    """Debian's Python has its packages; another that comes first may not."""
    pythons = [p for p in (sys.executable, "/usr/bin/python3") if subprocess.run([p, "-c", "import redis"], stderr=subprocess.DEVNULL).returncode == 0]
    if not pythons:
        print("# skip: no python3-redis")
        return
    judged(binary, lambda _: [pythons[0], os.path.join(DRIVERS, "python", "driver.py"), "redis", "recommended"])


main([hiredis_counts_each_increment_once, python3_redis_counts_each_increment_once])
