#!/usr/bin/env python3
"""The clients that games are given, in C, JavaScript, Python, Go and C#: asked, pushed to, kicked, and gateways replaced under them."""
import atexit
import functools
import glob
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import certificates
from fleet import DEADLINE, Fleet, Resp, free_port, main, succeeds, until

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.join(HERE, "..", "..")
NODE = shutil.which("node") or shutil.which("nodejs")
ASKED = 300


@functools.lru_cache(maxsize=None)
def built_by_go(folder, package):
    """The program, in a folder that goes with this process."""
    made = tempfile.mkdtemp(prefix="ringhold-go-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    subprocess.run(["go", "build", "-o", made + "/", package], cwd=os.path.join(ROOT, folder), check=True)
    return os.path.join(made, os.path.basename(package))


@functools.lru_cache(maxsize=None)
def built_by_mono(*sources):
    """The program of these examples, beside the assembly that games have."""
    here = os.path.join(ROOT, "clients", "csharp")
    made = tempfile.mkdtemp(prefix="ringhold-mono-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    assembly = os.path.join(made, "Ringhold.dll")
    strict = ["mcs", "-langversion:7", "-warn:4", "-warnaserror"]
    subprocess.run([*strict, "-target:library", f"-out:{assembly}", *glob.glob(f"{here}/Ringhold/*.cs")], check=True)
    program = os.path.join(made, sources[0].replace(".cs", ".exe"))
    wanted = [os.path.join(here, "examples", source) for source in sources]
    subprocess.run(["mcs", "-langversion:7", f"-r:{assembly}", f"-out:{program}", *wanted], check=True)
    return program


class Player:
    """examples/player.c, tests/e2e/player.mjs, player.py, those of clients/go and clients/csharp: lines in, lines out."""

    def __init__(self, program, gateways, kind, name, token=None, env=None):
        words = [*program, ",".join(gateways), str(kind), name, *([token] if token else [])]
        env = {**os.environ, **(env or {})}
        self.popen = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.lines = queue.Queue()
        self.seen = []
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.kill()
        self.popen.wait()

    def read(self):
        for line in self.popen.stdout:
            self.lines.put(" ".join(line.split()))
        self.lines.put("ended")

    def say(self, *lines):
        self.popen.stdin.write("".join(f"{line}\n" for line in lines))
        self.popen.stdin.flush()

    def next(self, *starts):
        """The next line that begins so; others are kept in `seen`."""
        while True:
            try:
                line = self.lines.get(timeout=DEADLINE)
            except queue.Empty:
                raise AssertionError(f"no line {starts}; before: {self.seen[-20:]}") from None
            self.seen.append(line)
            if line.startswith(starts):
                return line
            assert line != "ended", (starts, self.seen[-20:])

    def hear(self, *lines):
        """Wait until each of them has come, in whatever order: an answer is told apart from what the client tells by itself."""
        for line in lines:
            while line not in self.seen:
                self.next("")

    def ask(self, line):
        self.say(line)
        return self.next("answer")

    def leave(self):
        self.popen.stdin.close()
        assert self.popen.wait(timeout=DEADLINE) == 0
        self.next("ended")


class Tcp:
    """How players reach gateways; tests/browser/clients.py has other ways."""

    entry = "frames"

    def words(self, port):
        """What makes a gateway listen so."""
        return [f"--{self.entry}", f"127.0.0.1:{port}"]

    def url(self, address):
        return address

    def programs(self, binary):
        yield [os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "player")]
        yield [os.path.join(HERE, "player.py")]
        if shutil.which("go"):
            yield [built_by_go("clients/go", "./examples/player")]
        else:
            print("# SKIP Go: it is not installed")
        if shutil.which("mcs"):
            yield ["mono", built_by_mono("Player.cs")]
        else:
            print("# SKIP C#: mono is not installed")
        if NODE:
            yield [NODE, os.path.join(HERE, "player.mjs")]
        else:
            print("# SKIP JavaScript: node is not installed")


def takes_websockets(program):
    return program[0] in (NODE, "mono")


carrier = Tcp()


def start(fleet, *kinds):
    fleet.coordinators(1)
    pusher = os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "pusher.so")
    fleet.node("n1", ["--actor", pusher, *kinds])


def gateway(fleet, name, port, *more):
    return fleet.gateway(name, [*carrier.words(port), *more])


def address_of(g):
    return carrier.url(g.fields[carrier.entry])


def addresses_of(ports):
    return [carrier.url(f"127.0.0.1:{port}") for port in ports]


