"""What redis-benchmark talks to: our gateway and node, nutcracker with two Redis, and Redis alone.

    with Served(binary) as targets:          # {OURS: Target, NUTCRACKER: Target, REDIS: Target}
        rate, cpu_us, load_us = targets[OURS].load("set", depth=32, requests=100000)

All are started on loopback, and ended at the end. Peers that are not installed are left out.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from fleet import Fleet, Resp, RespError, free_port, until  # noqa: E402
from rows import cpu_of_children, cpu_seconds, installed  # noqa: E402

OURS, NUTCRACKER, REDIS = "ringhold", "nutcracker + 2 Redis", "Redis alone"


class Target:
    """A port, and the processes that serve it."""

    def __init__(self, port, processes):
        self.port, self.pids = port, [p.pid for p in processes]

    def answers(self):
        try:
            return Resp(("127.0.0.1", self.port), 1)("SET", "a", "1") == "OK"
        except (OSError, RespError):  # nutcracker may be up before its servers
            return False

    def load(self, test, depth, requests):
        """50 connections, 64-byte values, 100,000 keys, `depth` commands at a time. Returns requests a
        second, and microseconds of CPU that the serving processes took for a request, and redis-benchmark."""
        words = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(self.port), "-t", test, "-c", "50", "-d", "64"]
        words += ["-P", str(depth), "-r", "100000", "-n", str(requests), "--csv"]
        before, ended = cpu_seconds(*self.pids), cpu_of_children()
        out = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
        used, load = cpu_seconds(*self.pids) - before, cpu_of_children() - ended
        for line in out.splitlines():
            cells = [c.strip('"') for c in line.split(",")]
            if cells[0].lower() == test:
                return float(cells[1]), used / requests * 1e6, load / requests * 1e6
        raise AssertionError(out)


class Served:
    def __init__(self, binary):
        self.fleet = Fleet(binary)
        self.folder = tempfile.TemporaryDirectory(prefix="ringhold-bench-")
        self.started = []

    def start(self, words):
        self.started.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.started[-1]

    def redis_server(self, port):
        words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        return self.start(words + ["--dir", self.folder.name])

    def nutcracker(self, port, servers):
        path = os.path.join(self.folder.name, "nutcracker.yml")
        with open(path, "w") as f:
            f.write(f"pool:\n  listen: 127.0.0.1:{port}\n  hash: fnv1a_64\n  distribution: ketama\n")
            f.write("  redis: true\n  auto_eject_hosts: false\n  servers:\n")
            f.writelines(f"   - 127.0.0.1:{s}:1\n" for s in servers)
        words = ["nutcracker", "-c", path, "-s", str(free_port()), "-a", "127.0.0.1"]
        return self.start(words + ["-o", os.path.join(self.folder.name, "nutcracker.log")])

    def targets(self):
        self.fleet.coordinators(1)
        node, gateway = self.fleet.node("n1"), self.fleet.gateway("g1")
        targets = {OURS: Target(gateway.resp[1], (node.popen, gateway.popen))}
        if installed("redis-server"):
            alone, first, second, proxy = (free_port() for _ in range(4))
            if installed("nutcracker"):
                servers = [self.redis_server(port) for port in (first, second)]
                targets[NUTCRACKER] = Target(proxy, [self.nutcracker(proxy, (first, second)), *servers])
            targets[REDIS] = Target(alone, [self.redis_server(alone)])
        for name, target in targets.items():
            until(f"{name} answers", target.answers)
        return targets

    def __enter__(self):
        try:
            return self.targets()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for p in self.started:
            p.terminate()
        for p in self.started:
            p.wait()
        self.fleet.__exit__()
        self.folder.cleanup()
