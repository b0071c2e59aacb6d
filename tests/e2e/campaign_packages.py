#!/usr/bin/env python3
"""`make packages`: the Debian packages in a fresh Debian. A minimal root is made by debootstrap, from where this machine
gets its own packages; in it they are installed by apt, the three units are configured from the shipped example and run, a C
program is built against what was installed and joins as a node, the manual and the completion are tried, and all is purged.

systemd runs in no chroot: the ExecStart of each unit is started here as its User, both read from the unit's file.

Needs root. The root and what is mounted in it are in a mount namespace of this process: they are gone when it ends, however
it ends. The daemons have a network namespace, as the example's ports may be taken on this machine.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

from fleet import Fleet, healthy, until

GAME = r"""
#include <ringhold.h>
#include <stdio.h>

static void on_ready(void *context, uint64_t incarnation, const char *address)
{
    (void)context;
    (void)printf("ready address=%s incarnation=%llu\n", address, (unsigned long long)incarnation);
    (void)fflush(stdout);
}

int main(void)
{
    const struct rh_node_options options = {
        .abi = RH_ABI, .size = sizeof options, .name = "game-2", .join = "127.0.0.1:7400", .data = "/tmp/game-2", .actor = "kv",
        .ready = on_ready,
    };
    return rh_node_run(&options);
}
"""
CLIENT = r"""
#include <ringhold_client.h>
#include <stdio.h>

