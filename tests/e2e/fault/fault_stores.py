#!/usr/bin/env python3
"""The fenced stores, on a SQLite file, a real PostgreSQL and a real Redis.

An owner that is stopped (SIGSTOP) in the middle of a write, for three leases and under load, wakes
after others took over and wrote: its write is refused, and told. A database that is away, dead or
hangs costs errors, no counts. The lock guard finds two fleets on one store.
"""
import glob
import signal
import sys
import time
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, answer_of, main, number_of, pairs, until
from stores import Counting, Postgres, Redis, Sqlite, missing

LEASE = 2


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


def build(fleet, actor, nodes=("n1", "n2", "n3"), extra=()):
    fleet.coordinators(3, extra=["--lease", f"{LEASE}s", "--election-ms", "300"])
    for name in nodes:
        fleet.node(name, ["--actor", actor, *extra])
    gateways = [fleet.gateway(name).resp for name in ("g1", "g2")]
    fleet.settled(nodes)
    return gateways


def key_of(redis, node, prefix="k"):
    return next(k for k in (f"{prefix}{i}" for i in range(200)) if pairs(redis("WHERE", k))["node"] == node)


def in_timers(process):
    """Its threads that sleep for a time: each with how often it has gone to sleep ever."""
    asleep = set()
    for task in glob.glob(f"/proc/{process.popen.pid}/task/*"):
        try:
            with open(f"{task}/wchan") as wchan, open(f"{task}/status") as status:
                times = next(line for line in status if line.startswith("voluntary_ctxt_switches"))
                if wchan.read().startswith("hrtimer"):
                    asleep.add((task, times))
        except OSError:
            pass  # that thread has just ended
    return asleep


def sleeps(process):
    """One of its threads is in the pause of SLOW: longer than SQLite ever waits for a lock."""
    before = in_timers(process)
    time.sleep(0.2)
    return before & in_timers(process)


def refuses_the_late_write(kind):
    def case(binary):
        with Fleet(binary) as fleet, kind() as store:
            gateways = build(fleet, store.actor(binary), extra=["--on-lease-overrun", "gate"])
            redis = Resp(gateways[0])
            key = key_of(redis, "n2")
            assert redis("CALL", key, "INCR") == "1"
            load = Counting(gateways)
            until("the load runs", lambda: load.counted() > 200)
            slow = Resp(gateways[0])
            slow.send(("CALL", key, "SLOW 3000"))
            victim = fleet.process("n2")
            until("n2 runs it", lambda: sleeps(victim))
            victim.kill(signal.SIGSTOP)
            before = store.row(key)
            time.sleep(3 * LEASE)  # the length of the pause is the experiment; nothing is waited for by it
            until("n2 is replaced", lambda: owners(fleet) == {"n1", "n3"})
            assert redis("CALL", key, "INCR") == "2"
            count = load.counted()
            until("the load runs on", lambda: load.counted() > count + 200)
            victim.kill(signal.SIGCONT)
            code = victim.wait()
            late = [(node, token) for node, token in store.refusals() if token == before[1]]
            after = store.row(key)
            said = answer_of(slow, "CALL", key, "GET")  # the answer of SLOW, which was asked first
            load.finish()
            print(f"# before {before}, refused {store.refusals()}, after {after}; n2 ended with {code}; "
                  f"its client: {said}; load: {load.words()}")
            assert late and all(node == "n2" for node, _ in late), store.refusals()
            assert victim.log_has(f"{kind.example}: refused a write with token {before[1]}"), victim.tail()
            assert before[0] == 1 and after[0] == 2 and after[1] > before[1], (before, after)
            assert said.startswith("UNKNOWN"), said
            assert redis("CALL", key, "GET") == "2"
            assert int(redis("CALL", key, "REFUSED")) == len(store.refusals())
            load.must_agree_with(store)

    case.__name__ = f"{kind.example}_refuses_the_late_write"
    case.needs = [kind]
    return case


