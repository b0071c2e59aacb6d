"""Real processes for the end-to-end tests: a fleet on loopback, and small clients.

    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1"); fleet.node("n2")
        gateway = fleet.gateway("g1")
        redis = Resp(gateway.resp)
        redis("SET", "a", "1")

Everything lives in a temporary folder that goes at the end (KEEP=1 keeps it).
Nothing here sleeps for an event: it waits for a line, an exit or an answer,
each with a deadline.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

DEADLINE = 60.0


class Ports:
    """Ports for this process: from a block that no other test has, below those that the kernel gives
    to connections. So one that is closed, as its process was killed, is nobody else's meanwhile."""

    FIRST, COUNT, BLOCKS = 12000, 100, 200

    def __init__(self):
        self.held = None  # a name in the kernel, given back when this process ends
        self.first = self.next = 0

    def hold(self):
        for turn in range(self.BLOCKS):
            block = (os.getpid() + turn) % self.BLOCKS
            held = socket.socket(socket.AF_UNIX)
            try:
                held.bind(f"\0ringhold-test-ports-{block}")
            except OSError:
                held.close()
                continue
            self.held, self.first = held, self.FIRST + block * self.COUNT
            return
        raise AssertionError("other tests hold all ports")

    def take(self):
        if self.held is None:
            self.hold()
        for _ in range(self.COUNT):
            port = self.first + self.next % self.COUNT
            self.next += 1
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    s.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    pass  # a program that is no test of ours
        raise AssertionError(f"no free port from {self.first} on")


free_port = Ports().take


def until(what, check, deadline=DEADLINE, pause=0.02):
    """Call check() until it is true; returns its value. Fails with `what` after the deadline."""
    end = time.monotonic() + deadline
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline:.0f} s: {what}")
        time.sleep(pause)


class Process:
    def __init__(self, fleet, name, words, env=None, ready=True, program=None):
        self.name = name
        self.log = os.path.join(fleet.folder, name + ".log")
        self.words = words
        with open(self.log, "ab") as log:
            self.popen = subprocess.Popen(
                fleet.prefix(name) + [program or fleet.binary] + words,
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})},
                start_new_session=True,
            )
        self.fields = {}
        if ready:
            self.wait_ready()

    def wait_ready(self, deadline=DEADLINE):
        os.set_blocking(self.popen.stdout.fileno(), False)
        text = b""

        def line():
            nonlocal text
            more = self.popen.stdout.read()
            text += more or b""
            if b"\n" in text:
                return text.split(b"\n")[0].decode()
            if self.popen.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.popen.returncode}: {self.tail()}")
            return None

        words = until(f"{self.name} ready; log: {self.log}", line, deadline).split()
        assert words[0] == "ready", words
        self.fields = dict(w.split("=", 1) for w in words[1:])

    def tail(self, count=5):
        with open(self.log, errors="replace") as f:
            return " | ".join(f.read().splitlines()[-count:])

    def log_has(self, text):
        with open(self.log, errors="replace") as f:
            return text in f.read()

    def log_count(self, text):
        with open(self.log, errors="replace") as f:
            return f.read().count(text)

    @property
    def resp(self):
        host, port = self.fields["resp"].rsplit(":", 1)
        return host, int(port)

    @property
    def running(self):
        return self.popen.poll() is None

    def kill(self, number=signal.SIGKILL):
        if self.running:
            self.popen.send_signal(number)
        return self

    def wait(self, deadline=DEADLINE):
        """Exit code; negative: the signal that ended it."""
        return self.popen.wait(timeout=deadline)

    def rss(self):
        with open(f"/proc/{self.popen.pid}/status") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


