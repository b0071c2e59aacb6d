"""Fleets whose processes live in network namespaces of their own, joined by a bridge, so that a
test can cut any of them off, both ways or one way. Needs root and `ip`.

    why = machines.missing()
    with Machines(binary) as fleet:          # as Fleet
        fleet.cut("n1", "c1")                # packets from n1 to c1 are lost, not the other way
        fleet.isolate("n1"); fleet.heal()

Everything made here has the test's process id in its name and goes at the end.
"""
import ctypes
import os
import shutil
import subprocess

from fleet import Fleet

PORT = 7400
NET = "10.213.77."


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()}"
    return done.stdout


def missing():
    """Why namespaces can't be made here, or ""."""
    if os.geteuid() != 0:
        return "needs root for network namespaces"
    if shutil.which("ip") is None:
        return "needs ip (package iproute2)"
    probe = f"rh{os.getpid()}p"
    try:
        sh("ip", "netns", "add", probe)
        sh("ip", "netns", "exec", probe, "ip", "link", "add", "br0", "type", "bridge")
        sh("ip", "link", "add", "v0", "netns", probe, "type", "veth", "peer", "eth9", "netns", probe)
        sh("ip", "netns", "exec", probe, "ip", "route", "add", "blackhole", NET + "1/32")
    except AssertionError as error:
        return f"can't make network namespaces here: {error}"
    finally:
        subprocess.run(["ip", "netns", "del", probe], capture_output=True)
    return ""


def enter(namespace):
    """Move this process (one thread) into a namespace."""
    with open(f"/run/netns/{namespace}") as f:
        assert ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0x40000000) == 0


class Machines(Fleet):
    def __init__(self, binary, cluster="ringhold"):
        super().__init__(binary, cluster)
        self.fabric = f"rh{os.getpid()}"
        self.machine = {}  # name -> number
        self.blocked = []
        sh("ip", "netns", "add", self.fabric)
        self.inside(self.fabric, "ip", "link", "add", "br0", "type", "bridge")
        self.inside(self.fabric, "ip", "link", "set", "br0", "up")

    def __exit__(self, *what):
        super().__exit__(*what)
        for name in [self.namespace(n) for n in self.machine] + [self.fabric]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    @staticmethod
    def inside(namespace, *words):
        return sh("ip", "netns", "exec", namespace, *words)

    def namespace(self, name):
        """The machine of a process; made when first asked for."""
        space = f"{self.fabric}-{name}"
        if name not in self.machine:
            number = self.machine[name] = len(self.machine) + 1
            cable = f"v{number}"
            sh("ip", "netns", "add", space)
            sh("ip", "link", "add", cable, "netns", self.fabric, "type", "veth", "peer", "eth0", "netns", space)
            self.inside(self.fabric, "ip", "link", "set", cable, "master", "br0", "up")
            self.inside(space, "ip", "link", "set", "lo", "up")
            self.inside(space, "ip", "addr", "add", f"{NET}{number}/24", "dev", "eth0")
            self.inside(space, "ip", "link", "set", "eth0", "up")
        return space

    def prefix(self, name):
        return ["ip", "netns", "exec", self.namespace(name)]

    def host(self, name):
        self.namespace(name)
        return f"{NET}{self.machine[name]}"

    def port(self):
        return PORT

    def beyond(self):
        return ["--insecure"]

    # ---- faults

    def cut(self, source, target):
        """Packets from one to the other are lost, not the other way."""
        self.inside(self.namespace(source), "ip", "route", "add", "blackhole", self.host(target) + "/32")
        self.blocked.append((source, target))

    def part(self, one, other):
        self.cut(one, other)
        self.cut(other, one)

    def isolate(self, name, others=None):
        """From all others, or from these."""
        for other in others or [m for m in self.machine if m not in (name, "ops")]:
            self.part(name, other)

    def heal(self):
        for source, target in self.blocked:
            self.inside(self.namespace(source), "ip", "route", "del", "blackhole", self.host(target) + "/32")
        self.blocked.clear()
