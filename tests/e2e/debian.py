"""A fresh Debian in a folder, made by debootstrap from where this machine gets its own packages, and what runs in it: with
systemd as its process 1 (systemd-nspawn, loopback alone), or, where that can't be had, in a chroot.

Needs root, and a mount namespace of one's own (`unshare --mount`): what is mounted is gone when the process ends, however
it ends. The daemons have a network of their own, as the ports that are shipped may be taken on this machine.
"""
import glob
import os
import re
import shutil
import signal
import subprocess

from fleet import Fleet, until

QUIET = ["env", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
TOOLS = "gcc libc6-dev pkg-config man-db bash-completion redis-tools util-linux".split()
APT = ["apt-get", "-y", "-q", "--no-install-recommends"]


def sh(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=900, stdin=subprocess.DEVNULL, **more)
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


class Debian(Fleet):
    """A root in which nothing but what a service's ExecStart says is started, by chroot."""

    def __init__(self, packages):
        super().__init__("/usr/bin/ringhold")
        self.root = os.path.join(self.folder, "root")
        self.space = f"ringhold-{os.getpid()}"
        self.ports = {1: 7400}
        self.user = "root"
        self.mounts = []
        self.packages = packages
        self.environment = []  # of commands: NAME=VALUE

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__(True)
            raise
        return self

    def mount(self, kind, at):
        sh("mount", "-t", kind, kind, at)
        self.mounts.append(at)

    def unmount(self):
        while self.mounts:
            sh("umount", self.mounts.pop())

    def make(self):
        address, suite = mirror()
        sh("debootstrap", "--variant=minbase", "--include=ca-certificates", suite, self.root, address)
        self.mount("proc", self.path("/proc"))
        self.mount("sysfs", self.path("/sys"))
        shutil.copy("/etc/resolv.conf", self.path("/etc/resolv.conf"))
        os.mkdir(self.path("/packages"))
        for path in self.packages:
            shutil.copy(path, self.path("/packages"))
        self.here = sorted("./" + os.path.basename(p) for p in self.packages)

    def begin(self):
        """With the network of this machine until here: what runs in there has none."""
        self.apt("update")
        self.apt("install", "--download-only", *self.here, *TOOLS)
        sh("ip", "netns", "add", self.space)
        sh("ip", "-n", self.space, "link", "set", "lo", "up")

    def apt(self, *words):
        return sh("chroot", self.root, *QUIET, "sh", "-c", f"cd /packages && {' '.join([*APT, *words])}")

    def __exit__(self, failed=None, *rest):
        for p in self.processes:
            p.kill()
            p.wait()
        self.unmount()
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True)
        with open("/proc/mounts") as f:
            left = [s for s in f.read().splitlines() if self.folder in s]
        assert not left, f"still mounted, and so not removed: {left}"
        super().__exit__(failed, *rest)

    def path(self, path):
        return self.root + path

    def write(self, path, text):
        with open(self.path(path), "w") as f:
            f.write(text)

    def prefix(self, _name):
        user = [f"--userspec={self.user}:{self.user}"]
        return ["ip", "netns", "exec", self.space, "chroot", *user, self.root, "env", *self.environment]

    def says(self, *words):
        """A command in it, as root: what it prints."""
        return sh(*self.prefix("ops"), *QUIET, *words)

    def shell(self, text):
        return self.says("sh", "-c", text)

    # ---- services

    def is_idle(self):
        """Nothing of the packages runs or is enabled."""
        assert not glob.glob(self.path("/etc/systemd/system/*.wants/ringhold*")), "a unit is enabled"
        running = [p for p in glob.glob("/proc/[0-9]*/root") if os.path.exists(p) and os.readlink(p) == self.root]
        assert not running, running

    def unit_start(self, unit):
        """The ExecStart of its file, as its User, ready when the daemon says so."""
        places = [self.path(f"{folder}/{unit}.service") for folder in ("/lib/systemd/system", "/etc/systemd/system")]
        with open(next(p for p in places if os.path.exists(p))) as f:
            fields = dict(re.findall(r"^(ExecStart|User|RuntimeDirectory)=(.*)", f.read(), re.M))
        user = fields["User"]
        if "RuntimeDirectory" in fields:
            sh("chroot", self.root, "install", "-d", "-o", user, "-g", user, "/run/" + fields["RuntimeDirectory"])
        program, *words = fields["ExecStart"].split()
        self.user = user
        try:
            self.start(unit, words, program=program)
        finally:
            self.user = "root"

    def unit_stop(self, unit):
        """Ended by SIGTERM: its exit code."""
        code = self.process(unit).kill(signal.SIGTERM).wait()
        for folder in glob.glob(self.path(f"/run/{unit}")):
            os.rmdir(folder)  # as systemd does
        return code

    def unit_cut(self, unit):
        """The last node of a fleet, told twice, as it drains to nobody: its exit code."""
        process = self.process(unit).kill(signal.SIGTERM)
        until("it drains to nobody", lambda: process.log_has("last_node"))
        return process.kill(signal.SIGTERM).wait()

    def unit_log(self, unit):
        with open(self.process(unit).log) as f:
            return f.read()


