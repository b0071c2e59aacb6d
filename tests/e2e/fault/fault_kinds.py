#!/usr/bin/env python3
"""A new build with one more kind: it comes node by node under load, and after an outage.

What is asked of an id whose node does not host the kind yet waits at the gateway until it does, or
another node has the id; its state goes along through nodes that can't run it. A kind that no node
has is refused at once.
"""
import itertools
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, answer_of, healthy, main, succeeds, until
from rounds import Rounds

OLD = ["--actor", "kv"]
NEW = [*OLD, "--kind", "3:kv", "--kind", "7@singleton:echo"]
NAMES = ["n1", "n2", "n3"]
SHORT = ["--lease", "1s", "--election-ms", "300"]


class Counter(Rounds):
    """INCRs of some ids in turn, by one client: each answer is the one before and one more."""

    def __init__(self, address, prefix):
        super().__init__(address, [f"{prefix}{i}" for i in range(60)])

    def ask(self):
        self.rounds += 1
        for name in self.ids:
            value = self.redis("INCR", name)
            assert value == self.rounds, f"{name} is {value} in round {self.rounds}"


def a_deploy_adds_a_kind_node_by_node(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in NAMES:
            fleet.node(name, OLD)
        gateway = fleet.gateway("g1", ["--deadline-ms", "60000"])
        hasty = Resp(fleet.gateway("g2", ["--deadline-ms", "300"]).resp)
        fleet.settled(NAMES)
        assert answer_of(hasty, "INCR", "@3/x").startswith("NOKIND")  # at once: nobody has it
        loads = [Counter(gateway.resp, "a"), Counter(gateway.resp, "@3/b")]
        loads[0].start()
        for name in NAMES:
            old = fleet.process(name)
            assert old.kill(signal.SIGTERM).wait() == 0, old.tail()
            fleet.node(name, NEW)
            fleet.settled(NAMES)
            if name == NAMES[0]:
                loads[1].start()
                # Ids of the old nodes wait, and are refused by name at their deadline.
                late = map("@3/late{}".format, itertools.count())
                until("one waits", lambda: (answer_of(hasty, "GET", next(late)) or "").startswith("NOKIND"))
                # A singleton is where it is hosted, though other nodes are older.
                assert until("it lives", lambda: succeeds(hasty, "CALL", "@7/echo", "hi"), 20) == "hi"
                where = fleet.ask("where", "7/echo")
                assert where["node"] == name, where
        until("a round of the new kind", lambda: loads[1].rounds > 2 or loads[1].failed)
        counts = [load.done() for load in loads]
        print(f"# requests: {counts[0]} of the old kind, {counts[1]} of the new one, none lost")
        assert Resp(gateway.resp)("GET", loads[1].ids[0]) == str(loads[1].rounds)
        healthy(fleet)


def another_name_under_a_number_is_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", NEW)
        process = fleet.node("n2", ["--actor", "echo"], ready=False)
        assert process.wait() == 1
        assert process.log_has("such as 'n1', host kind 0 'kv', this one hosts 'echo' under that number"), process.tail()
        assert fleet.process("n1").running


def after_an_outage_a_new_build_comes_up(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3, extra=SHORT)
        for name in NAMES:
            fleet.node(name, OLD)
        redis = Resp(fleet.gateway("g1", ["--deadline-ms", "60000"]).resp)
        fleet.settled(NAMES)
        for coordinators_too in (False, True):
            for name in NAMES:
                fleet.process(name).kill().wait()
            if coordinators_too:
                for number in (1, 2, 3):
                    fleet.process(f"c{number}").kill().wait()
                for number in (1, 2, 3):
                    fleet.coordinator(number, extra=SHORT, ready=False)
            words = [*NEW, "--kind", "4:echo"] if coordinators_too else NEW
            for name in NAMES:
                fleet.node(name, words)
            fleet.settled(NAMES)
            for i in range(60):
                assert redis("INCR", f"@3/c{i}") == 1
            if coordinators_too:
                assert redis("CALL", "@4/x", "hi") == "hi"
        healthy(fleet)


def a_dead_fleets_kinds_are_those_of_whoever_comes_first(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=SHORT)
        for name in NAMES:
            fleet.node(name, NEW)
        gateway = fleet.gateway("g1", ["--deadline-ms", "60000"])
        fleet.settled(NAMES)
        for name in NAMES:
            fleet.process(name).kill().wait()
        other = ["--actor", "echo", "--kind", "7:kv"]
        fleet.node("n1", other)
        assert Resp(gateway.resp)("CALL", "x", "hi") == "hi"
        assert Resp(gateway.resp)("INCR", "@7/x") == 1
        late = fleet.node("n2", NEW, ready=False)
        assert late.wait() == 1 and late.log_has("kind 7 is 'kv' of the default role, by hash"), late.tail()


main(
    [
        a_deploy_adds_a_kind_node_by_node,
        another_name_under_a_number_is_refused,
        after_an_outage_a_new_build_comes_up,
        a_dead_fleets_kinds_are_those_of_whoever_comes_first,
    ]
)
