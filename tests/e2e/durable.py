"""Stores of durable actors for the tests, each with a foreign reader, and players whose every answer is compared with what
is in the store.

    with Fleet(binary) as fleet, durable.Postgres() as store:
        fleet.node("n1", ["--actor", durable.inventory(binary), "--store", store.option])
        store.gold("ann")       # of examples/inventory.c, as psql alone says it
"""
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading

import stores
from fleet import Resp, RespError, until


def inventory(binary):
    return os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "inventory.so")


def word_of(error):
    """The code of an error; the gateway puts ERR before those of actors that are asked by CALL."""
    return str(error).removeprefix("ERR ").split()[0]


class Sqlite:
    name = "sqlite"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ringhold-store-")
        self.path = f"{self.folder}/actors.db"
        self.option = f"sqlite:{self.path}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def missing():
        return ""

    def reader(self):
        return SqliteReader(self.path)

    def gold(self, name):
        reader = self.reader()
        count = reader.gold(name)
        reader.close()
        return count


class SqliteReader:
    def __init__(self, path):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)

    def all_gold(self):
        rows = self.db.execute("SELECT id, value FROM value WHERE kind = 0 AND key = ?", (b"gold",))
        return {name.decode(): int(gold) for name, gold in rows}

    def sends(self):
        """How many are not taken yet."""
        return self.db.execute("SELECT count(*) FROM send").fetchone()[0]

    def gold(self, name):
        row = self.db.execute(
            "SELECT value FROM value WHERE kind = 0 AND id = ? AND key = ?", (name.encode(), b"gold")
        ).fetchone()
        return int(row[0]) if row else 0

    def close(self):
        self.db.close()