class Booted(Debian):
    """The same with systemd in it as process 1."""

    def __init__(self, packages):
        super().__init__(packages)
        self.nspawn = self.leader = self.group = None

    @staticmethod
    def missing():
        """What keeps this machine from it, or None."""
        if not shutil.which("systemd-nspawn"):
            return "no systemd-nspawn here (Debian's systemd-container)"
        with open("/proc/filesystems") as f:
            return None if "cgroup2" in f.read() else "the kernel has no cgroup2"

    def begin(self):
        """It boots."""
        self.apt("update")
        self.apt("install", "systemd", "systemd-sysv", "dbus")
        self.apt("install", "--download-only", *self.here, *TOOLS)
        self.unmount()
        tree = self.data("cgroup")
        os.mkdir(tree)
        self.mount("cgroup2", tree)
        with open("/proc/self/cgroup") as f:
            own = next(s.strip()[3:] for s in f if s.startswith("0::"))
        self.group = os.path.join(tree, own.lstrip("/"), self.space)
        os.mkdir(self.group)
        with open(self.data("boot.log"), "wb") as log:
            self.nspawn = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "systemd-nspawn", "--quiet", "--boot", "--register=no", "--keep-unit",
                 "--private-network", f"--machine={self.space}", f"--directory={self.root}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
                preexec_fn=self.enter_group,
            )
        until("systemd runs", self.is_booted, 120, 0.2)

    def enter_group(self):
        with open(os.path.join(self.group, "cgroup.procs"), "w") as f:
            f.write("0")

    def is_booted(self):
        assert self.nspawn.poll() is None, f"systemd-nspawn ended with {self.nspawn.returncode}: {self.boot_log()}"
        with open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children") as f:
            self.leader = (f.read().split() or [None])[0]
        if self.leader is None:
            return False
        asked = subprocess.run([*self.prefix(None), "systemctl", "is-system-running"], capture_output=True, text=True)
        return asked.stdout.strip() in ("running", "degraded")

    def boot_log(self):
        with open(self.data("boot.log"), errors="replace") as f:
            return f.read()[-1000:]

    def __exit__(self, failed=None, *rest):
        if self.leader and failed:
            print(re.sub("^", "# ", self.shell("systemctl --no-pager --failed; journalctl --no-pager -n 60"), flags=re.M))
        if self.nspawn:
            if self.leader:
                os.kill(int(self.leader), signal.SIGKILL)  # process 1: all others end with it
            else:
                self.nspawn.kill()
            self.nspawn.wait()
        if self.group:
            folders = [at for at, _, _ in os.walk(self.group, topdown=False)]
            until("its groups are empty", lambda: not any(self.members(at) for at in folders if os.path.exists(at)))
            for at in folders:
                os.rmdir(at)
        super().__exit__(failed, *rest)

    @staticmethod
    def members(group):
        with open(os.path.join(group, "cgroup.procs")) as f:
            return f.read()

    def apt(self, *words):
        if self.leader is None:
            return super().apt(*words)
        return self.shell(f"cd /packages 2>/dev/null; {' '.join([*APT, *words])}")

    def prefix(self, _name):
        return ["nsenter", "--target", self.leader, "--all", "--", "env", *self.environment]

    # ---- services

    def is_idle(self):
        listed = self.shell("systemctl list-unit-files --no-legend 'ringhold*'")
        assert [s.split()[1] for s in listed.splitlines()] == ["disabled"] * 3, listed
        assert self.shell("systemctl list-units --no-legend 'ringhold*'") == ""

    def unit_start(self, unit):
        self.says("timeout", "60", "systemctl", "start", unit)

    def unit_stop(self, unit):
        self.says("timeout", "120", "systemctl", "stop", unit)
        return int(self.property(unit, "ExecMainStatus"))

    def unit_cut(self, unit):
        self.says("systemctl", "stop", "--no-block", unit)
        until("it drains to nobody", lambda: "last_node" in self.unit_log(unit))
        self.says("systemctl", "kill", unit)
        until("it has ended", lambda: self.property(unit, "ActiveState") == "failed")
        return int(self.property(unit, "ExecMainStatus"))

    def unit_log(self, unit):
        return self.shell(f"journalctl --no-pager -o cat -u {unit}")

    def property(self, unit, name):
        return self.says("systemctl", "show", "--value", "-p", name, unit).strip()

    def restarted(self, unit, before):
        """It was started again since and is ready: once more than `before`."""
        until(f"{unit} is started again", lambda: int(self.property(unit, "NRestarts")) > before)
        until(f"{unit} is active", lambda: self.property(unit, "ActiveState") == "active")


def made(packages):
    """The Debian that this machine can have, booted or not."""
    missing = Booted.missing()
    if missing is None:
        return Booted(packages)
    print(f"# systemd does not run: {missing}. Each unit's ExecStart is started as its User, in a chroot")
    return Debian(packages)
