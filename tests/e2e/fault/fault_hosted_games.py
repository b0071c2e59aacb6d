#!/usr/bin/env python3
"""The same game in C, Lua, Go, Python and TypeScript (examples/purse): players give each other gold by numbered requests, which
they repeat until they are answered, and sometimes without a wait, while hosts are killed, a node joins, one drains, and one is
killed. The store has each gift that was answered, and once, and as much gold as before; a row of figures for each language.
Where a toolchain is missing its row is left out: it says so.

MINUTES=2: as long as that in each language, with faults that SEED= draws (make hosted-games); LANGUAGES="Go Lua": these alone.
"""
import collections
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, answer_of, healthy, main, until
from trades import FENCED, OVERRUN

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
PURSE = os.path.join(ROOT, "examples", "purse")
MINUTES = float(os.environ.get("MINUTES", "0"))
SEED = int(os.environ.get("SEED", str(int(time.time())) if MINUTES else "1"))
PURSES = 1000 if MINUTES else 80
CLIENTS = 8
START = 10
NODES = ("n1", "n2", "n3")
AGAIN = ("UNKNOWN", "INTERRUPTED", "TIMEOUT", "REJECTED", "MOVING", "STORE_UNAVAILABLE", "STORE_FENCED", "OVERLOADED", "BUSY")
COLUMNS = "{:<11}{:>7}{:>9}{:>7}{:>7}{:>7}{:>8}{:>8}{:>10}{:>6}{:>9}{:>16}{:>5}"
DONE = ("hosts", "nodes", "joins", "drains", "fenced")  # to the fleet
HEAD = ("language", "gifts", "repeated", *DONE, "requests", "lost", "doubled", "gold", "s")


class Language:
    """How its nodes and hosts are started: `words` of a node, `host` of the process beside it; None: it is in the node's own."""

    needs = ()  # programs
    host = None

    def build(self, binary, folder):
        pass

    def words(self, name, fleet):
        return ["--kind", "0:host=purse,durable", "--host", "unix:" + fleet.data(name + ".sock"), "--host-silence", "1s"]


class C(Language):
    def build(self, binary, folder):
        self.plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "purse", "purse.so")

    def words(self, name, fleet):
        return ["--actor", self.plugin]


class Lua(Language):
    def words(self, name, fleet):
        return ["--lua", os.path.join(PURSE, "purse.lua")]


class Go(Language):
    needs = ("go",)

    def build(self, binary, folder):
        env = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off"}
        self.host = [os.path.join(folder, "purse")]
        subprocess.run(["go", "build", "-o", self.host[0], "."], cwd=os.path.join(PURSE, "go"), env=env, check=True)


class Python(Language):
    def build(self, binary, folder):
        os.environ["PYTHONPATH"] = os.path.join(ROOT, "hosts", "python")
        self.host = [sys.executable, os.path.join(PURSE, "purse.py")]