def outlives_its_server(kind):
    def case(binary):
        with Fleet(binary) as fleet, kind() as store:
            gateways = build(fleet, store.actor(binary), nodes=("n1", "n2"))
            redis = Resp(gateways[0])
            assert redis("CALL", "quiet", "INCR") == "1"
            load = Counting(gateways)
            until("the load runs", lambda: load.counted() > 200)
            store.die()
            until("requests are answered: it is away", lambda: load.said["AWAY"] > 0)
            maybe = 0
            # Its node may not have seen yet that a connection is gone: then nobody knows whether this
            # counts, the actor takes it that it does, and makes it true later.
            while not (said := answer_of(redis, "CALL", "quiet", "INCR")).startswith("AWAY"):
                assert said.startswith("UNKNOWN") and maybe < 50, said
                maybe += 1
            assert redis("CALL", "quiet", "GET") == f"{1 + maybe}"  # what is in memory needs no server
            count = load.counted()
            store.__enter__()
            until("it counts again", lambda: load.counted() > count + 200)
            assert redis("CALL", "quiet", "INCR") == f"{2 + maybe}"
            unknown = load.said["UNKNOWN"]
            store.freeze()
            # Clients wait for the server now, their actors with them, and no others.
            assert redis("CALL", "quiet", "GET") == f"{2 + maybe}"
            until("requests are given up", lambda: load.said["UNKNOWN"] > unknown)
            count = load.counted()
            store.thaw()
            until("it counts again", lambda: load.counted() > count + 200)
            load.finish()
            load.must_agree_with(store)
            assert fleet.process("n1").log_has("the server is away") and fleet.process("n1").log_has("is back")
            print(f"# {load.words()}")

    case.__name__ = f"{kind.example}_outlives_its_server"
    case.needs = [kind]
    return case


def is_saved_before_a_move(kind):
    """ADD counts in memory; the flush before a move brings it to the store, and the periodic one."""

    def case(binary):
        with Fleet(binary) as fleet, kind() as store:
            gateways = build(fleet, store.actor(binary), nodes=("n1", "n2"))
            redis = Resp(gateways[0])
            keys = [f"k{i}" for i in range(100)]
            for key in 3 * keys:
                redis("CALL", key, "ADD")
            moving = [key for key in keys if pairs(redis("WHERE", key))["node"] == "n1"]
            fleet.tell("node", "drain", "n1")
            fleet.settled(["n2"])
            assert [redis("CALL", key, "GET") for key in keys] == ["3"] * len(keys)
            assert moving and all(store.row(key)[0] == 3 for key in moving)
            print(f"# {len(moving)} of {len(keys)} moved, and were saved")
            assert redis("CALL", moving[0], "ADD") == "4"
            until("it is saved in its time", lambda: store.row(moving[0])[0] == 4)

    case.__name__ = f"{kind.example}_is_saved_before_a_move"
    case.needs = [kind]
    return case


