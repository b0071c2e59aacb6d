#!/usr/bin/env python3
"""BOTS (10,000) players at three gateways for SECONDS (120): each asks every 2 s and is pushed to every second, 20 % drop
the line each minute and come back, a node is drained, and a gateway is killed. The ledger is clean: nothing lost,
doubled or reordered of what lines that stood carried. Printed beside it: the memory of an idle connection, at a gateway
and at Redis."""
import os
import shutil
import subprocess
import time

import packets
from campaign import Bots, actor, figures, gateway, ms, raise_file_limit, say
from fleet import Fleet, Resp, free_port, main, until

BOTS = int(os.environ.get("BOTS", "10000"))
SECONDS = int(os.environ.get("SECONDS", "120"))
IDLE = min(BOTS, 5000)


def bound(gateways):
    return sum(figures(g)["bound_clients"] for g in gateways)


def the_ledger_is_clean(binary):
    raise_file_limit()
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        for name in ("n1", "n2", "n3"):
            fleet.node(name, ["--actor", actor(fleet, "examples", "bots.so")])
        gateways = [gateway(fleet, f"g{i}", "--max-clients", str(BOTS + 100)) for i in (1, 2, 3)]
        addresses = ",".join(g.fields["frames"] for g in gateways)
        words = ("--n", BOTS, "--rate", "1000", "--time", f"{SECONDS}s", "--ask", "2s", "--drop", "20", "--check", "count")
        began = time.monotonic()
        run = Bots(fleet, addresses, *words)
        until("they are in", lambda: bound(gateways) >= BOTS * 9 // 10, deadline=SECONDS / 2)
        say(f"{BOTS} are in after {time.monotonic() - began:.0f} s")
        fleet.tell("node", "drain", "n1")
        say("n1 drains")
        time.sleep(max(0, began + SECONDS * 2 / 3 - time.monotonic()))
        gateways.pop(0).kill()
        say("g1 is killed")
        told = run.told()
        counts = " ".join(f"{k} {told[k]}" for k in ("logins", "dropped", "cut", "ok", "unknown", "pushes", "begun_afresh"))
        say(counts)
        ledger = " ".join(f"{k} {told[k]}" for k in ("lost", "duplicated", "out_of_order", "wrong", "pushes_lost", "pushes_duplicated"))
        say(f"ledger: {ledger}")
        say(f"requests p50 {ms(told['request']['p50_us'])} p99 {ms(told['request']['p99_us'])}")
        assert told["clean"] and told["dropped"] > 0 and told["logins"] > BOTS, told


def grown(pid, connect):
    """Bytes that a connection adds to the process."""

    def resident():
        with open(f"/proc/{pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))

    first = connect()  # what the first one makes
    before = resident()
    here = [connect() for _ in range(IDLE)]
    time.sleep(2)  # a second after it was busy a connection keeps less
    size = (resident() - before) / IDLE
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
