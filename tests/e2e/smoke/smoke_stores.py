#!/usr/bin/env python3
"""Durable actors in PostgreSQL and Redis: the rules of a store hold in the real database, and what was answered is in it,
as a foreign reader says, when the server is killed, an answer is lost on the line, a commit arrives late, the server
can't be written, or is an old copy of itself."""
import os
import queue
import socket
import subprocess
import sys
import threading
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import durable
from durable import Player, goes_on, inventory, must_agree, word_of
from fleet import Fleet, Resp, RespError, main, until

SPOIL = {
    "postgres": """psql=$(ls /usr/lib/postgresql/*/bin/psql /usr/local/pgsql/bin/psql 2>/dev/null | tail -n 1)
"${{psql:-psql}}" '{where}' -qc "ALTER TABLE value ADD CHECK (id <> 'spoilt')"
""",
    # Its values are no hash, in none of the kinds that the cases have.
    "redis": """for kind in $(seq 3 30); do
    redis-cli -p {port} -a secret SET ringhold:value:$kind:spoilt x
done >/dev/null 2>&1
""",
}


class Proxy(threading.Thread):
    """Stands between nodes and their database, and cuts a connection at a commit: behind it ("lose": it arrives, and its
    answer does not), or before it ("hold": it arrives when release() says so)."""

    def __init__(self, store):
        super().__init__(daemon=True)
        self.store = store
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.armed = ""
        self.cut = threading.Event()
        self.held = None  # (bytes, the connection on which they go)
        self.late = queue.Queue()  # what the server says on it
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.store.port))
            except OSError:
                client.close()
                continue
            Pair(self, client, server)

    def arm(self, how):
        self.cut.clear()
        self.armed = how

    def release(self):
        """Returns what the server says to it."""
        data, server = self.held
        server.sendall(data)
        return self.late.get(timeout=60)


class Pair:
    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.losing = False
        for pump in (self.to_server, self.to_client):
            threading.Thread(target=pump, daemon=True).start()

    def hang_up(self, *ends):
        if self.losing:  # said first: whoever notices the end may ask for it at once
            self.proxy.cut.set()
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it is closed

    def to_server(self):
        while data := self.receive(self.client):
            if self.proxy.armed and self.proxy.store.commit in data:
                how, self.proxy.armed = self.proxy.armed, ""
                self.losing = True
                if how == "hold":
                    self.proxy.held = (data, self.server)
                    self.hang_up(self.client)
                    return
            self.server.sendall(data)
        self.hang_up(self.server)

    def to_client(self):
        while data := self.receive(self.server):
            if self.proxy.held and self.proxy.held[1] is self.server:
                self.proxy.late.put(data)
            elif self.losing:
                break
            else:
                self.client.sendall(data)
        self.hang_up(self.client)

    @staticmethod
    def receive(end):
        try:
            return end.recv(65536)
        except OSError:
            return b""


def add(redis):
    """The count, or the code of an error."""
    try:
        return int(redis("CALL", "ann", "ADD gold 1"))
    except RespError as error:
        return word_of(error)


def metric(port, name):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        lines = page.read().decode().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith(f"ringhold_node_store_{name} "))


def the_rules_of_a_store_hold(binary, store):
    test = os.path.join(os.path.dirname(os.path.abspath(binary)), "tests/storage/actor_store_test")
    if not os.path.exists(test):
        print("# unit tests were not built")
        return
    spoil = os.path.join(store.folder, "spoil")
    with open(spoil, "w") as f:
        f.write("#!/bin/sh\n" + SPOIL[store.name].format(where=getattr(store, "where", ""), port=store.port))
    os.chmod(spoil, 0o755)
    if store.name == "redis":
        store.ask("CONFIG", "SET", "requirepass", "secret")
    done = subprocess.run(
        [test, store.option, spoil],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "REDIS_PASSWORD": "secret"},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def what_was_answered_is_there_when_the_server_was_killed(binary, store):
    with Fleet(binary) as fleet:
        words = ["--actor", inventory(binary), "--store", store.option]
        fleet.coordinators(1)
        nodes = [fleet.node(name, words) for name in ("n1", "n2")]
        gateway = fleet.gateway("g1").resp
        fleet.settled(["n1", "n2"])
        players = [Player(store, gateway, i) for i in range(4)]
        for p in players:
            p.start()
        for _ in range(2):
            goes_on(players)
            store.kill()
            store.__enter__()
        goes_on(players)
        for p in players:
            p.done()
        must_agree(players, store)
        assert all(n.log_has("store_is_back") for n in nodes)
        print(f"# {sum(p.answers for p in players)} answers, {sum(p.late for p in players)} late", flush=True)


def what_becomes_of_a_commit_is_known(binary, store):
    with Fleet(binary) as fleet:
        proxy = Proxy(store)
        admin = fleet.port()
        words = ["--actor", inventory(binary), "--store", store.option_at(proxy.port), "--admin", f"127.0.0.1:{admin}"]
        fleet.coordinators(1)
        node = fleet.node("n1", words)
        redis = Resp(fleet.gateway("g1").resp, timeout=120)
        fleet.settled(["n1"])
        assert add(redis) == 1
        proxy.arm("lose")
        assert add(redis) == 2  # it was done, and the node found out
        assert proxy.cut.is_set() and store.gold("ann") == 2
        proxy.arm("hold")
        assert add(redis) == "STORE_UNAVAILABLE"
        assert proxy.cut.is_set() and store.gold("ann") == 2
        assert proxy.release() and store.gold("ann") == 2  # too late
        counts_again(store, redis, 3)
        assert metric(admin, "reconnects_total") >= 2
        can_not_be_written(store, redis)
        notices_an_old_copy(store, redis, node, admin)
        if store.name == "redis":
            must_be_durable(binary, fleet, store)


def counts_again(store, redis, least):
    """What was asked while the actor could not be loaded may have run, too."""
    count = until("it counts again", lambda: isinstance(said := add(redis), int) and said)
    assert count >= least and store.gold("ann") == count


def can_not_be_written(store, redis):
    kept = store.gold("ann")
    store.set_read_only(True)
    while add(redis) != "STORE_UNAVAILABLE":  # it takes a while until each session knows
        kept += 1
        assert store.gold("ann") == kept
    assert store.gold("ann") == kept
    store.set_read_only(False)
    counts_again(store, redis, kept + 1)


def notices_an_old_copy(store, redis, node, admin):
    store.go_back("ann")
    assert add(redis) == "STORE_UNAVAILABLE"
    assert node.log_has("store_went_back") and metric(admin, "went_back_total") == 1


def must_be_durable(binary, fleet, store):
    store.ask("CONFIG", "SET", "appendfsync", "everysec")
    start = ["node", "--name", "n2", "--join", fleet.addresses, "--data", fleet.data("n2"), "--listen", "127.0.0.1:0"]
    code, _, err = fleet.run(*start, "--actor", inventory(binary), "--store", store.option)
    assert code == 1 and "its appendfsync is everysec: it must be always" in err, err


def cases_of(kind):
    def with_store(case):
        def run(binary):
            with kind() as store:
                case(binary, store)

        run.__name__ = f"{case.__name__}_in_{kind.name}"
        return run

    return map(with_store, (
        the_rules_of_a_store_hold,
        what_was_answered_is_there_when_the_server_was_killed,
        what_becomes_of_a_commit_is_known,
    ))  # fmt: skip


cases = []
for kind in (durable.Postgres, durable.Redis):
    if kind.missing():
        print(f"ok - {kind.name} # SKIP {kind.missing()}")
    else:
        cases += cases_of(kind)
main(cases)