int main(void)
{
    (void)puts(rhc_status_name(RHC_MOVING));
    return 0;
}
"""


def sh(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, **more)
    assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def mirror():
    """Where this machine has Debian from: (address, suite)."""
    for path in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
        try:
            with open(path) as f:
                text = f.read()
        except OSError:
            continue
        for part in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^(\w[\w-]*): *(.*)", part, re.M))
            suites = fields.get("Suites", "").split()
            if suites and "main" in fields.get("Components", "").split():
                return fields["URIs"].split()[0], suites[0]
        line = re.search(r"^deb +(?:\[[^]]*\] +)?(\S+) +(\S+) +(?:\S+ +)*main\b", text, re.M)
        if line:
            return line.groups()
    raise AssertionError("apt's sources name no Debian with main")


class Root(Fleet):
    """A Debian, and what runs in it."""

    def __init__(self, packages):
        super().__init__("/usr/bin/ringhold")
        self.root = os.path.join(self.folder, "root")
        self.space = f"ringhold-{os.getpid()}"
        self.ports = {1: 7400}
        self.user = "root"
        self.mounts = []
        self.packages = packages

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def make(self):
        address, suite = mirror()
        sh("debootstrap", "--variant=minbase", "--include=ca-certificates", suite, self.root, address)
        for kind, at in (("proc", "proc"), ("sysfs", "sys")):
            at = os.path.join(self.root, at)
            sh("mount", "-t", kind, kind, at)
            self.mounts.append(at)
        shutil.copy("/etc/resolv.conf", os.path.join(self.root, "etc", "resolv.conf"))
        os.mkdir(os.path.join(self.root, "packages"))
        for path in self.packages:
            shutil.copy(path, os.path.join(self.root, "packages"))
        sh("ip", "netns", "add", self.space)
        sh("ip", "-n", self.space, "link", "set", "lo", "up")

    def __exit__(self, failed=None, *rest):
        for p in self.processes:
            p.kill()
            p.wait()
        for at in reversed(self.mounts):
            sh("umount", at)
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True)
        with open("/proc/mounts") as f:
            left = [s for s in f.read().splitlines() if self.folder in s]
        assert not left, f"still mounted, and so not removed: {left}"
        super().__exit__(failed, *rest)

    def prefix(self, _name):
        user = [f"--userspec={self.user}:{self.user}"]
        return ["ip", "netns", "exec", self.space, "chroot", *user, self.root]

    def path(self, path):
        return self.root + path

    def says(self, *words):
        return sh(*self.prefix(None), "env", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *words)

    def apt(self, *words):
        """With the network of the machine."""
        quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "LANG=C.UTF-8", "apt-get", "-y", "--no-install-recommends"]
        return sh("chroot", self.root, *quiet, *words, cwd=self.root)

    def unit(self, role):
        with open(self.path(f"/lib/systemd/system/ringhold-{role}.service")) as f:
            fields = dict(re.findall(r"^(ExecStart|User|RuntimeDirectory)=(.*)", f.read(), re.M))
        self.user = fields["User"]
        folder = "/run/" + fields["RuntimeDirectory"]
        sh("chroot", self.root, "install", "-d", "-o", self.user, "-g", self.user, folder)
        program, *words = fields["ExecStart"].split()
        return self.start(role, words, program=program)


def step(text):
    print(f"ok - {text}", flush=True)


def installed(root):
    root.apt("update")
    here = sorted("./" + os.path.basename(p) for p in glob.glob(root.path("/packages/*.deb")))
    tools = ["gcc", "libc6-dev", "pkg-config", "man-db", "bash-completion", "redis-tools"]
    sh("chroot", root.root, "sh", "-c", f"cd /packages && DEBIAN_FRONTEND=noninteractive apt-get install -y "
       f"--no-install-recommends {' '.join(here + tools)}")
    assert not glob.glob(root.path("/etc/systemd/system/*.wants/ringhold*")), "a unit is enabled"
    running = [p for p in glob.glob("/proc/[0-9]*/root") if os.path.exists(p) and os.readlink(p) == root.root]
    assert not running, running
    kept = root.says("stat", "-c", "%U:%G %a", "/var/lib/ringhold").strip()
    assert kept == "ringhold:ringhold 750", kept
    root.says("sh", "-c", "cd /etc/ringhold && grep -q /etc/ringhold/ringhold.ini /var/lib/dpkg/info/ringhold.conffiles")
    step(f"apt installs {' '.join(here)}; nothing is started, the user and its folder are there")


def runs(root):
    ini = root.path("/etc/ringhold/ringhold.ini")
    with open(ini) as f:
        text = f.read()
    with open(ini, "w") as f:
        f.write(re.sub(r"^; (admin = )", r"\1", text, flags=re.M))
    assert root.says("ringhold", "config", "check", "/etc/ringhold/ringhold.ini").count("is fine") == 3
    for role in ("coordinator", "node", "gateway"):
        root.unit(role)
    root.settled(["game-1"])
    assert root.says("redis-cli", "-p", "6380", "SET", "ada", "36").strip() == "OK"
    print("# ringhold status:\n" + re.sub("^", "# ", root.says("ringhold", "status").rstrip(), flags=re.M))
    healthy(root)
    step("three units, configured from the shipped example, are a fleet: status, check, redis-cli")


def compiles(root):
    for name, text in (("game.c", GAME), ("client.c", CLIENT)):
        with open(root.path(f"/tmp/{name}"), "w") as f:
            f.write(text)
    cc = "cc -Wall -Wextra -Werror /tmp/{0}.c -o /tmp/{0} $(pkg-config --cflags --libs {1})"
    root.user = "root"
    root.says("sh", "-c", cc.format("game", "ringhold"))
    root.says("sh", "-c", cc.format("client", "ringhold-client"))
    root.says("sh", "-c", cc.format("game", "--static ringhold").replace("/tmp/game ", "/tmp/game-static "))
    assert root.says("/tmp/client").strip() == "MOVING"
    assert "libringhold.so.0 =>" in root.says("ldd", "/tmp/game")
    root.user = "ringhold"
    game = root.start("game-2", [], program="/tmp/game")
    root.settled(["game-1", "game-2"])
    root.says("ringhold", "node", "wait", "game-2")
    assert root.process("node").kill(signal.SIGTERM).wait() == 0, "it drains to the program"
    root.settled(["game-2"])
    assert root.says("redis-cli", "-p", "6380", "GET", "ada").strip() == "36"
    step("a C program is built with pkg-config, joins as a node, and gets what the first node had")
    return game


def is_documented(root):
    root.user = "root"
    shown = 0
    for path in glob.glob(root.path("/usr/share/man/man*/*ringhold*")):
        inside = path[len(root.root):]
        said = root.says("sh", "-c", f"MAN_KEEP_STDERR=1 man --warnings -E UTF-8 -P cat -l {inside} 2>&1 >/dev/null")
        assert said == "", (inside, said)
        shown += 1
    assert shown > 20 and "ringhold node drain" in root.says("man", "-P", "cat", "ringhold", "node")
    bash = "source /usr/share/bash-completion/bash_completion; _completion_loader ringhold; COMP_WORDS=({}); COMP_CWORD={}; " \
        "_ringhold; echo ${{COMPREPLY[@]}}"
    assert root.says("bash", "-c", bash.format("ringhold sta", 1)).split() == ["status"]
    assert "--deadline" in root.says("bash", "-c", bash.format("ringhold node drain --de", 3)).split()
    assert root.says("bash", "-c", bash.format("ringhold node wait ga", 3)).split() == ["game-2"]
    step(f"{shown} manual pages render without a warning; bash completes commands, flags and names of nodes")


def is_purged(root, game):
    root.process("gateway").kill(signal.SIGTERM).wait()
    game.kill(signal.SIGTERM)
    until("it drains, to nobody", lambda: game.log_has("node leaving node=game-2"))  # two signals at once are one
    assert game.kill(signal.SIGTERM).wait() == 128 + signal.SIGTERM
    assert root.process("coordinator").kill(signal.SIGTERM).wait() == 0
    for folder in glob.glob(root.path("/run/ringhold-*")):
        os.rmdir(folder)  # as systemd does
    names = root.says("sh", "-c", "dpkg-query -W -f '${Package}\\n' '*ringhold*'").split()
    root.apt("purge", *names)
    sh("rm", "-r", root.path("/packages"))
    others = ["-not", "-path", "/var/lib/ringhold/*", "-not", "-path", "/var/cache/man/*"]  # the second is man's own
    left = root.says("find", "/", "-xdev", "-iname", "*ringhold*", *others).split()
    assert left == ["/var/lib/ringhold"], left
    data = root.says("find", "/var/lib/ringhold", "-type", "f").split()
    assert "/var/lib/ringhold/coordinator/raft.db" in data, data
    assert root.says("id", "-un", "ringhold").strip() == "ringhold", "whose they are"
    assert not os.path.exists(root.path("/etc/ringhold"))
    step(f"purged, {' '.join(names)} leave /var/lib/ringhold, and its user: nothing else")


def main():
    packages = [p for p in glob.glob(os.path.join(sys.argv[1], "*.deb")) if "-dbgsym_" not in p]
    assert packages, f"{sys.argv[1]} has no packages: make deb"
    with Root(packages) as root:
        installed(root)
        runs(root)
        game = compiles(root)
        is_documented(root)
        is_purged(root, game)


if os.geteuid() != 0:
    sys.exit("campaign_packages: needs root: it makes a Debian with debootstrap")
if "RINGHOLD_PACKAGES_INSIDE" not in os.environ:
    os.environ["RINGHOLD_PACKAGES_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
main()
