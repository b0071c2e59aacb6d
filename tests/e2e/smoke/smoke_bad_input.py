#!/usr/bin/env python3
"""Bad input gets one clear line and a non-zero exit; nothing else suffers."""
import os
import socket
import struct
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, free_port, main, until


def refused(fleet, *words, says):
    code, out, err = fleet.run(*words)
    lines = [line for line in err.splitlines() if line.startswith("ringhold")]
    assert code != 0, (words, out, err)
    assert len(lines) >= 1 and says in err, (words, err)
    assert "assert" not in err, err


def wrong_flags_and_files_are_named(binary):
    with Fleet(binary) as fleet:
        refused(fleet, "fly", says="unknown command 'fly'")
        refused(fleet, "coordinator", "--colour", "red", says="--colour: unknown flag")
        refused(fleet, "coordinator", "--id", "x", says="whole number")
        refused(fleet, "coordinator", "--id", "9", "--peers", "1=127.0.0.1:1", says="not among")
        refused(fleet, "coordinator", "--peers", "1=a:1,2=a:2", says="1, 3 or 5")
        refused(fleet, "coordinator", "--lease", "3", says="as 300ms, 3s or 5min")
        refused(fleet, "coordinator", "--lease", "1s", says="three election time-outs")
        refused(fleet, "coordinator", "--lease-margin", "50ms", says="margin is too small")
        refused(fleet, "coordinator", "--listen", "0.0.0.0:7400", says="--insecure")
        refused(fleet, "node", "--name", "n1", "--join", "nonsense", says="--join")
        refused(fleet, "status", "--output", "xml", says="table, wide, tsv or json")
        path = os.path.join(fleet.folder, "bad.ini")
        with open(path, "w") as f:
            f.write("[node]\nname = n1\ncolour = red\n")
        refused(fleet, "node", "--config", path, says="bad.ini:3: colour: unknown key")
        refused(fleet, "node", "--config", path + ".not", says="can't read")
        refused(fleet, "status", "--coordinators", f"127.0.0.1:{free_port()}", "--timeout-ms", "300", says="no coordinator answers")


def folders_that_are_not_mine_are_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        peers, address = fleet.peers, fleet.addresses
        port = free_port()
        refused(fleet, "coordinator", "--peers", f"1=127.0.0.1:{port}", "--data", fleet.data("c1"), says="another process")
        refused(fleet, "coordinator", "--peers", peers, "--data", fleet.data("other"), says="in use")
        refused(fleet, "node", "--name", "n9", "--join", address, "--listen", "127.0.0.1:0", "--data", fleet.data("n1"), says="ringhold node")
        fleet.processes[0].kill().wait()
        refused(fleet, "coordinator", "--cluster", "prod", "--peers", f"1=127.0.0.1:{port}", "--data", fleet.data("c1"), says="another cluster")
        readonly = "/proc/ringhold"
        refused(fleet, "coordinator", "--peers", f"1=127.0.0.1:{port}", "--data", readonly, says=readonly)


def names_and_drains_that_cannot_be_are_refused(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        where = ["--coordinators", fleet.addresses]
        refused(fleet, "node", "drain", "n7", *where, says="n7")
        refused(fleet, "node", "drain", "n1", *where, says="last")
        refused(fleet, "node", "remove", "n7", *where, says="n7")
        refused(fleet, "node", "replace", "n1", "n1", *where, says="can't replace itself")
        refused(fleet, "txn", "show", "12x", *where, says="is not a number")
        refused(fleet, "txn", "show", "1.", *where, says="is not a number")
        refused(fleet, "txn", "show", "1.99999999", *where, says="transaction 1.99999999 is unknown")
        refused(fleet, "txn", "show", "99999999", *where, says="transaction 99999999 is unknown")
        twin = fleet.start("twin", ["node", "--name", "n1", "--join", fleet.addresses, "--listen", "127.0.0.1:0", "--data", fleet.data("twin")], ready=False)
        assert twin.wait() == 1
        assert twin.log_has("belongs to a live node"), twin.tail()
        assert fleet.status()["nodes"][0]["state"] == "live"


def coordinators_with_another_list_refuse_each_other(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.leader()
        where = ["--coordinators", fleet.addresses]
        refused(fleet, "coordinators", "remove", "1,2,3", *where, says="would remove all coordinators")
        third = fleet.processes[2]
        third.kill().wait()
        lie = fleet.peers.replace(str(fleet.ports[1]), str(free_port()))
        liar = fleet.start("liar", ["coordinator", "--id", "3", "--peers", lie, "--data", fleet.data("liar")])
        until("the disagreement is logged", lambda: liar.log_has("lists disagree") or fleet.processes[1].log_has("lists disagree"))


def hostile_bytes_cost_nothing(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        node = fleet.node("n1")
        gateway = fleet.gateway("g1")
        internal = [("127.0.0.1", fleet.ports[1]), tuple(node.fields["address"].rsplit(":", 1))]
        redis = Resp(gateway.resp)
        redis("SET", "a", "1")
        frames = [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"*1\r\n$4\r\nPING\r\n",
            os.urandom(4096),
            struct.pack("<IBBH", 0xFFFFFFF0, 1, 0, 1),
            struct.pack("<IBBH", 4, 1, 0, 1),
            struct.pack("<IBBH", 100, 1, 0, 1) + b"short",
            struct.pack("<IBBH", 108, 8, 0, 1) + b"\xff" * 100,
        ]
        for host, port in internal:
            for frame in frames:
                with socket.create_connection((host, int(port)), timeout=10) as s:
                    try:
                        s.sendall(frame)
                        s.shutdown(socket.SHUT_WR)
                        while s.recv(4096):
                            pass
                    except OSError:
                        pass  # closed at the first bad byte
        for garbage in (b"*1\r\n$99999999999\r\n", b"*9999999\r\n", b"*1\r\n:1\r\n", b"*1\r\n$-5\r\n"):
            with socket.create_connection(gateway.resp, timeout=10) as s:
                s.sendall(garbage)
                answer = s.recv(4096)
                assert answer == b"" or answer.startswith(b"-ERR Protocol error"), (garbage, answer)
        try:
            redis("SET", "a", "x" * (2 << 20))
            raise AssertionError("an oversized bulk was taken")
        except (RespError, ConnectionError, OSError):
            pass
        assert Resp(gateway.resp)("GET", "a") == "1"
        assert all(p.running for p in fleet.processes)
        assert fleet.status()["nodes"][0]["state"] == "live"


main(
    [
        wrong_flags_and_files_are_named,
        folders_that_are_not_mine_are_refused,
        names_and_drains_that_cannot_be_are_refused,
        coordinators_with_another_list_refuse_each_other,
        hostile_bytes_cost_nothing,
    ]
)
