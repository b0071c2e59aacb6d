#!/usr/bin/env python3
"""tools/gdb shows the machines of real processes; make fleet's script starts a fleet that stays, and ends it."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, free_port, main, number_of, until

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tools")
DEADLINE = 60


def shown(target, *commands):
    """What the commands print of a process, by its pid, or of a core."""
    words = ["gdb", "-q", "-nx", "-batch", *target, "-x", os.path.join(TOOLS, "gdb")]
    for command in commands:
        words += ["-ex", command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE)
    assert "has no field" not in done.stderr and "Python Exception" not in done.stderr, (words, done.stdout, done.stderr)
    return done.stdout


def of(process, *commands):
    return shown(["-p", str(process.popen.pid)], *commands)


def a_debugger_shows_each_machine(binary):
    if not shutil.which("gdb"):
        print("# SKIP gdb is not installed")
        return
    with Fleet(binary) as fleet:
        # A process stands still while gdb looks at it: neither its lease nor the request may end meanwhile.
        coordinator = fleet.coordinators(1, extra=("--lease", "5min"))[0]
        node = fleet.node("n1")
        gateway = fleet.gateway("g1", extra=("--deadline-ms", "60000"))
        status = fleet.settled(["n1"])
        redis = Resp(gateway.resp)
        redis("SET", "ada", "36")

        text = of(node, "rh host", "rh ring", "rh")
        assert "name=n1 life=LIFE_SERVING" in text and "state=LEASE_ACTIVE" in text, text
        assert f"version={number_of(status['version'])} digest={status['digest']}" in text, (status, text)
        assert "host 0x" in text and "router 0x" in text, text
        text = of(coordinator, "rh coordinator")
        assert "leading=true" in text and "node name=n1 slot=1" in text, text
        text = of(gateway, "rh router")
        assert "node name=n1 slot=1 up=true" in text, text

        node.kill(signal.SIGSTOP)
        redis.send(["INCR", "ada"])
        text = until("the request is under way", lambda: pending(of(gateway, "rh pending")))
        session, seq = re.search(r"session=(\d+) id=ada\n.* (?:seq|rid)=(\d+)", text).groups()
        core = fleet.data("core")
        # A core of a process under the address sanitizer would hold terabytes of its shadow.
        save = [] if "address" in binary else [f"gcore {core}"]
        text = of(gateway, f"rh pending {session} {seq}", *save)
        assert "state=PENDING_" in text or "state=SLOT_SENT" in text, text  # of a record, of a stream
        node.kill(signal.SIGCONT)
        assert redis.read() == 37
        if save:
            assert "id=ada" in shown([binary, core], "rh pending")


def pending(text):
    return text if " id=ada" in text else None


def a_fleet_stays_until_it_is_told_to_stop(binary):
    folder = tempfile.mkdtemp(prefix="ringhold-stays-")
    script = os.path.join(TOOLS, "fleet")
    ports = {what: free_port() for what in ("c1", "c2", "c3", "resp", "frames", "admin")}
    with open(os.path.join(folder, "ports.json"), "w") as f:
        json.dump(ports, f)  # not the usual ones, which another program may take between the two starts
    fleet = None
    try:
        for way in ("stop", "Ctrl-C"):  # the second time it goes on with the same data
            fleet = subprocess.Popen([script, "start", binary, folder], stdout=subprocess.PIPE, text=True)
            lines = []
            for line in fleet.stdout:
                lines.append(line)
                if line.startswith("stop it:"):
                    break
            text = "".join(lines)
            assert f"redis-cli -h 127.0.0.1 -p {ports['resp']} " in text, text
            pids = [int(p) for p in re.findall(r"pid (\d+)", text)]
            assert len(pids) == 7, text
            redis = Resp(("127.0.0.1", ports["resp"]))
            assert redis("INCR", "stays") == 1
            redis.close()
            assert os.path.exists(os.path.join(folder, "c1", "raft.db")), os.listdir(folder)
            again = subprocess.run([script, "start", binary, folder], capture_output=True, text=True, timeout=DEADLINE)
            assert again.returncode == 1 and "runs in" in again.stderr, again
            if way == "stop":
                subprocess.run([script, "stop", folder], check=True, capture_output=True, timeout=DEADLINE)
            else:
                fleet.send_signal(signal.SIGINT)
            assert fleet.wait(DEADLINE) == 0
            assert not [p for p in pids if os.path.exists(f"/proc/{p}")]
            fleet.stdout.close()
    finally:
        if fleet is not None:
            fleet.kill()  # if it still runs; its processes end with it
            fleet.wait()
        shutil.rmtree(folder, ignore_errors=True)


main([a_debugger_shows_each_machine, a_fleet_stays_until_it_is_told_to_stop])