class TypeScript(Language):
    needs = ("node", "tsc")

    def build(self, binary, folder):
        scope = os.path.join(folder, "node_modules", "@ringhold")
        os.makedirs(scope)
        os.symlink(os.path.join(ROOT, "hosts", "node"), os.path.join(scope, "host"))
        shutil.copy(os.path.join(PURSE, "purse.ts"), folder)
        with open(os.path.join(folder, "package.json"), "w", encoding="ascii") as file:
            file.write('{"type": "module"}\n')
        words = ["tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "node16", "purse.ts"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        self.host = ["node", os.path.join(folder, "purse.js")]


class Game:
    """Three coordinators, nodes with their hosts, a gateway, and what is done to them."""

    def __init__(self, fleet, language):
        self.fleet, self.language = fleet, language
        self.counts = collections.Counter()
        self.nodes = list(NODES)
        fleet.coordinators(3)
        for name in NODES:
            self.node(name)
            self.host(name)
        self.gateway = fleet.gateway("g1", ["--deadline-ms", "30000"]).resp
        fleet.settled(self.nodes)

    def node(self, name):
        store = ["--store", "sqlite:" + self.fleet.data("game.db")]
        self.fleet.node(name, [*self.language.words(name, self.fleet), *store])

    def host(self, name):
        if self.language.host:
            program, *words = [*self.language.host, "unix:" + self.fleet.data(name + ".sock")]
            self.fleet.start(f"host-{name}", words, program=program, ready=False)

    def kill_hosts(self, *names):
        """Beside nodes that go on. Those in a node's own process live and die with it."""
        if self.language.host:
            for name in names:
                self.fleet.process(f"host-{name}").kill().wait()
                self.counts["hosts"] += 1
            for name in names:
                self.host(name)

    def join(self, name):
        self.node(name)
        self.host(name)
        self.nodes.append(name)
        self.counts["joins"] += 1

    def drain(self, name, meanwhile=lambda: None):
        """And end it."""
        self.fleet.tell("node", "drain", name)
        meanwhile()
        self.fleet.tell("node", "drain", name, "--wait", "120")
        process = self.fleet.process(name)
        # It may have found itself too slow for its lease first; that it gave all away before is asserted above.
        assert process.kill(15).wait() == 0 or self.ended_by_itself(process), process.tail()
        if self.language.host:
            self.fleet.process(f"host-{name}").kill().wait()
        self.nodes.remove(name)
        self.counts["drains"] += 1

    def kill(self, name):
        """Its host goes on, and finds the next node at the same place."""
        self.fleet.process(name).kill().wait()
        self.nodes.remove(name)
        self.counts["nodes"] += 1

    def come_back(self, name):
        self.node(name)
        self.nodes.append(name)

    def ended_by_itself(self, process):
        """Was a machine too busy for its lease?"""
        code = process.popen.returncode
        return code == FENCED or (code == -6 and process.log_has(OVERRUN))

    def revive(self):
        """Start nodes again that ended by themselves."""
        for name in self.nodes:
            process = self.fleet.process(name)
            code = process.popen.poll()
            if code is not None:
                assert self.ended_by_itself(process), (name, code, process.tail())
                self.counts["fenced"] += 1
                self.node(name)


class Player(threading.Thread):
    """Gives from purses of its own to any, one request after another, and repeats each until it is answered."""

    def __init__(self, number, game, begin):
        super().__init__(daemon=True)
        self.random = random.Random(f"{SEED}.{number}")
        self.mine = [f"p{i}" for i in range(number, PURSES, CLIENTS)]
        self.seq = collections.Counter()
        self.game, self.begin = game, begin
        self.redis = None
        self.given = {}  # (from, seq): (to, amount)
        self.again = collections.Counter()
        self.answers = 0
        self.stopping = False
        self.failed = None

    def ask(self, purse, words):
        impatient = self.random.random() < 0.05
        while True:
            try:
                self.redis = self.redis or Resp(self.game.gateway, timeout=120)
                self.redis.send(("CALL", purse, words))
                if impatient:
                    impatient = False
                    self.redis.close()
                    raise ConnectionError("by itself")
                answer = self.redis.read()
                self.answers += 1
                return answer
            except RespError as error:
                word = str(error).removeprefix("ERR ").split()[0]
                assert word in AGAIN, (purse, words, error)
            except ConnectionError:
                word, self.redis = "cut", None
            self.again[word] += 1

    def request(self, verb, purse, *words):
        self.seq[purse] += 1
        return self.ask(purse, " ".join([verb, str(self.seq[purse]), *words]))

    def give(self):
        purse, whom, amount = self.random.choice(self.mine), f"p{self.random.randrange(PURSES)}", self.random.randint(1, 3)
        if whom != purse and self.request("give", purse, whom, str(amount)) != "POOR":
            self.given[purse, self.seq[purse]] = (whom, amount)

    def run(self):
        try:
            for purse in self.mine:
                assert self.request("earn", purse, str(START)) == str(START)
            self.begin.wait()
            while not self.stopping:
                self.give()
        except Exception as error:  # told by the thread that waits for it
            self.failed = error
            self.begin.abort()

    def done(self):
        self.stopping = True
        self.join(180)
        assert not self.is_alive() and self.failed is None, self.failed


class Store:
    """What the store has of the players' purses, as SQL alone says it."""

    ROWS = "value WHERE kind = 0 AND substr(id, 1, 1) = CAST('p' AS BLOB)"

    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)

    def on_their_way(self):
        return self.db.execute("SELECT count(*) FROM send").fetchone()[0]

    def gold(self):
        rows = self.db.execute(f"SELECT id, value FROM {self.ROWS} AND key = ?", (b"gold",))
        return {id.decode(): int(gold) for id, gold in rows}

    def taken(self):
        """By (from, seq, to): how much."""
        rows = self.db.execute(f"SELECT key, id, value FROM {self.ROWS} AND substr(key, 1, 5) = ?", (b"from/",))
        return {(*key.decode().split("/")[1:], id.decode()): int(amount) for key, id, amount in rows}


def judge(given, taken, gold):
    """How many gifts are lost, how many doubled, and whose gold is not what the answers say."""
    lost = [gift for gift in given if taken.get(gift, 0) < given[gift]]
    doubled = [gift for gift in taken if taken[gift] > given.get(gift, 0)]
    due = collections.Counter({f"p{i}": START for i in range(PURSES)})
    for (giver, _, to), amount in given.items():
        due[giver] -= amount
        due[to] += amount
    wrong = [id for id in due if gold.get(id) != due[id]]
    return len(lost), len(doubled), len(wrong) + len(gold.keys() - due.keys())


def must_agree(given, taken, gold):
    """Nothing is lost, doubled or made; and it would be found."""
    gift, amount = next(iter(given.items()))
    assert judge(given, taken, gold) == (0, 0, 0), [judge(given, taken, gold), given.items() ^ taken.items()]
    assert sum(gold.values()) == PURSES * START
    assert judge(given, {**taken, gift: 2 * amount}, gold) == (0, 1, 0)
    assert judge(given, {k: v for k, v in taken.items() if k != gift}, gold) == (1, 0, 0)
    assert judge(given, taken, {**gold, gift[2]: gold[gift[2]] + 1}) == (0, 0, 1)


