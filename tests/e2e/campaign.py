"""What the campaigns share (campaign_*.py; `make storm`, `make bots`): bots, what they and a gateway tell, and who runs
on which cores."""
import json
import os
import resource
import subprocess

from fleet import Resp


def raise_file_limit():
    """As many files as there may be; returns how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def actor(fleet, *path):
    return os.path.join(os.path.dirname(fleet.binary), *path)


def gateway(fleet, name, *more):
    g = fleet.gateway(name, ["--frames", "127.0.0.1:0", *more])
    g.operator = Resp(g.resp)
    return g


def figures(g):
    text = g.operator("INFO")
    return {k: int(v) for k, v in (w.split(":") for w in text.split("\r\n") if ":" in w) if v.isdigit()}


def cores():
    """Those for what is tested, and those for a generator of load: on one machine it would else take from it what it
    has on another. All for both if there is one."""
    here = sorted(os.sched_getaffinity(0))
    half = max(1, len(here) // 2)
    return set(here[:half]), set(here[half:] or here)


def stay_on(pid, on):
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), on)


class Bots:
    """A run of `ringhold bot`."""

    def __init__(self, fleet, addresses, *words, on=None):
        command = [fleet.binary, "bot", addresses, "--json", "--quiet", *map(str, words)]
        self.run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if on is not None:
            stay_on(self.run.pid, on)

    def ended(self, timeout=600):
        """Its exit code, and what it told."""
        out, _ = self.run.communicate(timeout=timeout)
        assert self.run.returncode in (0, 2), (self.run.returncode, out)
        return self.run.returncode, json.loads(out)

    def told(self, code=0, timeout=600):
        got, told = self.ended(timeout)
        assert got == code, (got, told)
        return told


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))


def peak(g):
    """The most memory that the process ever had, bytes."""
    with open(f"/proc/{g.popen.pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def mib(size):
    return f"{size / 1048576:.1f} MiB"


def ms(us):
    return f"{us / 1000:.1f} ms"


def say(text):
    print(f"# {text}", flush=True)
