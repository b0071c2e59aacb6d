"""Real databases for the tests of examples/store_*.c, each on a loopback port and in a folder of its
own, and a load that counts in them.

    with Fleet(binary) as fleet, Redis() as store:
        fleet.node("n1", ["--actor", store.actor(binary)])
        ...
        store.row("p1")         # (count, token)
        store.refusals()        # [(node, token), ...]

Each store knows how to start, die, hang and come back.
"""
import collections
import glob
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading

from fleet import Resp, RespError, free_port, until


def which(name, folders=()):
    return shutil.which(name) or next((f for d in folders for f in glob.glob(f"{d}/{name}")), None)


class Store:
    """What all have in common. A subclass has `example`, `argument`, `row` and `refusals`."""

    example = ""
    argument = ""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="ringhold-store-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    @classmethod
    def plugin(cls, binary):
        return os.path.join(os.path.dirname(os.path.abspath(binary)), f"examples/{cls.example}.so")

    @classmethod
    def missing(cls, binary):
        """Why it can't be tested here, or ""."""
        return "" if os.path.exists(cls.plugin(binary)) else f"{cls.example}.so was not built"

    def actor(self, binary):
        return f"{self.plugin(binary)}={self.argument}"


class Sqlite(Store):
    example = "store_sqlite"

    def __init__(self):
        super().__init__()
        self.argument = os.path.join(self.folder, "counters.db")

    def query(self, sql, *values):
        db = sqlite3.connect(self.argument, timeout=10)
        rows = db.execute(sql, values).fetchall()
        db.close()
        return rows

    def row(self, key):
        return next(iter(self.query("SELECT count, token FROM counter WHERE id=?", key.encode())), None)

    def refusals(self):
        return self.query("SELECT node, token FROM refused")


class Server(Store):
    """One with a process."""

    def __init__(self):
        super().__init__()
        self.port = free_port()
        self.process = None

    def __exit__(self, *details):
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            self.die()
        super().__exit__(*details)

    def spawn(self, words, **options):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, **options
            )
        until(f"{self.example}'s server answers", self.answers)
        return self

    def answers(self):
        raise NotImplementedError

    def processes(self):
        return [self.process.pid]

    def freeze(self):
        """It hangs: connections stay, nothing is answered."""
        for pid in self.processes():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in reversed(self.processes()):
            os.kill(pid, signal.SIGCONT)

    def die(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)


class Redis(Server):
    example = "store_redis"

    def __init__(self, options=""):
        super().__init__()
        self.argument = f"127.0.0.1:{self.port}{options}"

    @classmethod
    def missing(cls, binary):
        return super().missing(binary) or ("" if which("redis-server") else "there is no redis-server")

    def __enter__(self):
        words = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder]
        return self.spawn([*words, "--appendonly", "yes", "--appendfsync", "always", "--save", ""])

    def ask(self, *words):
        redis = Resp(("127.0.0.1", self.port), timeout=10)
        answer = redis(*words)
        redis.close()
        return answer

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, RespError):
            return False

    def die(self):
        self.process.kill()
        self.process.wait(30)

    def lock(self, key):
        return self.ask("GET", f"ringhold:{{{key}}}:lock")

    def listeners(self):
        return self.ask("PUBSUB", "CHANNELS", "ringhold:notice:*")

    def row(self, key):
        count, token = self.ask("HMGET", f"ringhold:{{{key}}}:row", "count", "token")
        return (int(count or 0), int(token)) if token else None

    def refusals(self):
        rows = [dict(zip(r[1][::2], r[1][1::2])) for r in self.ask("XRANGE", "ringhold:refusals", "-", "+")]
        return [(r["node"], int(r["token"])) for r in rows]


