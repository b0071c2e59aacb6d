#!/usr/bin/env python3
"""`ringhold call` for scripts, and `ringhold cli` by hand, on a pseudo-terminal: answers, outcomes, pushes, completion, history."""
import os
import pty
import select
import stat
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import DEADLINE, Fleet, Resp, main, until


def plugin(fleet, name):
    return os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", name)


def started(fleet):
    fleet.coordinators(1)
    kinds = [f"0:{plugin(fleet, 'pusher.so')}", "2:echo", f"3:{plugin(fleet, 'unruly.so')}"]
    fleet.node("n1", extra=[word for kind in kinds for word in ("--kind", kind)])
    gateway = fleet.gateway("g1", extra=["--frames", "127.0.0.1:0"])
    fleet.settled(["n1"])
    return gateway.fields["frames"]


def resp_address(fleet):
    host, port = fleet.process("g1").resp
    return f"{host}:{port}"


def call(fleet, gateway, *words, stdin=b""):
    done = subprocess.run(
        [fleet.binary, "call", *words, "--gateway", gateway, "--coordinators", fleet.addresses],
        input=stdin, capture_output=True, timeout=DEADLINE, cwd=fleet.folder,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode()


def an_answer_comes_out_and_its_outcome_is_the_exit_code(binary):
    with Fleet(binary) as fleet:
        gateway = started(fleet)
        assert call(fleet, gateway, "2/a", "hello there") == (0, b"hello there\n", "")
        assert call(fleet, gateway, "echo/a", "by name") == (0, b"by name\n", "")
        assert call(fleet, gateway, "2/a", "-", stdin=b"a\0\xff\n") == (0, b"a\0\xff\n\n", "")
        assert call(fleet, gateway, "2/a", "--hex", "00 ff0a") == (0, b"00ff0a\n", "")
        assert call(fleet, gateway, "2/a") == (0, b"\n", "")
        big = os.urandom(700000)
        assert call(fleet, gateway, "2/a", "-", stdin=big)[0] == 5, "over 64 KiB, which the gateway says"

        code, out, err = call(fleet, gateway, "3/a", "fail")
        assert code == 4 and out == b"" and "the actor answered: ERR broken" in err, (code, out, err)
        code, out, err = call(fleet, gateway, "9/a", "x")
        assert code == 5 and out == b"" and "NO_OWNER" in err and "did not run" in err, (code, out, err)
        code, out, err = call(fleet, gateway, "3/b", "defer", "--deadline", "3s")  # it counts from before the connection
        assert code == 6 and out == b"" and "TIMEOUT" in err and "may have run" in err, (code, out, err)
        code, out, err = call(fleet, "127.0.0.1:1", "2/a", "x", "--deadline", "300ms")
        assert code == 1 and out == b"" and "no gateway took the request: the gateway can't be reached" in err, (code, out, err)
        for words, why in {("2/a", "--hex", "0"): "hexadecimal", ("nokind/a", "x"): "no kind is named", ("boss", "x"): "is not KIND/ID"}.items():
            code, out, err = call(fleet, gateway, *words)
            assert code == 1 and out == b"" and why in err, (words, code, out, err)


def what_is_told_arrives(binary):
    with Fleet(binary) as fleet:
        gateway = started(fleet)
        assert call(fleet, gateway, "--tell", "0/tally", "run 7") == (0, b"", "")
        redis = Resp(fleet.process("g1").resp)
        until("it came", lambda: redis("CALL", "tally", "score") == "1 0")
        code, out, err = call(fleet, "127.0.0.1:1", "--tell", "0/tally", "run 8", "--deadline", "300ms")
        assert code == 1 and out == b"" and "no gateway took the message" in err, (code, out, err)


class Console:
    """`ringhold cli` on a terminal of its own."""

    def __init__(self, fleet, *words):
        self.state = os.path.join(fleet.folder, "state")
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ.update({"XDG_STATE_HOME": self.state, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
            os.execv(fleet.binary, [fleet.binary, "cli", "--coordinators", fleet.addresses, *words])
        self.pid = pid
        self.seen = b""
        self.awaits(b"ringhold> ")

    def read(self, seconds):
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            some = os.read(self.terminal, 65536)
        except OSError:
            some = b""
        self.seen += some
        return some != b""

    def awaits(self, text):
        until_seen = DEADLINE
        while text not in self.seen:
            assert self.read(until_seen), (text, self.seen)
        self.seen = self.seen[self.seen.index(text) + len(text) :]

    def types(self, text):
        os.write(self.terminal, text)

    def ended(self):
        while self.read(DEADLINE):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def a_terminal_asks_and_sees_pushes(binary):
    with Fleet(binary) as fleet:
        gateway = started(fleet)
        console = Console(fleet, "--gateway", gateway)
        console.types(b"call 2/a well met\n")
        console.awaits(b"\x1b[Kwell met\r\n")
        console.types(b"bind 0/ada\n")
        console.awaits(b"bound to 0/ada")
        console.awaits(b"push: hello")
        ops = Resp(fleet.process("g1").resp)
        console.types(b"call 2/a half")  # a push comes while a line is edited
        console.awaits(b"call 2/a half")
        ops("CALL", "ada", "push while you typed")
        console.awaits(b"push: while you typed")
        console.types(b" a line\n")
        console.awaits(b"\x1b[Khalf a line\r\n")
        console.types(b"call 3/a fail\n")
        console.awaits(b"(error) ERR broken")
        console.types(b"call 9/a x\n")
        console.awaits(b"(NO_OWNER)")
        console.types(b"call boss x\n")
        console.awaits(b"'boss' is not KIND/ID")
        console.types(b"nonsense\n")
        console.awaits(b"unknown command 'nonsense'")
        console.types(b"unbind\n")
        console.awaits(b"\x1b[Kunbound")
        console.types(b"ca\tec\ta done\n")  # completed: "call echo/a done"
        console.awaits(b"\x1b[Kdone\r\n")
        console.types(b"\x10\n")  # the line before, out of the history
        console.awaits(b"\x1b[Kdone\r\n")
        console.types(b"quit\n")
        assert console.ended() == 0
        path = os.path.join(console.state, "ringhold", "history")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600

        again = Console(fleet, "--gateway", gateway)
        again.types(b"\x10\x10\n")  # of the former one, behind "quit"
        again.awaits(b"\x1b[Kdone\r\n")
        again.types(b"\x04")
        assert again.ended() == 0


def a_terminal_speaks_resp(binary):
    with Fleet(binary) as fleet:
        started(fleet)
        console = Console(fleet, "--resp", resp_address(fleet))
        console.types(b'CALL @2/a "well  met"\n')
        console.awaits(b"\x1b[Kwell  met\r\n")
        console.types(b"CALL @9/a x\n")
        console.awaits(b"(error) NOKIND")
        console.types(b"BIND ada\n")
        console.awaits(b"OK")
        Resp(fleet.process("g1").resp)("CALL", "ada", "push news")
        console.awaits(b"(push of 3)")
        console.awaits(b"news")
        console.types(b"PI\t\n")
        console.awaits(b"PONG")
        fleet.process("g1").kill()
        console.awaits(b"connection lost")
        assert console.ended() == 1


def lines_of_a_program_are_done_in_order(binary):
    with Fleet(binary) as fleet:
        gateway = started(fleet)
        lines = b"call 2/a one\ntell 0/tally run 7\ncall 2/a two\ncall 0/tally score\nquit\ncall 2/a never\n"
        for way, text, wanted in (
            (["--gateway", gateway], lines, b"one\ntwo\n1 0\n"),
            (["--resp", resp_address(fleet)], b"CALL @2/a one\nCALL @2/a two\n", b"one\ntwo\n"),
        ):
            done = subprocess.run([binary, "cli", "--coordinators", fleet.addresses, *way], input=text, capture_output=True, timeout=DEADLINE)
            assert (done.returncode, done.stdout, done.stderr) == (0, wanted, b""), done
        done = subprocess.run([binary, "cli", "--resp", "127.0.0.1:1"], input=b"PING\n", capture_output=True, timeout=DEADLINE)
        assert done.returncode == 1, done


main([
    an_answer_comes_out_and_its_outcome_is_the_exit_code,
    what_is_told_arrives,
    a_terminal_asks_and_sees_pushes,
    a_terminal_speaks_resp,
    lines_of_a_program_are_done_in_order,
])  # fmt: skip