def players_ask_and_are_pushed_to(binary):
    with Fleet(binary) as fleet:
        start(fleet, "--kind", "1:echo")
        g = gateway(fleet, "g1", 0)
        ops, address = Resp(g.resp), address_of(g)
        until("somebody owns it", lambda: succeeds(ops, "CALL", "x", "events") is not None)
        for number, program in enumerate(carrier.programs(binary)):
            name = f"p{number}"
            with Player(program, [address], 0, name) as player:
                assert player.next("bound") == "bound afresh"
                assert player.next("push") == "push 1 lost 0 hello"
                assert player.ask("push one") == "answer OK 0"
                assert player.ask("fail").startswith("answer ACTOR_FAILED"), player.seen
                player.say("!push two")
                player.next("push 2 lost 0 two", "push 1 lost 0 hello", "push 2 lost 0 hello")
                assert player.ask("push three") == "answer OK 0"  # nothing that it wrote meets a closed line
                assert ops("CALL", name, "kick go away") == "0"
                assert player.next("kicked").startswith("kicked 1007") and "go away" in player.seen[-1]
                player.next("ended")
            # Many at once to an actor that echoes, and takes no session: all answered, in order.
            with Player(program, [address], 1, name) as player:
                player.next("refused")
                player.say(*(f"line {i}" for i in range(ASKED)))
                for i in range(ASKED):
                    assert player.next("answer") == f"answer OK line {i}"
                player.leave()


def what_is_too_large_stays_here(binary):
    """One request of 70,000 bytes cost a client its connection, again and again, or ended it; it never leaves it now."""
    with Fleet(binary) as fleet:
        start(fleet, "--kind", "1:echo")
        both = ["--ws", "127.0.0.1:0"] if carrier.entry == "frames" else []
        g = gateway(fleet, "g1", 0, *both)
        ops = Resp(g.resp)
        until("somebody owns it", lambda: succeeds(ops, "CALL", "@1/x", "x") is not None)
        ways = [(program, address_of(g)) for program in carrier.programs(binary)]
        ways += [(program, f"ws://{g.fields['ws']}") for program, _ in ways if both and takes_websockets(program)]
        for program, address in ways:
            with Player(program, [address], 1, "me") as player:
                player.say("y" * 70000)  # before anybody has said what is taken
                player.next("refused")
                player.say("x" * 70000, "small")
                ends = [line for line in player.seen if line.startswith("answer")]
                while len(ends) < 3:
                    ends.append(player.next("answer"))
                assert sum(end.startswith("answer BAD_REQUEST") for end in ends) == 2, ends
                assert "answer OK small" in ends, ends
                assert player.ask("z" * 65000) == f"answer OK {'z' * 65000}"
                assert not [line for line in player.seen if line.startswith("lost")]
                player.leave()
        info = ops("INFO", "packets") + ops("INFO", "transport")
        assert "kicked_too_large:0" in info and "ws_too_large:0" in info, info


