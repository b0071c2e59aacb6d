#!/usr/bin/env python3
"""A singleton and a set of daemons: their node is drained, then the next one dies of kill -9.

Four nodes of one role host the singleton "ledger" and the daemons "ledger/0" to "ledger/5"; nodes
of the default role host neither. Clients ask all seven through a gateway without pause. The ledger
judges: never two at once, nothing lost, and of what was asked while nobody had the singleton, all
is answered OK: it waited in the gateway, below its bound. How long nobody answered is printed, never
asserted. ROUNDS=N times a drain and a kill (3).
"""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, healthy, main, succeeds, until
from ledger import Faults, Load, judge, now_ns

ROUNDS = int(os.environ.get("ROUNDS", "3"))
KIND, SET, COUNT = 7, 9, 6
KEYS = [(f"@{KIND}/ledger", "ledger")] * 4
KEYS += [(f"@{SET}/ledger/{i}", f"ledger/{i}") for i in range(COUNT)]


def holder(fleet):
    return fleet.ask("where", f"{KIND}/ledger")["node"]


def owners_of_set(fleet):
    return [fleet.ask("where", f"{SET}/ledger/{i}")["node"] for i in range(COUNT)]


def alive(fleet):
    return sum(n["actors"] for n in fleet.status()["nodes"] if n["role"] == "boss")


def gap_s(requests, begin_ns, end_ns):
    """The longest time between two answers of the singleton then."""
    times = sorted(
        r.answered_ns for r in requests
        if r.id == "ledger" and r.code == "OK" and begin_ns <= r.answered_ns <= end_ns
    )  # fmt: skip
    return max((b - a for a, b in zip([begin_ns, *times], times)), default=0) / 1e9


def late_losses(requests, events):
    """Refused or unknown, and not because a node died that had been sent it: all those are answered
    at once, when the gateway sees that its link is gone. What comes later waits for the next owner."""
    ends = [begin for _, begin in events[1:]] + [now_ns()]
    late = [r for r in requests if r.code != "OK" and r.answered_ns < events[0][1]]
    for (drain, begin), end in zip(events, ends):
        failed = [r for r in requests if r.code != "OK" and begin <= r.answered_ns < end]
        seen = min((r.answered_ns for r in failed), default=end)
        late += [r for r in failed if drain or r.code != "UNKNOWN" or r.sent_ns > seen]
    return late


def answers_since(load, count):
    before = load.answered()
    until("requests are answered", lambda: load.answered() > before + count)


class Field:
    def __init__(self, fleet):
        self.fleet = fleet
        self.journals = fleet.data("journals*")
        one, many = fleet.data("journals-one"), fleet.data("journals-many")
        os.mkdir(one)
        os.mkdir(many)
        self.hosted = ["--role", "boss", "--kind", f"{KIND}@singleton:ledger={one}"]
        self.hosted += ["--kind", f"{SET}@daemons={COUNT}:ledger={many}"]
        fleet.coordinators(3, extra=["--min-members", "boss=4"])
        fleet.node("n1")
        fleet.node("n2")
        for i in range(1, 4):
            fleet.node(f"b{i}", self.hosted)

    def wait_for_all(self):
        self.fleet.settled()
        until("each lives, unasked", lambda: alive(self.fleet) == 1 + COUNT)


def too_few_get_nothing_yet(field):
    role = [r for r in field.fleet.status()["roles"] if r["role"] == "boss"]
    assert len(role) == 2 and all(r["nodes"] == 3 and r["unallocated"] > 0 for r in role), role
    assert alive(field.fleet) == 0
    field.fleet.node("b4", field.hosted)
    field.wait_for_all()
    shares = sorted(owners_of_set(field.fleet).count(f"b{i}") for i in range(1, 5))
    assert shares == [1, 1, 2, 2], shares


def strangers_are_refused(field):
    fleet = field.fleet
    for words, why in (
        (["--role", "boss", "--kind", f"{KIND}@singleton:kv"], "this one hosts 'kv' under that number"),
        (["--role", "chat", "--kind", f"{KIND}:kv"], f"kind {KIND} is 'ledger' of role 'boss'"),
        (["--actor", "echo"], "this one hosts 'echo' under that number"),
    ):
        stranger = fleet.node("stranger", words, ready=False)
        assert stranger.wait() == 1
        assert stranger.log_has(why), stranger.tail()


def one_holder_at_any_time(binary):
    with Fleet(binary) as fleet:
        field = Field(fleet)
        too_few_get_nothing_yet(field)
        strangers_are_refused(field)
        gateway = fleet.gateway("g1").resp
        load = Load([gateway], keys=KEYS, clients=8, rate=1200, patience=60)
        answers_since(load, 500)
        faults = Faults()
        events, gaps = [], []
        for _ in range(ROUNDS):
            for drain in (True, False):
                victim = holder(fleet)
                begin = now_ns()
                events.append((drain, begin))
                if drain:
                    fleet.tell("node", "drain", victim, "--wait", "60")
                else:
                    process = fleet.process(victim)
                    process.kill().wait()
                    faults.killed(process)
                    until("another has it", lambda v=victim: holder(fleet) != v)
                # The next-oldest: it did not come to the youngest, nor to another role.
                answers_since(load, 1000)
                gaps.append((drain, begin, now_ns()))
                assert holder(fleet).startswith("b") and victim not in owners_of_set(fleet)
                if drain:
                    fleet.tell("node", "drain", victim, "cancel")
                else:
                    fleet.node(victim, field.hosted)
                field.wait_for_all()
        requests = load.finish()
        verdict = judge(requests, field.journals, faults)
        for drain, begin, end in gaps:
            print(f"# {'drained' if drain else 'kill -9'}: no answer for {gap_s(requests, begin, end):.2f} s")
        print(f"# {verdict.words()}")
        verdict.must_be_clean()
        late = late_losses(requests, events)
        assert not late, f"asked while it moved or nobody had it, and not answered OK: {late[:3]}"
        healthy(fleet)


def a_set_changes_its_size(binary):
    with Fleet(binary) as fleet:
        field = Field(fleet)
        field.fleet.node("b4", field.hosted)
        field.wait_for_all()
        redis = Resp(fleet.gateway("g1").resp)
        for turn, count in enumerate((40, 3, 8), 1):
            fleet.tell("daemons", "ledger", str(count))
            until(f"{count} live", lambda n=count: alive(fleet) == 1 + n)
            fleet.settled()
            assert redis("CALL", f"@{SET}/ledger/0", f"1 {turn}") is not None
            assert succeeds(redis, "CALL", f"@{SET}/ledger/{count}", "1 1") is None
        healthy(fleet)
        verdict = judge([], field.journals)
        print(f"# {verdict.words()}")
        verdict.must_be_clean()


main([one_holder_at_any_time, a_set_changes_its_size])