class Postgres(Server):
    example = "store_postgres"
    folders = ["/usr/lib/postgresql/*/bin", "/usr/local/pgsql/bin"]
    fsync = "off"  # its process dies here, never the machine
    settings = []

    def __init__(self, options=""):
        super().__init__()
        self.where = f"host=127.0.0.1 port={self.port} user=game dbname=postgres"
        self.argument = self.where + options
        self.data = os.path.join(self.folder, "data")

    @classmethod
    def missing(cls, binary):
        found = which("initdb", cls.folders) and which("psql", cls.folders)
        return super().missing(binary) or ("" if found else "there is no PostgreSQL server")

    def plain(self):
        """It refuses to run as root: as another user, then."""
        if os.geteuid() != 0:
            return {}
        names = {u.pw_name: u for u in pwd.getpwall()}
        user = names.get("postgres") or names["nobody"]
        os.chown(self.folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": self.folder}

    def __enter__(self):
        plain = self.plain()
        if not os.path.exists(self.data):
            words = [which("initdb", self.folders), "-D", self.data, "-U", "game", "-A", "trust"]
            words += ["-E", "UTF8", "--locale=C", "--no-sync"]
            done = subprocess.run(words, capture_output=True, text=True, check=False, **plain)
            assert done.returncode == 0, done.stdout + done.stderr
        words = [which("postgres", self.folders), "-D", self.data, "-p", str(self.port)]
        words += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        for setting in [f"fsync={self.fsync}", "max_connections=200", *self.settings]:
            words += ["-c", setting]
        return self.spawn(words, **plain)

    def query(self, *sql):
        words = [which("psql", self.folders), self.where, "-AtF", "\t"]
        words += [word for statement in sql for word in ("-c", statement)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def answers(self):
        try:
            return self.query("SELECT 1")
        except AssertionError:
            assert self.process.poll() is None, open(os.path.join(self.folder, "log")).read()
            return False

    def processes(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [self.process.pid, *map(int, f.read().split())]

    def row(self, key):
        rows = self.query(f"SELECT count, token FROM counter WHERE id = '\\x{key.encode().hex()}'")
        return tuple(map(int, rows[0])) if rows else None

    def lock(self, key):
        rows = self.query(f"SELECT owner, generation, activation FROM guard WHERE id = '\\x{key.encode().hex()}'")
        return " ".join(rows[0]) if rows else None

    def listeners(self):
        return self.query("SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN ringhold_guard'")

    def refusals(self):
        return [(node, int(token)) for node, token in self.query("SELECT node, token FROM refused")]


def missing(binary, stores):
    return next((why for why in (s.missing(binary) for s in stores) if why), "")


# ---- a load that counts


class Counting:
    """Clients that count up ids, one request each at a time, and remember every answer."""

    def __init__(self, gateways, ids=40, clients=8):
        self.ids = [f"p{i}" for i in range(ids)]
        self.answers = collections.defaultdict(list)  # id -> counts that were answered
        self.maybe = collections.Counter()  # id -> requests that may have counted
        self.said = collections.Counter()  # first word of errors
        self.lock = threading.Lock()
        self.ending = False
        self.threads = [
            threading.Thread(target=self.run, args=(gateways[i % len(gateways)], i)) for i in range(clients)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, gateway, turn):
        redis = Resp(gateway)
        while not self.ending:
            key = self.ids[turn % len(self.ids)]
            turn += 7
            try:
                count, word = int(redis("CALL", key, "INCR")), ""
            except RespError as error:
                count, word = 0, str(error).split(" ")[0]
            with self.lock:
                if word:
                    self.said[word] += 1
                    # These did not run; of all others nobody knows.
                    self.maybe[key] += word not in ("AWAY", "FENCED", "BUSY", "MOVING", "OVERLOADED")
                else:
                    self.answers[key].append(count)
        redis.close()

    def counted(self):
        with self.lock:
            return sum(map(len, self.answers.values()))

    def finish(self):
        self.ending = True
        for thread in self.threads:
            thread.join(90)
            assert not thread.is_alive(), "a client still waits for an answer"
        return self

    def must_agree_with(self, store):
        """No count was answered twice, none that was answered is lost, and none comes from nowhere."""
        for key in self.ids:
            answers = self.answers[key]
            count = (store.row(key) or (0, 0))[0]
            assert len(set(answers)) == len(answers), f"{key}: a count was answered twice: {sorted(answers)}"
            assert max(answers, default=0) <= count, f"{key}: {max(answers)} was answered, stored is {count}"
            least, most = len(answers), len(answers) + self.maybe[key]
            assert least <= count <= most, f"{key}: {count} is stored, not {least} to {most}"

    def words(self):
        errors = ", ".join(f"{word} {n}" for word, n in sorted(self.said.items()))
        return f"{self.counted()} counted; {errors or 'no errors'}"
