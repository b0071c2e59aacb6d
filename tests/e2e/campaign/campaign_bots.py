#!/usr/bin/env python3
"""BOTS (10,000) players with sessions at three gateways for SECONDS (120): each asks every 2 s and is pushed to every
second, 20 % drop the line each minute and resume, a node is drained, and a gateway is killed. The ledger is clean: nothing
lost, doubled or reordered, over all connections of each session. Printed beside it: the memory of an idle connection, at a
gateway and at Redis."""
import os
import shutil
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from campaign import Bots, actor, figures, gateway, mib, ms, raise_file_limit, resident, say
from fleet import Fleet, Resp, free_port, main, until

BOTS = int(os.environ.get("BOTS", "10000"))
SECONDS = int(os.environ.get("SECONDS", "120"))
RATE = int(os.environ.get("RATE", "500"))  # that log in a second
IDLE = min(BOTS, 5000)


def bound(gateways):
    return sum(figures(g)["bound_clients"] for g in gateways)


def memory_of(kind, processes, players):
    sizes = [resident(p.popen.pid) for p in processes]
    say(f"{kind}: {', '.join(mib(size) for size in sizes)}; {sum(sizes) / players / 1024:.1f} KiB a player")


def table(told):
    say("              lost  duplicated  out-of-order")
    say(f"    requests  {told['lost']:4}  {told['duplicated']:10}  {told['out_of_order']:12}")
    say(f"    pushes    {told['pushes_lost']:4}  {told['pushes_duplicated']:10}  {told['pushes_out_of_order']:12}")
    for names in (
        ("logins", "dropped", "cut", "resumed", "gone", "replaced", "begun_afresh", "kicked", "told_to_go", "turned_away"),
        ("asked", "ok", "again", "unknown", "unanswered", "wrong", "pushes"),
    ):
        say("    " + " ".join(f"{name} {told[name]}" for name in names))
    say(f"    statuses {told['statuses']}")
    say(f"    requests p50 {ms(told['request']['p50_us'])} p99 {ms(told['request']['p99_us'])}")


def judge(told):
    assert told["clean"] and told["unanswered"] == 0, told
    # Each drop, and each line of the gateway that was killed, was a session that went on.
    assert told["gone"] == told["replaced"] == told["begun_afresh"] == 0, told
    assert told["dropped"] > 0 and told["cut"] > 0 and told["resumed"] >= told["dropped"] * 9 // 10, told
    say("verdict: clean")


def the_ledger_is_clean(binary):
    raise_file_limit()
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        nodes = [fleet.node(name, ["--actor", actor(fleet, "examples", "bots.so")]) for name in ("n1", "n2", "n3")]
        gateways = [gateway(fleet, f"g{i}", "--max-clients", str(BOTS + 100)) for i in (1, 2, 3)]
        addresses = ",".join(g.fields["frames"] for g in gateways)
        words = ("--n", BOTS, "--rate", RATE, "--time", f"{SECONDS}s", "--ask", "2s", "--drop", "20", "--away", "2s")
        began = time.monotonic()
        run = Bots(fleet, addresses, *words, "--check", "count")
        until("they are in", lambda: bound(gateways) >= BOTS * 9 // 10, deadline=SECONDS / 2)
        say(f"{BOTS} are in after {time.monotonic() - began:.0f} s")
        time.sleep(max(0, began + SECONDS / 3 - time.monotonic()))
        memory_of("gateways", gateways, BOTS)
        memory_of("nodes", nodes, BOTS)
        fleet.tell("node", "drain", "n1")
        say(f"n1 is drained, {time.monotonic() - began:.0f} s after the start")
        time.sleep(max(0, began + SECONDS * 2 / 3 - time.monotonic()))
        gateways.pop(0).kill()
        say(f"g1 is killed, {time.monotonic() - began:.0f} s after the start")
        code, told = run.ended()
        table(told)
        judge(told)
        assert code == 0, code


def grown(pid, connect):
    """Bytes that a connection adds to the process."""

    first = connect()  # what the first one makes
    before = resident(pid)
    here = [connect() for _ in range(IDLE)]
    time.sleep(2)  # a second after it was busy a connection keeps less
    size = (resident(pid) - before) / IDLE
    for client in (first, *here):
        client.close()
    return size


def of_redis(fleet):
    port = free_port()
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen([*words, "--maxclients", "19000", "--dir", fleet.folder], stdout=subprocess.DEVNULL)

    def connect():
        client = Resp(("127.0.0.1", port))
        assert client("PING") == "PONG"
        return client

    def answers():
        try:
            return connect()
        except OSError:
            return None

    try:
        until("redis answers", answers)
        return grown(server.pid, connect)
    finally:
        server.terminate()
        server.wait()


def a_connection_takes_so_much(binary):
    raise_file_limit()
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--actor", actor(fleet, "examples", "bots.so")])
        g = gateway(fleet, "g1", "--max-clients", "19000")
        address = tuple(g.fields["frames"].rsplit(":", 1))
        ours = grown(g.popen.pid, lambda: packets.Client(address))
        theirs = of_redis(fleet) if shutil.which("redis-server") else None
        beside = "no redis-server here" if theirs is None else f"Redis {theirs:.0f} bytes; ratio {ours / theirs:.2f}"
        say(f"an idle connection: {ours:.0f} bytes; {beside}")


main([the_ledger_is_clean, a_connection_takes_so_much])
