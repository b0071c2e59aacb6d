#!/usr/bin/env python3
"""What systemd is told by each daemon that it starts (Type=notify), and that a drain has a deadline.
The units that are shipped make sense to systemd, where it is installed."""
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


class Systemd:
    """Its end of NOTIFY_SOCKET: hears what one service says."""

    def __init__(self, fleet, name, watchdog_ms=0):
        self.path = os.path.join(fleet.folder, f"{name}.notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.env = {"NOTIFY_SOCKET": self.path}
        if watchdog_ms:
            self.env["WATCHDOG_USEC"] = str(watchdog_ms * 1000)
        self.heard = []
        threading.Thread(target=self.hear, daemon=True).start()

    def hear(self):
        while True:
            self.heard += self.socket.recv(4096).decode().splitlines()

    def lines(self):
        return list(self.heard)

    def has(self, line):
        return line in self.lines()

    def status(self):
        return next((s[7:] for s in reversed(self.lines()) if s.startswith("STATUS=")), "")


def each_says_when_it_is_ready_and_that_it_lives(binary):
    with Fleet(binary) as fleet:
        heard = {name: Systemd(fleet, name, watchdog_ms=300) for name in ("c1", "n1", "g1")}
        fleet.ports = {1: fleet.port()}
        node = fleet.node("n1", env=heard["n1"].env, ready=False)
        until("it waits for a coordinator", lambda: node.log_has("no_coordinator"))
        until("and says so", lambda: heard["n1"].status() == "the node is not registered")
        until("and lives", lambda: heard["n1"].has("WATCHDOG=1"))
        assert not heard["n1"].has("READY=1")
        fleet.coordinator(1, env=heard["c1"].env)
        node.wait_ready()
        fleet.gateway("g1", env=heard["g1"].env)
        for name, systemd in heard.items():
            until(f"{name} is ready", lambda systemd=systemd: systemd.has("READY=1"))
            until(f"{name} says so", lambda systemd=systemd: systemd.status() == "ready")
            beats = systemd.lines().count("WATCHDOG=1")
            until(f"{name} lives", lambda s=systemd, b=beats: s.lines().count("WATCHDOG=1") > b + 3)
        fleet.settled(["n1"])
        for name in ("g1", "n1", "c1"):
            if name == "n1":
                fleet.node("n2")  # takes what n1 has
                fleet.settled(["n1", "n2"])
            assert fleet.process(name).kill(signal.SIGTERM).wait() == 0
            assert heard[name].lines().count("READY=1") == 1
            end = ["STOPPING=1", "STATUS=stopped"]
            until(f"{name} stopped", lambda s=heard[name]: s.lines()[-2:] == end)


def a_drain_is_told_and_has_a_deadline(binary):
    with Fleet(binary) as fleet:
        systemd = Systemd(fleet, "n1")
        fleet.coordinators(1)
        node = fleet.node("n1", extra=["--drain", "3s"], env=systemd.env)
        fleet.settled(["n1"])
        # Nobody is there to take its ids.
        node.kill(signal.SIGTERM)
        assert node.wait() == 128 + signal.SIGTERM
        assert node.log_has("drain was cut short"), node.tail()
        until("it stopped", lambda: systemd.has("STOPPING=1"))
        told = [s for s in systemd.lines() if s.startswith("STATUS=the node is leaving, ")]
        assert told and told[0].split()[4] != "0" and told[0].endswith("vnodes are still here"), systemd.heard
        assert "WATCHDOG=1" not in systemd.heard, "nobody asked"


def a_socket_that_is_not_there_is_said(binary):
    with Fleet(binary) as fleet:
        for path, why in (("/nowhere/there", "No such file"), ("relative", "Invalid argument"), ("/" + "x" * 200, "Invalid")):
            process = fleet.start("c1", ["coordinator", "--data", fleet.data("c1")], {"NOTIFY_SOCKET": path}, ready=False)
            assert process.wait() == 1 and process.log_has(why), process.tail()


def the_units_are_good(binary):
    if not shutil.which("systemd-analyze"):
        print("# no systemd-analyze here: the units were not looked at")
        return
    with tempfile.TemporaryDirectory() as folder:
        for path in glob.glob(os.path.join(ROOT, "packaging", "systemd", "*.service")):
            with open(path) as f:
                text = f.read()
            command = next(s for s in text.splitlines() if s.startswith("ExecStart="))
            role, ini = command.split()[1], command.split()[3]
            assert f"ringhold-{role}.service" == os.path.basename(path) and ini == "/etc/ringhold/ringhold.ini"
            with open(os.path.join(folder, os.path.basename(path)), "w") as f:
                f.write(text.replace("/usr/bin/ringhold", os.path.abspath(binary)))
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", f.name], capture_output=True, text=True, timeout=60
            )
            mine = [s for s in done.stderr.splitlines() if "ringhold" in s]
            assert not mine, mine


main([
    each_says_when_it_is_ready_and_that_it_lives,
    a_drain_is_told_and_has_a_deadline,
    a_socket_that_is_not_there_is_said,
    the_units_are_good,
])  # fmt: skip
