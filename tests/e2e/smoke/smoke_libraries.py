#!/usr/bin/env python3
"""Each library for hosts and for game clients passes all vectors of its protocol: `ringhold conform host` and `conform client`, whose gateways
lie, too. What they pass is the table of docs/clients.md: REWRITE=1 writes it. A library whose toolchain is missing is skipped with a line.

Alone: clients have times of their own, of 10 s, which pass while a busy machine lets the gateways wait."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main
from smoke_clients import HERE, NODE, ROOT, Tcp, built_by_go, takes_websockets

PAGE = os.path.join(ROOT, "docs", "clients.md")
TABLE = re.compile(r"(?<=<!-- libraries -->\n).*?(?=<!-- end -->)", re.S)
DEADLINE = 600  # a vector fails by itself before


def tally(said):  # its lines
    """Vectors that passed, and all that are for this library; those that wait for minutes are for nobody here."""
    wrong = [text for i, line in enumerate(said) if line.startswith("not ok") for text in said[i : i + 2]]
    assert not wrong and said[-1].startswith("# "), wrong or said
    passed, failed, _ = map(int, re.fullmatch(r"# (\d+) passed, (\d+) failed(?:, (\d+) skipped)?", said[-1]).groups("0"))
    return passed, passed + failed


CLASSES = tempfile.TemporaryDirectory(prefix="ringhold-java-")


def built_by_javac():
    if not shutil.which("javac"):
        return None
    sources = [*glob.glob(ROOT + "/hosts/java/src/ringhold/host/*.java"), ROOT + "/hosts/java/examples/Conform.java"]
    subprocess.run(["javac", "--release", "17", "-encoding", "UTF-8", "-d", CLASSES.name, *sources], check=True)
    return ["java", "-cp", CLASSES.name, "Conform"]


def hosts_programs():
    """The examples that play the vectors, by the name of their library."""
    folder = os.path.join(ROOT, "hosts")
    yield "Go", "hosts/go", [built_by_go("hosts/go", "./examples/conform")] if shutil.which("go") else None
    yield "Python", "hosts/python", [sys.executable, os.path.join(folder, "python", "examples", "conform.py")]
    yield "Java, an example", "hosts/java", built_by_javac()
    yield "JavaScript, TypeScript", "hosts/node", [NODE, os.path.join(folder, "node", "examples", "conform.js")] if NODE else None


def host_row(binary, program):
    with Fleet(binary) as fleet:
        address = "unix:" + fleet.data("conform.sock")
        env = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "hosts", "python")}
        with subprocess.Popen([binary, "conform", "host", address], stdout=subprocess.PIPE, text=True) as judge:
            with subprocess.Popen([*program, address], stderr=subprocess.DEVNULL, env=env) as host:
                said, _ = judge.communicate(timeout=DEADLINE)
                host.terminate()
    return tally(said.splitlines())


def clients_programs(binary):
    """The players of smoke_clients.py, whose toolchain is there."""
    folders = {"player": "client", "player.py": "clients/python", "player.mjs": "clients/js", "Player.exe": "clients/csharp"}
    for program in Tcp().programs(binary):
        name = os.path.basename(program[-1])
        of_go = name == "player" and not program[-1].startswith(os.path.dirname(os.path.abspath(binary)))
        yield "clients/go" if of_go else folders[name], program


def client_row(binary, carrier, program):
    words = [binary, "conform", "client", carrier, "--", *program]
    judge = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, check=False)
    return tally(judge.stdout.splitlines())


def has_toolchain(row):
    """Can the library of this row be tried here? C and Python need nothing that the build does not."""
    programs = {"csharp": shutil.which("mcs"), "go": shutil.which("go"), "java": shutil.which("javac"), "js": NODE, "node": NODE}
    return bool(programs.get(re.search(r"`(?:\w+/)?(\w+)`", row)[1], True))


def every_library_passes(binary):
    names = {"client": "C", "clients/csharp": "C#", "clients/js": "JavaScript", "clients/python": "Python", "clients/go": "Go"}
    jobs = []
    for name, folder, program in hosts_programs() if "address" not in binary else ():
        if program is None:
            print(f"# SKIP {folder}: its toolchain is not installed")
        else:
            jobs.append((f"| {name} | [`{folder}`](../{folder}) | hosts |", host_row, (binary, program)))
    for folder, program in clients_programs(binary):
        # Under sanitizers it is the judge that is tried, and the library that is built with them.
        if "address" in binary and folder not in ("client", "clients/python"):
            continue
        for carrier in ("tcp", "ws") if takes_websockets(program) else ("tcp",):
            how = "game clients, TCP" if carrier == "tcp" else "game clients, WebSocket"
            jobs.append((f"| {names[folder]} | [`{folder}`](../{folder}) | {how} |", client_row, (binary, carrier, program)))
    with ThreadPoolExecutor(max_workers=2) as pool:
        rows = [(start, pool.submit(run, *arguments)) for start, run, arguments in jobs]
    found = sorted("{} {} of {} |".format(start, *future.result()) for start, future in rows)
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    head, rule, *shown = TABLE.search(page)[0].splitlines()
    if os.environ.get("REWRITE"):
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(TABLE.sub(lambda _: "\n".join([head, rule, *found]) + "\n", page))
        return
    missing = [row for row in found if row not in shown]
    assert not missing, f"the page has {shown}, but not {missing}: REWRITE=1"
    unseen = [row for row in shown if row not in found and "address" not in binary and has_toolchain(row)]
    assert not unseen, f"the page has {unseen}, which was not seen: REWRITE=1"


def what_is_no_client_is_told(binary):
    with Fleet(binary) as fleet:
        for words in (["client"], ["client", "udp", "--", "true"], ["client", "--"], ["127.0.0.1:1", "--", "true"]):
            code, _, err = fleet.run("conform", *words)
            assert code == 1 and "client [tcp|ws] -- PROGRAM" in err, (words, code, err)
        # One that ends at once, and one that isn't there.
        code, out, _ = fleet.run("conform", "client", "--only", "a ping comes back", "--", "true")
        assert code == 2 and "wanted a connection; the program ended" in out, out
        code, out, _ = fleet.run("conform", "client", "--only", "a ping comes back", "--", fleet.data("nothing"))
        assert code == 2 and "can't start it" in out, out
        # One that says no more, and stays.
        stays = ["sh", "-c", "exec >&-; exec sleep 600"]
        code, out, _ = fleet.run("conform", "client", "--only", "a ping comes back", "--", *stays, deadline=120)
        assert code == 2 and "wanted a connection; the program ended" in out, out
        # One that doubles each answer, one that tells nothing of a push, and one that tells nothing of what is said last.
        player = os.path.join(HERE, "player.py")
        for filter_, vector, says in (
            ("sed -u '/^answer/p'", "a request and a notify", "it said 'answer OK yes', which was not due"),
            ("grep --line-buffered -v '^push 2'", "pushes come in order", "wanted that it says 'push 2 lost 0 b'; it said 'push 5 lost 2 e'"),
            ("grep --line-buffered -v '^refused'", "a bind that is refused is told", "wanted refused REFUSED; nothing came in 12000 ms"),
        ):
            with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False, dir=fleet.data("")) as f:
                f.write(f'{sys.executable} {player} "$@" | {filter_}\n')
            times = ["--timeout", "3s"] if "nothing came" in says else []
            code, out, _ = fleet.run("conform", "client", *times, "--only", vector, "--", "sh", f.name, deadline=120)
            assert code == 2 and says in out, (vector, out)


if __name__ == "__main__":
    main([every_library_passes, what_is_no_client_is_told])
