#!/usr/bin/env python3
"""Under load the coordinators grow from 1 to 3 to 5, a dead one is replaced, they shrink to 3, and
processes are killed in the middle of it: the ledger is clean, and no node has to be started again.

CHANGES=N: so many more, drawn at random (20). SEED=N.
"""
import os
import random
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, until
from ledger import Faults, Load, judge

CHANGES = int(os.environ.get("CHANGES", "20"))
SEED = int(os.environ.get("SEED", "1"))


class Voters:
    """The coordinators of a fleet, as their operator knows them."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.fleet.coordinators(1)
        self.founders = dict(fleet.ports)
        self.last = 1

    def address(self, number):
        return f"{self.fleet.host(f'c{number}')}:{self.ports[number]}"

    @property
    def ports(self):
        return self.fleet.ports

    def wait_to_join(self):
        self.last += 1
        self.ports[self.last] = self.fleet.port()
        return self.start(self.last)

    def start(self, number):
        words = ["coordinator", "--id", str(number), "--cluster", self.fleet.cluster]
        words += ["--listen", self.address(number), "--data", self.fleet.data(f"c{number}")]
        if number in self.founders:  # its list is that of the founding: what is on its disk counts
            words += ["--peers", f"{number}={self.address(number)}"]
        else:
            words += ["--join-group"]
        self.fleet.start(f"c{number}", words)
        return number

    def list(self):
        return self.fleet.ask("coordinators", "list")

    @property
    def now(self):
        return sorted(row["id"] for row in self.list())

    def tell(self, *words):
        self.fleet.tell("coordinators", *words)

    def add(self, *numbers):
        self.tell("add", ",".join(f"{n}={self.address(n)}" for n in numbers))

    def settled(self, wanted):
        def check():
            rows = self.list()
            ids = sorted(row["id"] for row in rows)
            all_linked = all(row["linked"] == "yes" for row in rows)
            return ids == sorted(wanted) and all_linked and any(r["leader"] == "yes" for r in rows)

        until(f"the coordinators are {sorted(wanted)}", check, 60)

    def forget(self, *numbers):
        """Their machines are given back."""
        for number in numbers:
            self.fleet.process(f"c{number}").kill().wait()
            del self.ports[number]

    def replace(self, dead):
        new = self.wait_to_join()
        self.tell("replace", str(dead), f"{new}={self.address(new)}")
        return new

    def kill(self, number):
        self.fleet.process(f"c{number}").kill().wait()


def random_change(voters, draw):
    """One change, sometimes with a kill -9 at once after it was answered: of the leader, of a new
    one. Whoever was killed is started again."""
    now = voters.now
    size = draw.choice([s for s in (1, 3, 5) if s != len(now)] + [len(now)])
    gone = []
    if size > len(now):
        new = [voters.wait_to_join() for _ in range(size - len(now))]
        voters.add(*new)
        now += new
    elif size < len(now):
        gone = draw.sample(now, len(now) - size)
        voters.tell("remove", ",".join(map(str, gone)))
        now = [n for n in now if n not in gone]
    elif size > 1:
        gone = [draw.choice(now)]
        voters.kill(gone[0])
        now = [n for n in now if n not in gone] + [voters.replace(gone[0])]
    victim = draw.choice(now) if draw.random() < 0.6 else None
    if victim is not None:
        voters.kill(victim)
        voters.start(victim)
    voters.settled(now)
    voters.forget(*gone)
    return f"{len(now)}{'!' if victim else ''}"


def a_wiped_or_former_one_is_refused(voters, dead):
    """It comes back with its folder of long ago: it is told that it votes no more."""
    process = voters.fleet.process(f"c{dead}")
    voters.start(dead)
    process = voters.fleet.process(f"c{dead}")
    until("the former voter is told", lambda: process.log_has("retired"))
    process.kill().wait()
    code, _, err = voters.fleet.run(
        "coordinators", "replace", str(voters.now[0]), f"{dead}={voters.address(dead)}",
        "--coordinators", voters.fleet.addresses, "--cluster", voters.fleet.cluster,
    )
    assert code == 1 and "was used before" in err, (code, err)


def one_grows_to_five_and_shrinks_again(binary):
    with Fleet(binary) as fleet:
        draw = random.Random(SEED)
        journals = fleet.data("journals")
        os.mkdir(journals)
        voters = Voters(fleet)
        names = ["n1", "n2", "n3"]
        env = {"RINGHOLD_LEDGER": journals}
        nodes = [fleet.node(name, ["--actor", "ledger"], env) for name in names]
        gateways = [fleet.gateway(name).resp for name in ("g1", "g2")]
        fleet.settled(names)
        load = Load(gateways, ids=300, rate=400, slow_ms=30, patience=60)

        voters.add(voters.wait_to_join(), voters.wait_to_join())
        voters.settled([1, 2, 3])
        voters.add(voters.wait_to_join(), voters.wait_to_join())
        voters.kill(4)  # in the middle: it may not have written the new group down
        voters.start(4)
        voters.settled([1, 2, 3, 4, 5])
        voters.kill(2)
        new = voters.replace(2)
        voters.settled([1, 3, 4, 5, new])
        a_wiped_or_former_one_is_refused(voters, 2)
        del fleet.ports[2]
        leader = next(row["id"] for row in voters.list() if row["leader"] == "yes")
        gone = [leader, next(n for n in voters.now if n != leader)]
        voters.tell("remove", ",".join(map(str, gone)))
        voters.settled([n for n in [1, 3, 4, 5, new] if n not in gone])
        voters.forget(*gone)
        done = [random_change(voters, draw) for _ in range(CHANGES)]

        requests = load.finish()
        fleet.settled(names, deadline=90)
        verdict = judge(requests, journals, Faults())
        print(f"# sizes, '!': with a kill -9: {' '.join(done)}; {verdict.words()}")
        for process in nodes:
            assert process.running, process.tail()
            # More addresses than one keeps links to: those that are gone make room.
            assert CHANGES < 20 or process.log_count("coordinator_learnt") > 16, process.tail()
        verdict.must_be_clean()


main([one_grows_to_five_and_shrinks_again])
