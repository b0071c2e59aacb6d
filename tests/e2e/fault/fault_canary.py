#!/usr/bin/env python3
"""A rolling deploy under load: two kinds more, one of them on some of the nodes only, and a new version of all states;
its first node is a canary. Then one kind goes again. The judge reads the journals of all processes: nothing is lost,
nothing runs twice, and what is asked for is answered.
"""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, healthy, main, until
from ledger import Faults, Load, judge

NAMES = ["n1", "n2", "n3"]
IDS = 60


def keys_of(*kinds):
    """What clients say, and the ids: each kind has ids of its own, for the judge knows no kinds."""
    return [(f"@{kind}/k{kind}-{i}", f"k{kind}-{i}") for kind in kinds for i in range(IDS)]


class Deploy:
    def __init__(self, fleet):
        self.fleet = fleet
        self.folder = fleet.data("journals")
        os.mkdir(self.folder)
        self.built = os.path.dirname(os.path.abspath(fleet.binary))
        fleet.coordinators(3)
        for name in NAMES:
            self.start(name, "ledger_each", "0", "3@hosts")
        self.gateways = [fleet.gateway(f"g{i}", ["--deadline-ms", "60000"]).resp for i in (1, 2)]
        fleet.settled(NAMES)

    def start(self, name, build, *kinds):
        file = os.path.join(self.built, "tests", "plugins", build + ".so")
        words = [word for kind in kinds for word in ("--kind", f"{kind}:{file}")]
        env = {"RINGHOLD_LEDGER": self.folder, "LEDGER_SO": os.path.join(self.built, "ledger.so")}
        self.fleet.node(name, words, env)

    def restart(self, name, build, *kinds):
        old = self.fleet.process(name)
        assert old.kill(signal.SIGTERM).wait(120) == 0, old.tail()
        self.start(name, build, *kinds)
        self.fleet.settled(NAMES, deadline=120)

    def load(self, *kinds):
        return Load(self.gateways, keys=keys_of(*kinds), clients=4, rate=300, patience=60)

    def share(self, kind):
        """What each node has of the kind, by 60 ids."""
        lives = [self.fleet.ask("where", f"{kind}/probe-{i}")["node"] for i in range(60)]
        return {name: lives.count(name) / len(lives) for name in NAMES}

    def row(self, kind):
        """Of the kind, in `status`."""
        return next(r for r in self.fleet.status()["roles"] if r["placement"] == "hosts" and r["kinds"] == f"{kind} ledger")


def goes_on(*loads):
    before = [load.answered() for load in loads]
    until("the loads go on", lambda: all(now.answered() > was + 300 for now, was in zip(loads, before)))


def a_deploy_with_a_canary_and_the_end_of_a_kind(binary):
    with Fleet(binary) as fleet:
        deploy = Deploy(fleet)
        old = deploy.load(0, 3)
        goes_on(old)
        # The first node: all that is new, and a tenth of its share of kind 3.
        deploy.restart("n1", "ledger_next", "0", "3@0.1", "4", "5@hosts")
        share, row = deploy.share(3), deploy.row(3)
        assert row["canaries"] == "n1 0.1" and row["nodes"] == 3, row
        assert share["n1"] < 0.25 < share["n2"] and share["n3"] > 0.25, share
        # Who hosts kind 5 alone has all of it; of kind 4 some ids wait, until all nodes host it.
        assert deploy.share(5) == {"n1": 1, "n2": 0, "n3": 0}
        new, few = deploy.load(4), deploy.load(5)
        goes_on(old, few)
        deploy.restart("n2", "ledger_next", "0", "3@hosts", "4", "5@hosts")
        goes_on(old, few)
        deploy.restart("n3", "ledger_next", "0", "3@hosts", "4")
        goes_on(old, new, few)
        assert deploy.share(5)["n3"] == 0 and deploy.row(5)["nodes"] == 2
        # The canary sings: it takes all. Another one takes nothing, the way back.
        deploy.restart("n1", "ledger_next", "0", "3@1", "4", "5@hosts")
        assert deploy.share(3)["n1"] > 0.1 and deploy.row(3)["canaries"] == ""
        deploy.restart("n2", "ledger_next", "0", "3@0", "4", "5@hosts")
        assert deploy.share(3)["n2"] == 0 and deploy.row(3)["canaries"] == "n2 0"
        goes_on(old, new, few)
        # Kind 5 goes, once nobody asks for it: its first node gives it to the last one, …
        ended = few.finish()
        deploy.restart("n1", "ledger_next", "0", "3@hosts", "4")
        assert deploy.share(5) == {"n1": 0, "n2": 1, "n3": 0}
        # … which gives all but that when it is drained, says so, and takes it along.
        faults = Faults()
        fleet.tell("node", "drain", "n2")
        until("kind 5 alone is left", lambda: [r["reason"] for r in fleet.status()["obstacles"]] == ["alone"]
              and fleet.status()["planned"] == fleet.status()["pending"] == 0)
        process = fleet.process("n2")
        process.kill().wait()
        faults.killed(process)
        deploy.start("n2", "ledger_next", "0", "3@hosts", "4")
        fleet.tell("node", "drain", "n2", "cancel")
        fleet.settled(NAMES, deadline=120)
        goes_on(old, new)
        try:
            answer = Resp(deploy.gateways[0])("CALL", "@5/k5-1", "1 1")
        except RespError as error:
            answer = str(error)
        assert answer.startswith("NOKIND"), answer
        requests = old.finish() + new.finish() + ended
        healthy(fleet)
        verdict = judge(requests, deploy.folder, faults)
        print(f"# {verdict.words()}")
        verdict.must_be_clean(planned=True)


main([a_deploy_with_a_canary_and_the_end_of_a_kind])
