#!/usr/bin/env python3
"""`ringhold rolling-restart`: all nodes, one after the other; what fails stops it; going on; only telling."""
import os
import re
import signal
import sys
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, number_of, started, until


def nodes(fleet):
    return {n["node"]: n for n in fleet.ask("node", "list")}


class Machines(threading.Thread):
    """Restarts or starts a node when a file named after it appears: what systemctl would do."""

    def __init__(self, fleet, number=signal.SIGTERM):
        super().__init__(daemon=True)
        self.fleet, self.number, self.over, self.done = fleet, number, threading.Event(), []
        self.command = f"touch {fleet.folder}/restart-{{node}}"
        self.start()

    def run(self):
        while not self.over.wait(0.05):
            for file in os.listdir(self.fleet.folder):
                if file.startswith("restart-"):
                    os.unlink(os.path.join(self.fleet.folder, file))
                    name = file.split("-", 1)[1]
                    self.fleet.process(name).kill(self.number).wait()
                    self.begin(name)
                elif file.startswith("start-"):
                    os.unlink(os.path.join(self.fleet.folder, file))
                    self.begin(file.split("-", 1)[1])

    def begin(self, name):
        self.done.append(name)
        self.fleet.node(name, ready=False)

    def end(self):
        self.over.set()
        self.join()


def rolling(fleet, *words):
    return fleet.run("rolling-restart", *words, "--coordinators", fleet.addresses, deadline=120)


def all_are_restarted_under_load(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        before = nodes(fleet)
        redis = Resp(fleet.process("g1").resp)
        over, counted = threading.Event(), []

        def load():
            while not over.is_set():
                counted.append(redis("INCR", "counter"))

        loader = threading.Thread(target=load)
        loader.start()
        machines = Machines(fleet)
        try:
            code, out, err = rolling(fleet, "--command", machines.command)
        finally:
            machines.end()
            over.set()
            loader.join()
        assert code == 0 and "3 nodes restarted" in out, (code, out, err)
        assert machines.done == ["n1", "n2", "n3"], machines.done
        assert [int(c) for c in counted] == list(range(1, len(counted) + 1)), "nothing lost, nothing twice"
        after = nodes(fleet)
        for name, n in after.items():
            assert number_of(n["incarnation"]) > number_of(before[name]["incarnation"]) and n["state"] == "live" and n["vnodes"] > 0, n


def a_crash_does_not_leave_it_drained(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2")
        machines = Machines(fleet, signal.SIGKILL)
        try:
            code, out, err = rolling(fleet, "n2", "--command", machines.command)
        finally:
            machines.end()
        assert code == 0 and machines.done == ["n2"], (code, out, err)
        assert nodes(fleet)["n2"]["state"] == "live", nodes(fleet)


def what_fails_stops_it_and_it_goes_on(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2", "n3")
        machines = Machines(fleet)
        try:
            broken = f"test {{node}} != n2 && {machines.command}"
            code, out, err = rolling(fleet, "--command", broken)
            assert code == 1 and "n2: the command ended with exit code 1" in err, (code, out, err)
            assert machines.done == ["n1"], machines.done
            until("its drain is taken back", lambda: nodes(fleet)["n2"]["state"] == "live")
            fleet.settled(["n1", "n2", "n3"])
            since = re.search(r"--since (\d+)", err).group(1)
            code, out, err = rolling(fleet, "--command", machines.command, "--since", since)
        finally:
            machines.end()
        assert code == 0 and "n1: skipped: restarted since" in out and "2 nodes restarted" in out, (code, out, err)
        assert machines.done == ["n1", "n2", "n3"], machines.done


def it_tells_first_and_refuses_nonsense(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2")
        before = nodes(fleet)
        plan = fleet.ask("rolling-restart", "--dry-run", "--command", "ssh {host} restart {node}")
        assert [(p["node"], p["command"]) for p in plan] == [
            ("n1", "ssh '127.0.0.1' restart 'n1'"),
            ("n2", "ssh '127.0.0.1' restart 'n2'"),
        ], plan
        plan = fleet.ask("rolling-restart", "--dry-run", "--systemd", "n2")
        assert [p["command"] for p in plan] == ["ssh '127.0.0.1' systemctl restart ringhold-node.service"], plan
        assert nodes(fleet)["n1"]["incarnation"] == before["n1"]["incarnation"]
        for words, what in (
            ((), "--command"),
            (("--command", "x {slot}"), "{slot} is not {node}"),
            (("--command", "x", "n9"), "unknown node"),
            (("--command", "x", "--since", "1x"), "--since"),
            (("--command", "x", "--systemd"), "--command"),
        ):
            code, _, err = rolling(fleet, *words)
            assert code == 1 and what in err, (words, code, err)
        # What doesn't come back in time is told. It is empty already: its drain takes none of that time.
        fleet.tell("node", "drain", "n1", "--wait", "60")
        code, out, err = rolling(fleet, "n1", "--command", "true", "--deadline", "1")
        assert code == 3 and "no new process of it" in err and "cancelled" in err, (code, out, err)
        until("it has its share again", lambda: nodes(fleet)["n1"]["state"] == "live")


def a_node_comes_and_one_takes_the_others_place(binary):
    with Fleet(binary) as fleet:
        started(fleet, "n1", "n2")
        machines = Machines(fleet)
        start = f"touch {fleet.folder}/start-{{node}}"
        try:
            code, out, err = fleet.run(
                "node", "add", "n3", "--command", start, "--host", "::1", "--coordinators", fleet.addresses)  # fmt: skip
            assert code == 0, (code, out, err)
            assert nodes(fleet)["n3"]["vnodes"] > 0
            code, out, err = fleet.run(
                "node", "replace", "n1", "n4", "--command", start, "--coordinators", fleet.addresses)  # fmt: skip
            assert code == 0, (code, out, err)
        finally:
            machines.end()
        assert machines.done == ["n3", "n4"], machines.done
        fleet.settled(["n2", "n3", "n4"])
        assert fleet.process("n1").wait() == 0, "it was removed, so its process ended"
        at = ("--coordinators", fleet.addresses)
        code, _, err = fleet.run("node", "replace", "n1", "n5", *at)
        assert code == 1 and "unknown node" in err, (code, err)
        code, out, err = fleet.run("node", "add", "n9", "--command", "exit 7", *at)
        assert code == 1 and "ended with exit code 7" in err, (code, out, err)
        code, out, err = fleet.run("node", "add", "n9", "--deadline", "1", *at)
        assert code == 3 and "n9 has not registered" in err, (code, out, err)


if __name__ == "__main__":
    main([
        all_are_restarted_under_load,
        a_crash_does_not_leave_it_drained,
        what_fails_stops_it_and_it_goes_on,
        it_tells_first_and_refuses_nonsense,
        a_node_comes_and_one_takes_the_others_place,
    ])  # fmt: skip