def state(pid):
    """As in /proc: R, S, T (stopped), Z (it has ended) ...; X: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


class Server:
    """What those with a process have in common, besides stores.Server."""

    def gold(self, name):
        reader = self.reader()
        count = reader.gold(name)
        reader.close()
        return count


class Postgres(Server, stores.Postgres):
    name = "postgres"
    settings = ["synchronous_commit=off"]  # the node's own sessions have it on
    commit = b"\0commit\0"  # in what goes to the server

    @classmethod
    def missing(cls):
        found = stores.which("initdb", cls.folders) and stores.which("psql", cls.folders)
        return "" if found else "there is no PostgreSQL server"

    @property
    def option(self):
        return self.option_at(self.port)

    def option_at(self, port):
        return "postgres:" + self.where.replace(f"port={self.port}", f"port={port}")

    def kill(self):
        """As when the machine dies, but for its disk: the next one starts only when nobody has its memory any more."""
        self.process.send_signal(signal.SIGSTOP)
        until("it forks nobody", lambda: state(self.process.pid) in "TZ")
        pids = self.processes()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it was a short one
        self.process.wait(30)
        until("all of it has ended", lambda: all(state(pid) in "ZX" for pid in pids))

    def reader(self):
        return PsqlReader(self)

    def set_read_only(self, on):
        text = "on" if on else "off"
        sql = f"ALTER SYSTEM SET default_transaction_read_only = {text}"
        self.query("SET default_transaction_read_only = off", sql, "SELECT pg_reload_conf()")

    def go_back(self, name):
        self.query(f"UPDATE actor SET number = number - 1 WHERE id = '{name}'")


class PsqlReader:
    """One psql that is asked line by line; another when its server was killed."""

    def __init__(self, store):
        self.store = store
        self.words = [stores.which("psql", store.folders), store.where, "-AtqX"]
        self.psql = None

    def line(self, sql):
        if self.psql is None:
            pipe = subprocess.PIPE
            self.psql = subprocess.Popen(self.words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        try:
            self.psql.stdin.write(sql + ";\n")
            self.psql.stdin.flush()
            return self.psql.stdout.readline()
        except BrokenPipeError:
            return ""

    def gold(self, name):
        sql = f"SELECT coalesce((SELECT convert_from(value, 'UTF8') FROM value WHERE kind = 0 AND id = '{name}'"
        sql += " AND key = 'gold'), '0')"

        def ask():
            answer = self.line(sql)
            if answer == "":
                self.close()
            return answer

        return int(until("psql answers", ask))

    def all_gold(self):
        sql = "SELECT convert_from(id, 'UTF8'), convert_from(value, 'UTF8') FROM value WHERE kind = 0 AND key = 'gold'"
        return {name: int(gold) for name, gold in self.store.query(sql)}

    def sends(self):
        return int(self.store.query("SELECT count(*) FROM send")[0][0])

    def close(self):
        if self.psql is not None:
            self.psql.kill()
            self.psql.communicate()
            self.psql = None


class Redis(Server, stores.Redis):
    name = "redis"
    commit = b"$3\r\nput\r\n"

    @classmethod
    def missing(cls):
        found = stores.which("redis-server") and stores.which("redis-cli")
        return "" if found else "there is no redis-server with redis-cli"

    @property
    def option(self):
        return self.option_at(self.port)

    @staticmethod
    def option_at(port):
        return f"redis:127.0.0.1:{port}"

    def kill(self):
        self.die()

    def reader(self):
        return RedisReader(self)

    def set_read_only(self, on):
        self.ask("REPLICAOF", *(("127.0.0.1", "1") if on else ("NO", "ONE")))

    def go_back(self, name):
        self.ask("HINCRBY", f"ringhold:actor:0:{name}", "number", "-1")


class RedisReader:
    def __init__(self, store):
        self.store = store
        self.redis = None

    def gold(self, name):
        def ask():
            try:
                if self.redis is None:
                    self.redis = Resp(("127.0.0.1", self.store.port), timeout=60)
                return self.redis("HGET", f"ringhold:value:0:{name}", "gold") or "0"
            except (OSError, RespError):  # it was killed, or is loading
                self.close()
                return None

        return int(until("redis answers", ask))

    def cli(self, *commands):
        """What one redis-cli says to all of these, in lines."""
        words = ["redis-cli", "-p", str(self.store.port)]
        done = subprocess.run(words, input="\n".join(commands) + "\n", capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    def all_gold(self):
        keys = [key for key in self.cli("KEYS ringhold:value:0:*") if key]
        gold = self.cli(*(f"HGET {key} gold" for key in keys))
        return {key.removeprefix("ringhold:value:0:"): int(count) for key, count in zip(keys, gold, strict=True)}

    def sends(self):
        keys = [key for key in self.cli("KEYS ringhold:send:*") if key]
        return sum(int(count) for count in self.cli(*(f"HLEN {key}" for key in keys)) if count)

    def close(self):
        if self.redis is not None:
            self.redis.close()
            self.redis = None


class Player(threading.Thread):
    """Adds gold to its own inventories, one by one, and compares each answer with what came before and with the store."""

    def __init__(self, store, address, number):
        super().__init__(daemon=True)
        self.store = store
        self.address = address
        self.names = [f"player-{number}-{i}" for i in range(5)]
        self.least = dict.fromkeys(self.names, 0)  # that it has for certain
        self.most = dict.fromkeys(self.names, 0)  # that it may have: with those that took too long
        self.answers = self.late = 0
        self.stopping = False
        self.failed = None

    def ask(self, redis, name):
        self.most[name] += 1
        try:
            return int(redis("CALL", name, "ADD gold 1"))
        except RespError as error:
            word = word_of(error)
            assert word in ("TIMEOUT", "REJECTED", "STORE_UNAVAILABLE"), error  # never UNKNOWN
            if word == "TIMEOUT":
                self.late += 1  # it may have run, and may run yet
            else:
                self.most[name] -= 1
            return None

    def run(self):
        redis, reader = Resp(self.address, timeout=120), self.store.reader()
        try:
            while not self.stopping:
                for name in self.names:
                    count = self.ask(redis, name)
                    if count is None:
                        continue
                    assert self.least[name] < count <= self.most[name], f"{name}: {count}, {self.least}, {self.most}"
                    kept = reader.gold(name)
                    assert kept >= count, f"{name} was answered {count}, and the store has {kept}"
                    self.least[name] = count
                    self.answers += 1
        except Exception as error:  # told by the thread that waits for it
            self.failed = error
        reader.close()
        redis.close()

    def done(self):
        self.stopping = True
        self.join(120)
        assert not self.is_alive() and self.failed is None, self.failed


def goes_on(players):
    """Every player is answered three times more in all of its inventories."""
    want = [p.answers + 3 * len(p.names) for p in players]
    until(
        "the load goes on",
        lambda: any(p.failed for p in players) or all(p.answers >= w for p, w in zip(players, want)),
        180,
    )
    assert not any(p.failed for p in players), [p.failed for p in players]


def must_agree(players, store):
    """Returns what the store has."""
    reader = store.reader()
    found = {name: reader.gold(name) for p in players for name in p.names}
    for p in players:
        for name in p.names:
            assert p.least[name] <= found[name] <= p.most[name], f"{name}: {found[name]}, {p.least}, {p.most}"
    reader.close()
    return found
