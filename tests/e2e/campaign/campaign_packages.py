#!/usr/bin/env python3
"""`make packages`: the Debian packages in a fresh Debian (debian.py), where systemd runs as process 1 if this machine lets it. They
are installed by apt, the three units are configured from the shipped example and started by systemctl, and it is tried what
the units promise: ready when they serve, a status, a watchdog, a reload, a restart, a drain, rights taken away. Links
then go by TLS as docs/security.md says. A C program is built against what was installed and joins as a node, the manual and
the completion are tried, what the Dockerfile does is done, and all is purged.

Needs root.
"""
import glob
import os
import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import supervision
from debian import TOOLS, Booted, made
from fleet import free_port, healthy, until
from image import Image

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
ROLES = ("coordinator", "node", "gateway")

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
        .abi = RH_ABI, .size = sizeof options, .name = "game-2", .join = "127.0.0.1:7400", .data = "/var/lib/ringhold/game-2", .actor = "kv",
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
GAME_UNIT = """[Service]
User=ringhold
ExecStart=/srv/game
TimeoutStopSec=60
"""


def step(text):
    print(f"ok - {text}", flush=True)


def figures(text):
    print(re.sub("^", "# ", text.rstrip(), flags=re.M), flush=True)


def is_imaged(root):
    """Before anything else is in the root: it is what the image begins with."""
    with Image(os.path.join(ROOT, "packaging", "docker", "Dockerfile"), sys.argv[1], root.root, root.folder) as image:
        image.build()
        image.seal()
        assert "ringhold COMMAND" in Image.call(*image.command())
        assert "hello" in Image.call(*image.command("conform", "--list"))
        port = free_port()
        words = ["coordinator", "--listen", f"127.0.0.1:{port}", "--data", image.volume + "/coordinator"]
        with subprocess.Popen(image.command(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as daemon:
            try:
                assert daemon.stdout.readline().startswith("ready coordinator=1 "), "it starts"
                status = Image.call(*image.command("status", "--coordinators", f"127.0.0.1:{port}"))
                assert "leader 1" in status, status
            finally:
                daemon.terminate()
            assert daemon.wait() == 0, "and ends"
        for path in ("bin/sh", "bin/sleep"):
            assert os.path.exists(os.path.join(image.root, path)), f"the Kubernetes example runs /{path}"
    step(f"each of the {len(image.steps)} steps of the Dockerfile works; by its ENTRYPOINT and USER a coordinator runs, its root "
         "read-only")


def installed(root):
    root.apt("install", *root.here, *TOOLS)
    root.is_idle()
    kept = root.says("stat", "-c", "%U:%G %a", "/var/lib/ringhold").strip()
    assert kept == "ringhold:ringhold 750", kept
    root.shell("grep -q /etc/ringhold/ringhold.ini /var/lib/dpkg/info/ringhold.conffiles")
    step(f"apt installs {' '.join(root.here)}; nothing is started, the user and its folder are there")


def runs(root):
    ini = "/etc/ringhold/ringhold.ini"
    with open(root.path(ini)) as f:
        root.write(ini, re.sub(r"^; (admin = )", r"\1", f.read(), flags=re.M))
    assert root.says("ringhold", "config", "check", ini).count("is fine") == 3
    for role in ROLES:
        root.unit_start(f"ringhold-{role}")
    root.settled(["game-1"])
    assert root.says("redis-cli", "-p", "6380", "SET", "ada", "36").strip() == "OK"
    figures(root.says("ringhold", "status"))
    healthy(root)
    assert "hello" in root.says("ringhold", "conform", "--list"), "from the package ringhold-tools"
    node = "ringhold node --name n9 --join 127.0.0.1:7400 --data /srv/n9 --actor"
    for name, where in (("store_redis", "127.0.0.1:1,guard"), ("store_postgres", "host=127.0.0.1 port=1,guard")):
        said = root.shell(f"{node} '{name}={where}' 2>&1 || true")
        assert f"{name}: " in said and "refused" in said, ("from the package ringhold-stores", said)
    step("three units, configured from the shipped example, are a fleet: status, check, redis-cli")


def compiles(root):
    for name, text in (("game.c", GAME), ("client.c", CLIENT)):
        root.write(f"/srv/{name}", text)
    root.write("/etc/systemd/system/game-2.service", GAME_UNIT)
    cc = "cc -Wall -Wextra -Werror /srv/{0}.c -o /srv/{0} $(pkg-config --cflags --libs {1})"
    root.shell(cc.format("game", "ringhold"))
    root.shell(cc.format("client", "ringhold-client"))
    root.shell(cc.format("game", "--static ringhold").replace("/srv/game ", "/srv/game-static "))
    assert root.says("/srv/client").strip() == "MOVING"
    assert "libringhold.so.0 =>" in root.says("ldd", "/srv/game")
    root.unit_start("game-2")
    root.settled(["game-1", "game-2"])
    root.says("ringhold", "node", "wait", "game-2")
    if isinstance(root, Booted):
        supervision.done(supervision.the_fenced_come_back(root))
        assert root.says("redis-cli", "-p", "6380", "SET", "ada", "36").strip() == "OK"
    assert root.unit_stop("ringhold-node") == 0, "it drains to the program"
    root.settled(["game-2"])
    assert root.says("redis-cli", "-p", "6380", "GET", "ada").strip() == "36"
    step("a C program is built with pkg-config, joins as a node, and gets what the first node had")


def is_documented(root):
    shown = 0
    for path in glob.glob(root.path("/usr/share/man/man*/*ringhold*")):
        inside = path[len(root.root):]
        said = root.shell(f"MAN_KEEP_STDERR=1 man --warnings -E UTF-8 -P cat -l {inside} 2>&1 >/dev/null")
        assert said == "", (inside, said)
        shown += 1
    assert shown > 20 and "ringhold node drain" in root.says("man", "-P", "cat", "ringhold", "node")
    bash = "source /usr/share/bash-completion/bash_completion; _completion_loader ringhold; COMP_WORDS=({}); COMP_CWORD={}; " \
        "_ringhold; echo ${{COMPREPLY[@]}}"
    assert root.says("bash", "-c", bash.format("ringhold sta", 1)).split() == ["status"]
    assert "--deadline" in root.says("bash", "-c", bash.format("ringhold node drain --de", 3)).split()
    assert root.says("bash", "-c", bash.format("ringhold node wait ga", 3)).split() == ["game-2"]
    step(f"{shown} manual pages render without a warning; bash completes commands, flags and names of nodes")


def is_purged(root):
    assert root.unit_stop("ringhold-gateway") == 0
    assert root.unit_cut("game-2") == 143, "it had nobody to drain to"
    assert root.unit_stop("ringhold-coordinator") == 0
    names = root.shell("dpkg-query -W -f '${Package}\\n' '*ringhold*'").split()
    root.apt("purge", *names)
    root.shell("rm -r /packages /srv/* /etc/systemd/system/game-2.service")
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
    with made(packages) as root:
        is_imaged(root)
        root.begin()
        installed(root)
        runs(root)
        if isinstance(root, Booted):
            supervision.shown(root)
        compiles(root)
        is_documented(root)
        is_purged(root)


if os.geteuid() != 0:
    sys.exit("campaign_packages: needs root: it makes a Debian with debootstrap")
if "RINGHOLD_PACKAGES_INSIDE" not in os.environ:
    os.environ["RINGHOLD_PACKAGES_INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])
main()