def said_to(redis, words):
    """An answer, or the text of an error; None of one that asks for the request again."""
    said = answer_of(redis, "CALL", "ann", words)
    return None if said.removeprefix("ERR ").split(" ")[0] in AGAIN else said


def answers_alike(redis):
    """Each language to the same requests. No number is taken by one that is refused. As players do, they are repeated until
    they are answered: a node may end by itself on a busy machine, and what may have run does not run again."""
    usage, past = "ERR earn N AMOUNT, give N WHOM AMOUNT, gold", "ERR a later request is done"
    for words, answer in (
        ("earn 2 10", "10"), ("earn 2 10", "10"), ("give 3 bob 4", "6"), ("give 3 bob 4", "6"), ("give 4 bob 7", "POOR"),
        ("earn 1 5", past), ("earn 5 -5", usage), ("earn x 5", usage), ("give 5 bob", usage), ("take 5 5", usage),
        ("jump", usage), ("earn 5 1", "7"), ("gold", "7"),
    ):  # fmt: skip
        said = until(f"{words} is answered", lambda: said_to(redis, words))
        assert said == answer, (words, said)


def short_faults(game, go_on):
    """One of each."""
    game.kill_hosts("n1")
    go_on()
    game.join("n4")
    game.kill_hosts("n4")
    game.fleet.settled(game.nodes)
    go_on()
    game.drain("n2")
    go_on()
    game.kill("n3")
    go_on()
    game.come_back("n3")
    game.kill_hosts(*game.nodes)
    go_on()


def drawn_faults(game, go_on, draw, end):
    """As they come, two at once among them, until the time is over."""
    spare = "n2"  # that was drained
    while time.monotonic() < end:
        sort = draw.choice(("hosts", "node", "drain", "both"))
        name, other = draw.sample(game.nodes, 2)
        if sort == "hosts":
            game.kill_hosts(*draw.sample(game.nodes, draw.randint(1, len(game.nodes))))
        elif sort == "node":
            game.kill(name)
            go_on()
            game.come_back(name)
        elif sort == "both":
            game.kill(name)
            game.kill_hosts(other)
            go_on()
            game.come_back(name)
        else:
            game.join(spare)
            game.kill_hosts(other)
            game.drain(name, lambda: game.kill_hosts(spare))
            spare = name
        go_on()


def played(language, binary):
    begin = time.monotonic()
    with Fleet(binary) as fleet:
        language.build(binary, fleet.folder)
        game = Game(fleet, language)
        answers_alike(Resp(game.gateway))
        barrier = threading.Barrier(CLIENTS)
        players = [Player(i, game, barrier) for i in range(CLIENTS)]
        for player in players:
            player.start()

        def go_on(count=30):
            want = [p.answers + count for p in players]

            def has_gone_on():
                game.revive()
                return any(p.failed for p in players) or all(p.answers >= w for p, w in zip(players, want))

            until("gifts are given", has_gone_on, 180)
            assert not any(p.failed for p in players), [p.failed for p in players]

        go_on()
        short_faults(game, go_on)
        if MINUTES:
            drawn_faults(game, go_on, random.Random(SEED), begin + MINUTES * 60)
        for player in players:
            player.done()
        store = Store(fleet.data("game.db"))
        until("every gift has arrived", lambda: store.on_their_way() == 0, 120, 0.1)
        given = {(giver, str(seq), to): amount for p in players for (giver, seq), (to, amount) in p.given.items()}
        taken, gold = store.taken(), store.gold()
        must_agree(given, taken, gold)
        for id, had in gold.items():  # what lives has what is stored
            assert players[0].ask(id, "gold") == str(had), id
        healthy(fleet)
        again = sum((p.again for p in players), collections.Counter())
        if again:
            print("# repeated, as the answer was: " + ", ".join(f"{word} {n}" for word, n in again.most_common()))
        counts = [str(game.counts[what]) for what in DONE]
        if not language.host:
            counts[0] = "-"
        return [
            type(language).__name__, len(given), again.total(), *counts, sum(p.answers for p in players),
            *judge(given, taken, gold)[:2], f"{sum(gold.values())} of {PURSES * START}", round(time.monotonic() - begin),
        ]  # fmt: skip


def case_of(language):
    def nothing_is_lost_or_doubled(binary):
        missing = [program for program in language.needs if shutil.which(program) is None]
        if missing:
            print(f"# SKIP {type(language).__name__}: {missing[0]} is not installed")
            return
        row = played(language, binary)
        print("# " + COLUMNS.format(*HEAD))
        print("# " + COLUMNS.format(*row), flush=True)

    nothing_is_lost_or_doubled.__name__ += "_in_" + type(language).__name__.lower()
    return nothing_is_lost_or_doubled


if __name__ == "__main__":
    print(f"# SEED={SEED}", flush=True)
    ALL = {language.__name__: language() for language in (C, Lua, Go, Python, TypeScript)}
    main([case_of(ALL[name]) for name in os.environ.get("LANGUAGES", "").split() or ALL])
