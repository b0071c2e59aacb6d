#!/usr/bin/env python3
"""SIGSTOP of a node for three leases under load, then SIGCONT.

Meanwhile its vnodes are served elsewhere. When it wakes it runs nothing, and nothing of it is
believed: its answers are held back by its own gate; those of a node that was told to serve without
a lease are refused by the gateway (stale_answers, by records late_answers); fenced stores refuse its late writes
(fault_stores.py).
"""
import os
import signal
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, main, pairs, until
from ledger import Faults, Load, judge

LEASE = 2
SILENCE = 5  # seconds after which a link whose process stands still is dropped


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


def info(address):
    redis = Resp(address)
    lines = (line.split(":", 1) for line in redis("INFO").splitlines() if ":" in line)
    redis.close()
    return dict(lines)


def refused_answers(address):
    told = info(address)
    return int(told["stale_answers"]) + int(told["late_answers"])


def build(fleet, actor, extra=(), lease=LEASE):
    env = {"RINGHOLD_LEDGER": fleet.data("journals")}
    os.mkdir(env["RINGHOLD_LEDGER"])
    fleet.coordinators(3, extra=["--lease", f"{lease}s", "--election-ms", "300"])
    for name in ("n1", "n2", "n3"):
        deaf = {"RINGHOLD_INJECT_LOSE": fleet.data("deaf-" + name)}
        fleet.node(name, ["--actor", actor, *extra], {**env, **deaf})
    gateways = [fleet.gateway(name).resp for name in ("g1", "g2")]
    fleet.settled(["n1", "n2", "n3"])
    return env, gateways


def a_paused_node_runs_nothing_when_it_wakes(binary):
    with Fleet(binary) as fleet:
        env, gateways = build(fleet, "ledger")
        load = Load(gateways, ids=300, rate=800, slow_ms=100, patience=60)
        until("requests are answered", lambda: load.answered() > 1000)
        victim = fleet.process("n2")
        faults = Faults()
        faults.halts(victim)
        victim.kill(signal.SIGSTOP)
        time.sleep(3 * LEASE)  # the length of the pause is the experiment; nothing is waited for by it
        until("n2 is replaced", lambda: owners(fleet) == {"n1", "n3"})
        victim.kill(signal.SIGCONT)
        code = victim.wait()
        # 75: it found out by itself; SIGABRT: its watchdog did, as a task was still running.
        assert code in (75, -signal.SIGABRT), (code, victim.tail())
        before = load.answered()
        until("requests are answered", lambda: load.answered() > before + 500)
        fleet.node("n2", ["--actor", "ledger"], env)
        fleet.settled(["n1", "n2", "n3"], deadline=90)
        verdict = judge(load.finish(), env["RINGHOLD_LEDGER"], faults)
        late = "+".join(str(refused_answers(g)) for g in gateways)
        print(f"# n2 ended with {code}; answers refused {late}; {verdict.words()}")
        verdict.must_be_clean()
        # What was on its way to n2 may run there. Of the four seconds' requests to it, most were not sent: with gateways
        # that go on sending there are more than 500.
        assert verdict.codes["UNKNOWN"] < 250, verdict.codes


def the_answers_of_a_node_that_serves_on_are_refused(binary):
    """The worst node: told to serve without a lease (--on-lease-loss serve), and deaf to the news
    that it is barred. What is left is the gateway. The lease is 1 s, and n2 wakes as soon as others
    have its vnodes: its links are still there then (they end after 5 s of silence)."""
    with Fleet(binary) as fleet:
        _, gateways = build(fleet, "kv", ["--on-lease-loss", "serve"], lease=1)
        redis = Resp(gateways[0])
        key = next(k for k in (f"k{i}" for i in range(100)) if pairs(redis("WHERE", k))["node"] == "n2")
        assert redis("SET", key, "old") == "OK"
        victim = fleet.process("n2")
        with open(fleet.data("deaf-n2"), "w") as f:
            f.write("barred-received\ncommit-received\nconfig-received\n")
        begin = time.monotonic()
        victim.kill(signal.SIGSTOP)
        # These are on their way to n2 when it is replaced: it will answer them when it wakes.
        late = [Resp(gateways[0]) for _ in range(20)]
        for connection in late:
            connection.send(("GET", key))
        until("n2 is replaced", lambda: owners(fleet) == {"n1", "n3"})
        assert redis("GET", key) is None  # memory of a killed or paused node is lost
        assert redis("SET", key, "new") == "OK"
        answers = [connection.read() for connection in late]
        victim.kill(signal.SIGCONT)
        paused = time.monotonic() - begin

        def refused_or_gone():
            """On a machine that was too slow the links have ended, and the late answers with them: none can come."""
            count = refused_answers(gateways[0])
            gone = paused > SILENCE - 0.5 or victim.log_has("stood_still")
            return str(count) if count > 0 or gone else None

        refused = until("its late answers are refused", refused_or_gone)
        assert redis("GET", key) == "new"
        if refused == "0":
            print(f"# not tried: n2 was paused for {paused:.1f} s, so its late answers went with its links")
        print(f"# {refused} late answers refused; the clients got {sorted(set(map(str, answers)))}")
        assert "old" not in answers


def what_its_client_was_told_is_over_does_not_run_later(binary):
    """Hole 43. A node that is alone is never fenced: when it wakes it serves on, and what lay in its
    socket since before must not run, for its clients were told long ago that it timed out."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        node = fleet.node("n1")
        fleet.settled(["n1"])
        gateway = fleet.gateway("g1", ["--deadline-ms", "1000"]).resp
        redis = Resp(gateway)
        assert redis("INCR", "k") == 1
        node.kill(signal.SIGSTOP)
        begin = time.monotonic()
        try:
            answer = redis("INCR", "k")
        except RespError as refused:
            answer = str(refused)
        assert "TIMEOUT" in str(answer) or "UNKNOWN" in str(answer), answer
        while time.monotonic() - begin < SILENCE + 1:  # the length of the pause is the experiment
            time.sleep(0.1)
        node.kill(signal.SIGCONT)
        until("the node notices", lambda: node.log_has("stood_still"))

        def count():
            try:
                return redis("INCR", "k")
            except RespError:
                return None

        assert until("the node answers", count) == 2


main(
    [
        a_paused_node_runs_nothing_when_it_wakes,
        the_answers_of_a_node_that_serves_on_are_refused,
        what_its_client_was_told_is_over_does_not_run_later,
    ]
)
