#!/usr/bin/env python3
"""What goes on until it is ended: `events --follow`, `status --watch`; and what bash completes."""
import json
import os
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main, until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")


class Watched:
    def __init__(self, fleet, *words):
        self.popen = subprocess.Popen(
            [fleet.binary, *words, "--coordinators", fleet.addresses],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.lines = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.popen.stdout:
            self.lines.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()


def events_come_as_they_happen(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.node("n2")
        fleet.settled(["n1", "n2"])
        with Watched(fleet, "events", "-f") as text, Watched(fleet, "events", "--follow", "-o", "json") as rows:
            until("what was is shown", lambda: text.lines and rows.lines)
            fleet.tell("node", "drain", "n1")
            until("the drain is told", lambda: any("drain" in s and "n1" in s for s in text.lines))
            fleet.leader().kill().wait()  # it asks the next one
            fleet.node("n3")
            until("n3 is told", lambda: any("n3" in s for s in text.lines) and any("n3" in s for s in rows.lines))
            told = [json.loads(s)[0] for s in list(rows.lines)]
            ids = [t["id"] for t in told]
            assert ids == list(range(ids[0], ids[0] + len(ids))), ids


def events_end_with_their_reader(binary):
    """Also while nothing happens that it could fail to write."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        words = [binary, "events", "--follow", "--coordinators", fleet.addresses]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as events:
            try:
                assert events.stdout.readline()
                events.stdout.close()
                assert events.wait(60) == 1
            finally:
                events.kill()


def status_is_shown_again(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        with Watched(fleet, "status", "--watch") as status:
            until("twice", lambda: sum(s.startswith("cluster ") for s in status.lines) > 1)
            assert not any("\033" in s for s in status.lines), "no terminal"
            fleet.node("n1")
            until("n1", lambda: any(s.startswith("n1 ") for s in status.lines))


def bash_completes(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])

        def completes(*words):
            script = (
                'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ringhold; printf "%s\\n" "${COMPREPLY[@]}"'
            )
            done = subprocess.run(
                ["bash", "-c", script, "-", os.path.join(ROOT, "packaging", "completion", "ringhold.bash"), binary, *words],
                capture_output=True, text=True, timeout=30, env={**os.environ, "RINGHOLD_COORDINATORS": fleet.addresses},
            )
            assert done.returncode == 0 and not done.stderr, done
            return done.stdout.split()

        assert completes("sta") == ["status"]
        assert {"coordinator", "node", "gateway", "txn", "check"} <= set(completes(""))
        assert completes("node", "dr") == ["drain"]
        # It asks the fleet, and doesn't let who types wait for long.
        until("it completes a node", lambda: completes("node", "drain", "n") == ["n1"])
        assert {"--watch", "--wait", "--deadline", "--coordinators"} <= set(completes("node", "drain", "n1", "--"))
        assert completes("gateway", "--auth-ke") == ["--auth-keys"]
        assert completes("status", "-o", "j") == ["json"]


main([
    events_come_as_they_happen,
    events_end_with_their_reader,
    status_is_shown_again,
    bash_completes,
])  # fmt: skip