class Fleet:
    def __init__(self, binary, cluster="ringhold", folder=None):
        self.binary = os.path.abspath(binary)
        self.cluster = cluster
        self.folder = folder or tempfile.mkdtemp(prefix="ringhold-e2e-")
        self.processes = []
        self.ports = {}
        self.serial = 0

    def __enter__(self):
        return self

    def __exit__(self, failed=None, *_):
        if failed:
            self.show_logs()
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()
            p.popen.stdout.close()
        if os.environ.get("KEEP"):
            print(f"# kept {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def show_logs(self, count=12):
        """What each process said last: a failure that comes once in a hundred runs tells it here."""
        for p in self.processes:
            state = "runs" if p.running else f"ended with {p.popen.returncode}"
            print(f"# {p.name} {state}; the end of its log:")
            for line in p.tail(count).split(" | "):
                print(f"#   {line}")

    def data(self, name):
        return os.path.join(self.folder, name)

    def start(self, name, words, env=None, ready=True, program=None):
        """Start the binary, or another program that says when it is ready."""
        process = Process(self, name, words, env, ready=False, program=program)
        self.processes.append(process)  # first: one that never gets ready is ended too
        if ready:
            process.wait_ready()
        return process

    def process(self, name):
        """The last one started under that name."""
        return next(p for p in reversed(self.processes) if p.name == name)

    # ---- where a process lives: all on loopback here, each on a machine of its own in Machines

    def prefix(self, _name):
        """What goes before the command, so that it runs where `name` lives."""
        return []

    def host(self, _name):
        return "127.0.0.1"

    def port(self):
        return free_port()

    def beyond(self):
        """Flags that the addresses need."""
        return []

    # ---- roles

    @property
    def addresses(self):
        return ",".join(f"{self.host(f'c{i}')}:{p}" for i, p in self.ports.items())

    @property
    def peers(self):
        return ",".join(f"{i}={self.host(f'c{i}')}:{p}" for i, p in self.ports.items())

    def coordinators(self, count, env=None, extra=()):
        self.ports = {i: self.port() for i in range(1, count + 1)}
        started = [self.coordinator(i, env, extra, ready=False) for i in self.ports]
        for p in started:
            p.wait_ready()
        return started

    def coordinator(self, number, env=None, extra=(), ready=True):
        words = ["coordinator", "--id", str(number), "--cluster", self.cluster]
        words += ["--peers", self.peers, "--data", self.data(f"c{number}"), *self.beyond(), *extra]
        return self.start(f"c{number}", words, env, ready)

    def node(self, name, extra=(), env=None, ready=True):
        words = ["node", "--name", name, "--cluster", self.cluster, "--join", self.addresses]
        words += ["--listen", f"{self.host(name)}:0", "--data", self.data(name), *self.beyond(), *extra]
        return self.start(name, words, env, ready)

    def gateway(self, name, extra=(), env=None, port=0):
        words = ["gateway", "--name", name, "--cluster", self.cluster, "--join", self.addresses]
        words += ["--resp", f"{self.host(name)}:{port}", *self.beyond(), *extra]
        return self.start(name, words, env)

    # ---- the CLI

    def run(self, *words, deadline=DEADLINE):
        """Run a ringhold command; returns (exit code, stdout, stderr)."""
        done = subprocess.run(
            [*self.prefix("ops"), self.binary, *words],
            capture_output=True,
            text=True,
            timeout=deadline,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
        )
        return done.returncode, done.stdout, done.stderr

    def ask(self, *words, tries=DEADLINE):
        """A command's JSON answer; asks again while no leader answers."""

        def once():
            code, out, err = self.run(
                *words, "-o", "json", "--coordinators", self.addresses, "--cluster", self.cluster
            )
            self.last_error = err
            return (json.loads(out),) if code == 0 else None

        return until(f"ringhold {' '.join(words)}", once, tries)[0]

    def tell(self, *words):
        """A command of which one answer is enough; longer than any of them waits (--wait). It asks a leader that has
        just begun and is not ready again, as long as this machine may take for that."""
        where = ("--coordinators", self.addresses, "--cluster", self.cluster, "--timeout-ms", str(int(DEADLINE * 1000)))
        code, out, err = self.run(*words, *where, deadline=3 * DEADLINE)
        assert code == 0, (words, code, out, err)
        return out

    def status(self):
        return self.ask("status")

    def settled(self, nodes=None, deadline=DEADLINE, pause=0.02):
        """Wait until nothing moves or is planned, every process has the leader's ring, all threads of each gateway are
        linked, and (if given) exactly these nodes own something. Returns the status."""

        def check():
            s = self.status()
            owners = {n["node"] for n in s["nodes"] if n["vnodes"] > 0}
            same = all(
                (p["version"], p["digest"]) == (s["version"], s["digest"])
                for p in s["nodes"] + s["gateways"]
                if p.get("state") not in ("suspect", "fenced", "dead")
            )
            linked = {g["gateway"] for g in s["gateways"] if g["linked"] == g["threads"]}
            if s["pending"] or s["planned"] or s["planning"] or not same or not self.gateways() <= linked:
                return None
            return s if nodes is None or owners == set(nodes) else None

        return until(f"the fleet settles on {nodes}", check, deadline, pause)

    def gateways(self):
        """Names of those that have said that they are ready, and run."""
        mine = [p for p in self.processes if p.words[0] == "gateway" and "--name" in p.words and p.fields and p.running]
        return {p.words[p.words.index("--name") + 1] for p in mine}

    def leader(self):
        number = until("a leader", lambda: self.status()["leader"])
        return self.process(f"c{number}")


def succeeds(redis, *words):
    """A command's answer; None while it has none, or an error."""
    try:
        return redis(*words)
    except RespError:
        return None


def answer_of(redis, *words):
    """A command's answer, or the text of its error."""
    try:
        return redis(*words)
    except RespError as error:
        return str(error)


def refused(redis, *words):
    """The text of its error; it must be one."""
    try:
        answer = redis(*words)
    except RespError as error:
        return str(error)
    raise AssertionError(f"{words}: {answer} is no error")


def started(fleet, *names):
    """One coordinator, these nodes and a gateway g1, settled."""
    fleet.coordinators(1)
    for name in names:
        fleet.node(name)
    fleet.gateway("g1")
    fleet.settled(names)


def nothing_held(fleet):
    """Nodes tell what they hold with their renewals: those of before the fleet settled may be the last that came."""
    until("no node holds anything", lambda: not sum(n["held"] for n in fleet.status()["nodes"]))


def healthy(fleet):
    """`ringhold check` finds nothing wrong."""

    def check():
        code, out, err = fleet.run("check", "--coordinators", fleet.addresses, "--cluster", fleet.cluster)
        fleet.last_error = out + err
        return code == 0

    try:
        until("ringhold check finds nothing", check, 30, 0.5)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{fleet.last_error}") from None


class RespError(Exception):
    pass


class Resp:
    """A Redis client of one connection, RESP2."""

    def __init__(self, address, timeout=DEADLINE):
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    @staticmethod
    def encode(words):
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            data = word if isinstance(word, bytes) else str(word).encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        return b"".join(parts)

    def send(self, *commands):
        self.socket.sendall(b"".join(self.encode(c) for c in commands))

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("closed")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RespError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        raise ConnectionError(f"what is {line!r}?")

    def __call__(self, *words):
        self.send(words)
        return self.read()

    def close(self):
        self.file.close()
        self.socket.close()


def flat(text):
    """In one line, what is folded for people."""
    return " ".join(text.split())


def number_of(text):
    """A number as programs get it, "1.76" or "76": the era is above the 40 bits of the count."""
    era, _, count = str(text).rpartition(".")
    return int(era or 0) << 40 | int(count)


def pairs(flat):
    return dict(zip(flat[::2], flat[1::2]))


def commands(binary):
    """Every command, with those of its second word: "status", "node", "node drain"."""
    help_text = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
    found = []
    for name, summary in re.findall(r"^  ([a-z][a-z-]*) +(.*)", help_text, re.M):
        group = re.search(rf"\b{name} ((?:[a-z-]+(?: [A-Z]+)? \| )+[a-z-]+)", summary)
        parts = re.findall(r"[a-z][a-z-]*", group.group(1)) if group else []
        alone = not parts or name == "node"
        found += ([name] if alone else []) + [f"{name} {p}" for p in parts]
    return [c for c in found if c != "version"]


def main(cases):
    """Run the cases: functions of the binary's path, or of nothing. Prints TAP."""
    config = tempfile.TemporaryDirectory(prefix="ringhold-config-")  # who runs the tests may use contexts, too
    os.environ["XDG_CONFIG_HOME"] = config.name
    for name in ("RINGHOLD_CONTEXT", "RINGHOLD_COORDINATORS", "RINGHOLD_GATEWAY"):
        os.environ.pop(name, None)
    binary = sys.argv[1]
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = 0
    for case in cases:
        name = case.__name__
        if only not in name:
            continue
        try:
            begin = time.monotonic()
            case(binary)
            print(f"ok - {name} ({time.monotonic() - begin:.1f} s)", flush=True)
        except Exception:  # every failure is this case's, the others still run
            failed += 1
            print(f"not ok - {name}")
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()), flush=True)
    config.cleanup()
    sys.exit(1 if failed else 0)
