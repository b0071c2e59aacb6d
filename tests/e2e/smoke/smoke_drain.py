#!/usr/bin/env python3
"""A drain as a person sees it: the bar, whom it waits for, ^C that only stops looking, the way back to it, a
deadline that takes it back; and as a script's log has it."""
import itertools
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, until

class Terminal:
    """A command on a terminal of its own; `text` is what it has drawn, escapes and all."""

    def __init__(self, fleet, *words, **env):
        self.fd, other = pty.openpty()
        self.popen = subprocess.Popen(
            [fleet.binary, *words, "--coordinators", fleet.addresses],
            stdin=other, stdout=other, stderr=other, start_new_session=True, env={**os.environ, "TERM": "xterm", **env},
        )
        os.close(other)
        self.text = ""
        self.drawn = []  # the same, with when it came
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while True:
            try:
                more = os.read(self.fd, 4096)
            except OSError:
                return  # the other end is closed
            if not more:
                return
            self.drawn.append((time.monotonic(), more.decode()))
            self.text += more.decode()

    def shows(self, pattern):
        until(f"/{pattern}/ is shown", lambda: re.search(pattern, self.text) or self.popen.poll() is not None)
        until(f"/{pattern}/ is shown", lambda: re.search(pattern, self.text), 5)

    def end(self, code):
        self.popen.wait(60)
        self.reader.join(60)  # what it said last may not be read yet
        assert self.popen.returncode == code, (self.popen.returncode, self.text)


def started(fleet):
    """Two nodes; an actor of n2 that waits for an answer that nobody gives."""
    plugin = os.path.join(os.path.dirname(os.path.abspath(fleet.binary)), "tests", "plugins", "unruly.so")
    fleet.coordinators(1)
    for name in ("n1", "n2"):
        fleet.node(name, ["--actor", plugin, "--threads", "2"])
    fleet.gateway("g1")
    fleet.settled(["n1", "n2"])
    busy = next(f"k{i}" for i in itertools.count() if fleet.ask("where", f"0/k{i}")["node"] == "n2")
    redis = Resp(fleet.process("g1").resp)
    redis.send(("CALL", busy, "hang"))
    until("it hangs", lambda: any(r["id"] == busy for r in fleet.ask("top", "--hot")))
    return busy, redis


def state(fleet, name):
    return next((n["state"], n["vnodes"]) for n in fleet.status()["nodes"] if n["node"] == name)


def a_person_watches_leaves_and_comes_back(binary):
    with Fleet(binary) as fleet:
        busy, _redis = started(fleet)
        first = Terminal(fleet, "node", "drain", "n2", "--watch")
        first.shows(r"n2 \[#+-+\] \d+ of 64 vnodes left, \d+ actors")
        first.shows(f"waits for n2: actor 0/{busy}")
        first.popen.send_signal(signal.SIGINT)
        first.end(130)
        assert "The drain goes on" in first.text and "n2 is empty" not in first.text, first.text
        assert state(fleet, "n2")[0] == "leaving" and state(fleet, "n2")[1] < 64, state(fleet, "n2")
        second = Terminal(fleet, "node", "drain", "n2", "--watch")
        second.shows(f"waits for n2: actor 0/{busy}")
        fleet.process("n2").kill().wait()  # the way out of a handler that never ends
        second.shows("n2 is empty after")
        second.end(0)


def a_deadline_takes_it_back(binary):
    with Fleet(binary) as fleet:
        busy, _redis = started(fleet)
        words = ["node", "drain", "n2", "--coordinators", fleet.addresses]
        fleet.tell("node", "drain", "n2")
        until("it is known whom it waits for", lambda: any(f" 0/{busy} " in t["waiting_for"] for t in fleet.ask("txn", "list")))
        code, out, err = fleet.run(*words, "--deadline", "2")
        assert code == 3 and "the drain is cancelled" in err, (code, out, err)
        assert f"waits for n2: actor 0/{busy}" in err and "\033" not in err, err
        until("it has its share again", lambda: state(fleet, "n2") == ("live", 64) and not fleet.status()["planned"])
        code, _, err = fleet.run(*words, "--wait", "1")
        assert code == 3 and "cancelled" not in err, (code, err)
        code, _, err = fleet.run(*words, "--wait", "1", "--deadline", "1")
        assert code == 1 and "not both" in err, (code, err)


def a_log_has_a_line_for_each_tenth(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name)
        fleet.settled(["n1", "n2"])
        code, _, err = fleet.run("node", "drain", "n2", "--watch", "--coordinators", fleet.addresses)
        lines = err.splitlines()
        assert code == 0 and "\033" not in err and "\r" not in err, err
        assert lines[-1].startswith("n2 is empty after") and len(lines) <= 12, lines
        assert state(fleet, "n2") == ("leaving", 0)


def who_is_given_something_still_is_not_empty(binary):
    """A node that has just joined and is drained before its first vnodes have come."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1, extra=["--lease", "60s", "--prepare-ms", "60000"])
        first = fleet.node("n1")
        fleet.settled(["n1"])
        first.kill(signal.SIGSTOP)  # its moves to n2 pend
        fleet.node("n2")
        until("moves pend", lambda: fleet.status()["pending"])
        words = ["node", "drain", "n2", "--coordinators", fleet.addresses]
        code, _, err = fleet.run(*words, "--wait", "2")
        assert code == 3 and state(fleet, "n2") == ("leaving", 0), (code, err, fleet.status())
        first.kill(signal.SIGCONT)
        code, _, err = fleet.run(*words, "--wait", "60")
        assert code == 0, err
        assert state(fleet, "n2") == ("leaving", 0) and not fleet.status()["pending"], fleet.status()


def colours_are_for_terminals(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        for env, painted in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
            terminal = Terminal(fleet, "node", "list", **env)
            terminal.shows("n1")
            terminal.end(0)
            assert ("\033[32mlive\033[0m" in terminal.text) == painted, (env, terminal.text)
        assert "\033" not in fleet.tell("node", "list")


if __name__ == "__main__":
    main([
        a_person_watches_leaves_and_comes_back,
        a_deadline_takes_it_back,
        a_log_has_a_line_for_each_tenth,
        who_is_given_something_still_is_not_empty,
        colours_are_for_terminals,
    ])  # fmt: skip