def gateways_are_replaced_under_them(binary):
    with Fleet(binary) as fleet:
        start(fleet, "--kind", "1:echo")
        ports = [free_port(), free_port()]
        gateways = [gateway(fleet, f"g{i}", port) for i, port in enumerate(ports)]
        until("somebody owns it", lambda: succeeds(Resp(gateways[0].resp), "CALL", "@1/x", "x") is not None)
        players = [Player(p, addresses_of(ports), 1, f"p{i}") for i, p in enumerate(carrier.programs(binary))]
        asked = 0
        for player in players:
            player.next("ready")
        for i, old in enumerate(gateways):
            # It stops while requests come: each is answered, once, in its turn; none is lost or run in doubt.
            for player in players:
                player.say(*(f"line {asked + n}" for n in range(ASKED // 2)))
            old.kill(signal.SIGTERM)
            for player in players:
                player.say(*(f"line {asked + ASKED // 2 + n}" for n in range(ASKED // 2)))
            for player in players:
                for n in range(ASKED):
                    assert player.next("answer") == f"answer OK line {asked + n}", player.seen[-20:]
            asked += ASKED
            assert old.wait() == 0
            gateways[i] = gateway(fleet, f"g{i}-new", ports[i])
        # Both die at once: what was under way may be in doubt; what is asked later is answered.
        for g in gateways:
            g.kill()
            g.wait()
        for player in players:
            player.next("lost")
        for i, port in enumerate(ports):
            gateways[i] = gateway(fleet, f"g{i}-last", port)
        for player in players:
            assert player.ask("still here") == "answer OK still here"
            with player:
                player.leave()


def numbered(player, count):
    """Take `count` pushes of the actor's numbers: none may be missing or come twice, whatever gateway they come by."""
    while player.counted < count:
        line = player.next("push", "bound afresh", "begun")
        words = line.split()
        assert words[0] == "push" and words[2:4] == ["lost", "0"], (line, player.seen[-20:])
        if words[4] != "hello":
            player.counted += 1
            assert int(words[4]) == player.counted, (line, player.seen[-20:])


def sessions_go_on_while_gateways_are_replaced(binary):
    with Fleet(binary) as fleet:
        start(fleet)
        ports = [free_port(), free_port()]
        gateways = [gateway(fleet, f"g{i}", port) for i, port in enumerate(ports)]
        until("somebody owns it", lambda: succeeds(Resp(gateways[0].resp), "CALL", "x", "events") is not None)
        players = [Player(p, addresses_of(ports), 0, f"p{i}") for i, p in enumerate(carrier.programs(binary))]
        for player in players:
            player.next("bound afresh")
            player.counted = 0
            player.say("!count 5")
            numbered(player, 10)
        for turn in range(4):
            old = gateways[turn % 2]
            old.kill(signal.SIGTERM if turn < 2 else signal.SIGKILL)
            old.wait()
            for player in players:
                numbered(player, player.counted + 40)
            gateways[turn % 2] = gateway(fleet, f"g{turn % 2}-{turn}", ports[turn % 2])
        for player in players:
            numbered(player, player.counted + 40)
            with player:
                player.leave()


def tokens_are_shown(binary):
    with Fleet(binary) as fleet:
        start(fleet)
        path = fleet.data("keys")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(f"k1 hex:{'5a' * 32}\n")
        g = gateway(fleet, "g1", 0, "--auth-keys", path)
        address = [address_of(g)]
        for program in carrier.programs(binary):
            code, made, err = fleet.run("token", "make", "--keys", path, "--id", "me")
            assert code == 0, err
            with Player(program, address, 0, "me", made.strip()) as player:
                player.next("bound afresh")
                assert player.ask("push mine") == "answer OK 0"
                player.leave()
            forged = made.strip()[:-2] + ("AA" if made.strip()[-2:] != "AA" else "BA")
            for token, code in ((forged, 109), ("nonsense", 107), (None, 106)):
                with Player(program, address, 0, "me", token) as player:
                    assert player.next("kicked").startswith(f"kicked {code} "), (token, player.seen)


def gateways_prove_who_they_are(binary):
    """By TLS without a WebSocket, for those that can."""
    with Fleet(binary) as fleet:
        start(fleet, "--kind", "1:echo")
        chain, key = certificates.make(fleet, "clients")
        g = fleet.gateway("g1", ["--frames-tls", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key])
        until("somebody owns it", lambda: succeeds(Resp(g.resp), "CALL", "@1/x", "x") is not None)
        host, _, port = g.fields["frames-tls"].rpartition(":")
        trusts = {"NODE_EXTRA_CA_CERTS": chain, "PLAYER_CA": chain}
        for program in list(carrier.programs(binary))[1:]:
            with Player(program, [f"tls://{host}:{port}"], 1, "me", env=trusts) as player:
                player.next("refused")
                assert player.ask("by TLS") == "answer OK by TLS"
                player.leave()
            with Player(program, [f"tls://{host}:{port}"], 1, "me") as player:
                assert "certificate" in player.next("lost").lower()


def javascript_has_the_bytes_of_the_page(_binary):
    if not NODE:
        print("# SKIP JavaScript: node is not installed")
        return
    page = os.path.join(ROOT, "docs", "protocol-client.md")
    subprocess.run([NODE, os.path.join(HERE, "client_bytes.mjs"), page], check=True, timeout=DEADLINE)
    subprocess.run([NODE, os.path.join(HERE, "client_waits.mjs")], check=True, timeout=DEADLINE)
    folder = os.path.join(ROOT, "clients", "js")
    with open(os.path.join(folder, "package.json")) as f:
        package = json.load(f)
    missing = [name for name in package["files"] if not os.path.exists(os.path.join(folder, name))]
    assert not missing and "dependencies" not in package, missing


def pythons_own_tests_pass(_binary):
    folder = os.path.join(ROOT, "clients", "python")
    words = [sys.executable, "-B", "-W", "error", "-m", "unittest"]
    tests = subprocess.run(words, cwd=folder, stderr=subprocess.PIPE, text=True, timeout=DEADLINE, check=False)
    assert tests.returncode == 0 and tests.stderr.rstrip().endswith("\nOK"), tests.stderr  # none is skipped


def gos_own_tests_pass(_binary):
    if not shutil.which("go"):
        print("# SKIP Go: it is not installed")
        return
    for words in (["vet"], ["test", "-count=1"]):
        subprocess.run(["go", *words, "./..."], cwd=os.path.join(ROOT, "clients", "go"), check=True, timeout=DEADLINE)


def csharps_own_tests_pass(_binary):
    if not shutil.which("mcs"):
        print("# SKIP C#: mono is not installed")
        return
    here = os.path.join(ROOT, "clients", "csharp")
    page = os.path.join(ROOT, "docs", "protocol-client.md")
    with tempfile.TemporaryDirectory(prefix="ringhold-mono-") as made:
        program = os.path.join(made, "Tests.exe")
        sources = [*glob.glob(f"{here}/Ringhold/*.cs"), f"{here}/tests/Tests.cs"]
        subprocess.run(["mcs", "-langversion:7", f"-out:{program}", *sources], check=True)
        subprocess.run(["mono", program, page], check=True, timeout=DEADLINE)


if __name__ == "__main__":
    main(
        [
            players_ask_and_are_pushed_to,
            what_is_too_large_stays_here,
            gateways_are_replaced_under_them,
            sessions_go_on_while_gateways_are_replaced,
            tokens_are_shown,
            gateways_prove_who_they_are,
            javascript_has_the_bytes_of_the_page,
            pythons_own_tests_pass,
            gos_own_tests_pass,
            csharps_own_tests_pass,
        ]
    )
