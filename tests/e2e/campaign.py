"""What the campaigns share (campaign_*.py; `make storm`): bots, and what they and a gateway tell."""
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


class Bots:
    """A run of `ringhold bot`."""

    def __init__(self, fleet, addresses, *words):
        command = [fleet.binary, "bot", addresses, "--json", "--quiet", *map(str, words)]
        self.run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def told(self, code=0, timeout=600):
        out, _ = self.run.communicate(timeout=timeout)
        assert self.run.returncode == code, (self.run.returncode, out)
        return json.loads(out)


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
