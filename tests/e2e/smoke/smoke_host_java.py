#!/usr/bin/env python3
"""The host in Java (hosts/java), an example that was written from docs/host-protocol.md alone: it compiles without a warning, and
its durable counters outlive `kill -9` of their host and of their node, over a Unix socket and over TCP.

Where no Java compiler is, the cases are skipped: they say so."""
import glob
import os
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, free_port, healthy, main, succeeds, until

LIBRARY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "hosts", "java"))
JAVA = shutil.which("java")
TOKEN = "0123456789abcdef"
IDS = [f"c{i}" for i in range(16)]


def compiled(fleet):
    """The folder of the classes; None: there is no compiler."""
    javac = shutil.which("javac")
    if not JAVA or not javac:
        print("# SKIP Java: no JDK is installed")
        return None
    classes = fleet.data("classes")
    sources = glob.glob(LIBRARY + "/src/ringhold/host/*.java") + glob.glob(LIBRARY + "/examples/*.java")
    words = [javac, "--release", "17", "-encoding", "UTF-8", "-Xlint:all", "-Werror", "-d", classes, *sources]
    said = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return classes


def counters_outlive_their_host_and_their_node(binary):
    with Fleet(binary) as fleet:
        classes = compiled(fleet)
        if not classes:
            return
        token = fleet.data("token")
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(TOKEN + "\n")
        addresses = {"n1": "unix:" + fleet.data("n1.sock"), "n2": f"127.0.0.1:{free_port()}"}

        def host(log, node, shown=TOKEN):
            words = ["-cp", classes, "Counter", addresses[node]]
            env = {"RINGHOLD_HOST_TOKEN": shown if node == "n2" else ""}
            return fleet.start(log, words, env=env, ready=False, program=JAVA)

        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        for node in addresses:
            where = ["--host", addresses[node], *(["--host-token", token] if node == "n2" else [])]
            fleet.node(node, ["--kind", "0:host=counter,durable", "--store", "sqlite:" + fleet.data("counters.db"), *where])
        hosts = {node: host("host-" + node, node) for node in addresses}
        redis = Resp(fleet.gateway("g1", ["--deadline-ms", "30000"]).resp)
        fleet.settled(["n1", "n2"])

        def all_add_to(count):
            for id in IDS:
                until(f"{id} lives", lambda id=id: succeeds(redis, "CALL", id, "get") == str(count - 1))
                assert redis("CALL", id, "add 1") == str(count), id

        all_add_to(1)
        hosts["n1"].kill().wait()
        hosts["n1"] = host("again-n1", "n1")
        all_add_to(2)
        # The other node's host has all of them, and the dead node's waits for its node.
        fleet.process("n1").kill().wait()
        all_add_to(3)
        fleet.start("n1", fleet.process("n1").words)
        fleet.settled(["n1", "n2"])
        fleet.process("n2").kill().wait()
        all_add_to(4)
        assert all(each.running and not each.log_has("\tat ") for each in hosts.values())
        fleet.start("n2", fleet.process("n2").words)
        wrong = host("wrong", "n2", "0123456789abcdeX")
        assert wrong.wait() == 1 and wrong.log_has("the node says goodbye: the token is not the node's"), wrong.tail()
        healthy(fleet)


main([
    counters_outlive_their_host_and_their_node,
])  # fmt: skip
