#!/usr/bin/env python3
"""While nothing moves, `status`, `txn list` and a watched drain say why and for how long yet; metrics say how long
ids were not served, and by what cause."""
import signal
import sys
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
sys.path.append(sys.path[0])
from fleet import Fleet, Resp, main, until
from smoke_drain import Terminal, started


def waits(fleet, reason):
    """The obstacles of that reason."""
    return [o for o in fleet.status()["obstacles"] if o["reason"] == reason]


def named(fleet, reason):
    """One that is told, as soon as it is."""
    return until(f"status names {reason}", lambda: waits(fleet, reason))[0]


def planned(fleet, reason):
    """The row of `txn list` for what waits for that."""
    rows = fleet.ask("txn", "list")
    return next((r for r in rows if r["state"] == "planned" and r["reason"] == reason), None)


def two_of_which_one_is_back(fleet, lost):
    """n1 and n2; one of them was killed, and is started again."""
    fleet.coordinators(1)
    for name in ("n1", "n2"):
        fleet.node(name)
    fleet.settled(["n1", "n2"])
    fleet.process(lost).kill().wait()
    fleet.node(lost)


def one_that_came_back_says_when_its_drain_begins(binary):
    with Fleet(binary) as fleet:
        two_of_which_one_is_back(fleet, "n2")
        drain = Terminal(fleet, "node", "drain", "n2", "--watch")
        wait = named(fleet, "returned")
        assert wait["node"] == wait["drains"] == "n2" and 0 < wait["left_ms"] <= 10000, wait
        assert wait["transactions"] > 0 and wait["vnodes"] > 0, wait
        assert "n2 was lost and is back" in wait["text"], wait
        row = planned(fleet, "returned")
        assert row["txn"] == "0" and row["from"] == "n2" and 0 < row["left_ms"] <= 10000, row
        assert row["why"] == "drain n2" and "n2 was lost and is back" in row["waiting_for"], row
        said = fleet.tell("status")
        assert "waiting (returned), drain of n2" in said, said
        drain.shows(r"vnodes left, \d+ actors, more than \d+ s to go")
        drain.shows("waits: n2 was lost and is back")
        drain.shows("n2 is empty after")
        drain.end(0)
        until("nothing waits", lambda: not fleet.status()["obstacles"])


def an_aborted_pair_says_when_it_is_tried_again(binary):
    with Fleet(binary) as fleet:
        started(fleet)  # an actor of n2 hangs
        fleet.tell("node", "drain", "n2")

        def backs_off():
            """Each abort doubles the back-off, so one is seen in the end."""
            for t in fleet.ask("txn", "list"):
                if t["state"] == "pending":
                    fleet.run("txn", "resolve", str(t["txn"]), "--abort", "--coordinators", fleet.addresses)
            return waits(fleet, "backoff")

        wait = until("status names the back-off", backs_off)[0]
        assert (wait["node"], wait["other"], wait["drains"]) == ("n2", "n1", "n2"), wait
        assert 0 < wait["left_ms"] <= 60000 and "from n2 to n1 was aborted" in wait["text"], wait


def a_full_node_and_one_that_is_away_are_named(binary):
    names = [f"n{i}" for i in range(1, 6)]
    with Fleet(binary) as fleet:
        # A long lease: who stands still is not fenced here.
        fleet.coordinators(1, extra=["--lease", "60s", "--prepare-ms", "600000"])
        for name in names:
            fleet.node(name)
        fleet.settled(names)
        fleet.process("n5").kill(signal.SIGSTOP)
        fleet.tell("node", "drain", "n5")  # its moves pend: as many as a slow node may have, then none
        wait = until("the rest waits for places", lambda: waits(fleet, "node_cap") + waits(fleet, "slow"))[0]
        assert wait["node"] == wait["drains"] == "n5" and wait["left_ms"] == 0, wait
        gone = named(fleet, "silent")  # as soon as it was not heard of for half a lease
        assert gone["node"] == "n5" and 0 < gone["left_ms"] <= 90000 and "n5 is not live" in gone["text"], gone
        fleet.process("n5").kill(signal.SIGCONT)
        fleet.settled(names[:4])


def a_drain_to_which_nobody_is_left_says_so(binary):
    with Fleet(binary) as fleet:
        two_of_which_one_is_back(fleet, "n1")
        fleet.tell("node", "drain", "n2")  # it waits for the one that is back
        fleet.process("n1").kill().wait()
        wait = named(fleet, "alone")
        assert wait["node"] == wait["drains"] == "n2" and wait["vnodes"] > 0, wait


def figures(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def the_metrics_say_by_what_ids_were_not_served(binary):
    with Fleet(binary) as fleet:
        nodes = ("n1", "n2", "n3")
        at = {name: f"127.0.0.1:{fleet.port()}" for name in (*nodes, "g1")}
        (leader,) = fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        for name in nodes:
            fleet.node(name, ["--admin", at[name]])
        fleet.gateway("g1", ["--admin", at["g1"]])
        fleet.settled(nodes)

        def count(name, cause, of="count"):
            return figures(at[name])[f'ringhold_node_unserved_seconds_{of}{{cause="{cause}"}}']

        assert sum(count(n, "move") for n in nodes) > 0
        assert sum(count(n, c) for n in nodes for c in ("takeover", "lease")) == 0
        fleet.process("n3").kill().wait()
        fleet.settled(["n1", "n2"])
        both = ("n1", "n2")
        assert sum(count(n, "takeover") for n in both) == 2, [figures(at[n]) for n in both]
        assert all(count(n, "takeover", "sum") > 0 for n in both)
        redis = Resp(fleet.process("g1").resp)

        def refused():
            """A request that comes to a node while it has no lease; it may be late, then it is tried again."""
            leader.kill(signal.SIGSTOP)
            until("their leases end", lambda: not any(figures(at[n])["ringhold_node_lease_margin_seconds"] for n in both))
            redis.send(("SET", "a", "1"))
            until("the gateway has it", lambda: figures(at["g1"])["ringhold_gateway_in_flight"])
            leader.kill(signal.SIGCONT)
            assert redis.read() == "OK"
            return sum(count(n, "lease") for n in both)

        until("a request found no lease", refused)


main(
    [
        one_that_came_back_says_when_its_drain_begins,
        an_aborted_pair_says_when_it_is_tried_again,
        a_full_node_and_one_that_is_away_are_named,
        a_drain_to_which_nobody_is_left_says_so,
        the_metrics_say_by_what_ids_were_not_served,
    ]
)