def without_a_server_no_node_starts(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for store in (Postgres(), Redis()):
            with Sqlite():
                node = fleet.node(store.example, ["--actor", store.actor(binary)], ready=False)
                assert node.wait() == 1
                assert node.log_has(str(store.port)) and node.log_has("refused"), node.tail()
                assert "did not start" in node.tail()


without_a_server_no_node_starts.needs = [Postgres, Redis]


def the_guard_finds_two_fleets(kind):
    """Two holders of one id, which nothing within one fleet allows: two fleets, one store."""

    def case(binary):
        with kind(",guard") as store, Fleet(binary, "blue") as blue, Fleet(binary, "green") as green:
            at = {}
            admin = blue.port()
            for fleet in (blue, green):
                fleet.coordinators(1, extra=["--lease", f"{LEASE}s"])
                watched = ["--admin", f"127.0.0.1:{admin}"] if fleet is blue else []
                fleet.node(fleet.cluster, ["--actor", store.actor(binary), *watched])
                at[fleet] = Resp(fleet.gateway("g").resp)
                fleet.settled([fleet.cluster])
            assert at[blue]("CALL", "k", "INCR") == "1"
            owner, generation, _ = store.lock("k").split()
            assert owner.startswith("blue@") and owner.endswith(f":{blue.process('blue').popen.pid}")
            assert int(generation) == store.row("k")[1]
            # The second one has no greater generation: refused, and the holder hears of it.
            refused = answer_of(at[green], "CALL", "k", "INCR")
            until("blue hears of it", lambda: at[blue]("CALL", "k", "CONFLICTS") == "1")
            assert blue.process("blue").log_has(f'conflict: "k": my lock of generation {generation} was asked for')
            assert green.process("green").log_has("the lock is that of \"blue@"), green.process("green").tail()
            assert at[blue]("CALL", "k", "INCR") == "2" and store.row("k")[0] == 2
            # Who listens does so again when the server is back.
            store.die()
            store.__enter__()
            until("both listen again", lambda: len(store.listeners()) == 2)
            # A new incarnation has a greater one: it takes over, and the holder learns that, too.
            while generation_of(green) <= int(generation):
                green.process("green").kill().wait()
                green.node("green", ["--actor", store.actor(binary)])
                green.settled(["green"], deadline=90)
            taken = until("green takes over", lambda: answer_of(at[green], "CALL", "k", "INCR"))
            # Nobody asks for it at blue: it ends all the same, and is counted. The next one has no right, either,
            # which it hears when its connections are there again.
            until("blue's actor ends", lambda: deposed(admin) == 1)
            until("blue's next one is refused", lambda: answer_of(at[blue], "CALL", "k", "GET").startswith("FENCED"))
            assert deposed(admin) == 1 and blue.process("blue").log_has(f"deposed actor=0/k kind={kind.example}")
            assert store.lock("k").startswith("green@") and store.row("k")[0] == 3, (taken, store.row("k"))
            print(f"# refused: {refused}; then taken over: {store.lock('k')}, count {taken}")

    case.__name__ = f"{kind.example}_shows_two_fleets_by_its_guard"
    case.needs = [kind]
    return case


def deposed(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        return next(int(line.split()[-1]) for line in page.read().decode().splitlines()
                    if line.startswith("ringhold_node_deposed_total"))  # fmt: skip


def generation_of(fleet):
    return number_of(fleet.ask("where", "0/k")["generation"])


def locks_are_released_and_stale_ones_taken_over(kind):
    def case(binary):
        with kind(",guard") as store, Fleet(binary) as fleet:
            gateways = build(fleet, store.actor(binary), nodes=("n1", "n2"))
            redis = Resp(gateways[0])
            key, other = key_of(redis, "n1"), key_of(redis, "n2", "o")
            assert redis("CALL", key, "INCR") == "1" and redis("CALL", other, "INCR") == "1"
            assert store.lock(key).startswith("n1@") and store.lock(other).startswith("n2@")
            # It moves: the old owner releases, long before anybody wants it.
            fleet.tell("node", "drain", "n1")
            fleet.settled(["n2"])
            until("its lock is released", lambda: store.lock(key) is None)
            assert redis("CALL", key, "INCR") == "2" and store.lock(key).startswith("n2@")
            # It dies: nobody releases; the lock tells that its generation is over.
            stale = store.lock(key)
            fleet.node("n3", ["--actor", store.actor(binary)])
            fleet.settled(["n2", "n3"])
            key = key_of(redis, "n3", "q")
            assert redis("CALL", key, "INCR") == "1"
            stale = store.lock(key)
            fleet.process("n3").kill()
            until("n3 is replaced", lambda: owners(fleet) == {"n2"})
            assert redis("CALL", key, "INCR") == "2"
            assert int(store.lock(key).split()[1]) > int(stale.split()[1]), (stale, store.lock(key))
            # And without the guard there is none.
            assert redis("CALL", key, "CONFLICTS") == "0"
            print(f"# {stale} was taken over: {store.lock(key)}")

    case.__name__ = f"{kind.example}_releases_locks_and_gives_stale_ones_away"
    case.needs = [kind]
    return case


cases = [
    *map(refuses_the_late_write, (Sqlite, Postgres, Redis)),
    *map(outlives_its_server, (Postgres, Redis)),
    *map(is_saved_before_a_move, (Postgres, Redis)),
    without_a_server_no_node_starts,
    *map(the_guard_finds_two_fleets, (Postgres, Redis)),
    *map(locks_are_released_and_stale_ones_taken_over, (Postgres, Redis)),
]
for case in cases:
    if missing(sys.argv[1], case.needs):
        print(f"ok - {case.__name__} # SKIP {missing(sys.argv[1], case.needs)}")
main([case for case in cases if not missing(sys.argv[1], case.needs)])
