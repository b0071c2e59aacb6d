"""A fleet whose players give each other gold (examples/gifts.c), and who dies of it: nodes, gateways, coordinators, and the
server of its store. For fault_gifts.py and fault_gifts_judged.py.

    with STORE() as store, Fleet(binary) as fleet:
        trades = Trades(fleet, store, binary)
        caller = Caller(trades.addresses, random.Random(1))
        caller("ann", "give bob 3")      # 7; POOR; DID_NOT_RUN; None: nobody knows
        trades.hurt(trades.draw(random.Random(1)), go_on)

LEASE=3s: where the machine is too busy for a lease of 1 s (make e2e has 2 s), so that nodes end by themselves, which is counted as
"fenced".
"""
import collections
import os
import signal
import time

from fleet import Resp, RespError, until

NODES = ("n1", "n2", "n3")
GATEWAYS = ("g1", "g2")
COORDINATORS = ("c1", "c2", "c3")
COORDINATING = ["--lease", os.environ.get("LEASE", "1s"), "--election-ms", "200"]
SERVER = "server"  # of the store, where it has one
POOR, DID_NOT_RUN = "POOR", "DID_NOT_RUN"
REFUSALS = ("REJECTED", "MOVING", "STORE_UNAVAILABLE", "STORE_FENCED", "OVERLOADED", "BUSY")
LINK_LOST = "inject: losing answer-sent"
AWAY_S = 8  # of a server: from 10 s on, what was amidst a commit is UNKNOWN
FENCED, OVERRUN = 75, "the process ends now (--on-lease-overrun)"  # how a node ends whose lease is over


class Caller:
    """A client of whichever gateway takes its connection, of one thread."""

    def __init__(self, addresses, draw):
        self.addresses = addresses  # by names; they change when a gateway is there again
        self.draw = draw
        self.redis = None
        self.counts = collections.Counter()  # of UNKNOWN, INTERRUPTED, TIMEOUT, and "cut": a connection lost

    def in_doubt(self):
        """How many answers said that nobody knows."""
        return self.counts["UNKNOWN"] + self.counts["INTERRUPTED"]

    def connect(self):
        addresses = list(self.addresses.values())
        for address in self.draw.sample(addresses, len(addresses)):
            try:
                return Resp(address, timeout=120)
            except ConnectionError:
                pass
        return None

    def __call__(self, player, words):
        self.redis = self.redis or until("a gateway takes the connection", self.connect)
        try:
            return int(self.redis("CALL", player, words))
        except RespError as error:
            word = str(error).removeprefix("ERR ").split()[0]
            if "not got that much" in str(error):
                return POOR
            if word in REFUSALS:
                return DID_NOT_RUN
            assert word in ("UNKNOWN", "INTERRUPTED", "TIMEOUT"), error
        except ConnectionError:
            word = "cut"
            self.redis = None
        self.counts[word] += 1
        return None


def earned(ask, player, amount):
    """Give a player its first gold, while nobody gives any away, and return what was answered, or what it has. A node may end by
    itself on a busy machine before anything is hurt: what did not run is asked again, and so is what may have run but has not."""

    def gold():
        answer = ask(player, "gold")
        return None if answer in (None, DID_NOT_RUN) else (answer,)

    while True:
        answer = ask(player, f"earn {amount}")
        if answer is None:
            answer = until(f"{player} says what it has", gold)[0]
        if answer not in (DID_NOT_RUN, 0):
            return answer


class Trades:
    def __init__(self, fleet, store, binary, env=None):
        self.fleet, self.store = fleet, store
        self.env = env or {}
        plugin = os.path.join(os.path.dirname(os.path.abspath(binary)), "examples", "gifts.so")
        self.words = ["--actor", plugin, "--store", store.option]
        self.addresses = {}
        self.deaths = collections.Counter()  # by sorts
        self.sorts = {"nodes": NODES, "gateways": GATEWAYS, "coordinators": COORDINATORS}
        if hasattr(store, "kill"):
            self.sorts["servers"] = (SERVER,)
        fleet.coordinators(3, env=self.env, extra=COORDINATING)
        for name in (*NODES, *GATEWAYS):
            self.start(name)
        fleet.settled(list(NODES))

    def start(self, name):
        if name in NODES:
            lost = {"RINGHOLD_INJECT_LOSE": self.lost(name)}
            self.fleet.node(name, self.words, env={**self.env, **lost})
        elif name in GATEWAYS:
            self.addresses[name] = self.fleet.gateway(name, env=self.env).resp
        elif name in COORDINATORS:
            self.fleet.coordinator(int(name[1:]), env=self.env, extra=COORDINATING)
        else:
            self.store.__enter__()

    def lost(self, node):
        """The file that names what that node is to lose, in an INJECT build."""
        return self.fleet.data(f"{node}.lose")

    def kill(self, name):
        if name == SERVER:
            self.store.kill()
        else:
            self.fleet.process(name).kill(signal.SIGKILL).wait()

    def kill_unheard(self, node):
        """Kill it when answers of it are lost: of what it has saved and nobody has heard. (INJECT build)"""
        process = self.fleet.process(node)
        before = process.log_count(LINK_LOST)
        with open(self.lost(node), "w", encoding="ascii") as file:
            file.write("answer-sent\n")
        # One that ended by itself loses none any more, and is as dead as it is to be.
        until("answers are lost", lambda: not process.running or process.log_count(LINK_LOST) > before)
        self.kill(node)
        os.remove(self.lost(node))

    def sort(self, name):
        return next(sort for sort, names in self.sorts.items() if name in names)

    def draw(self, draw):
        """Who dies: one, or two of different sorts at once. Nodes twice as often as others."""
        names = [name for names in (NODES, *self.sorts.values()) for name in names]
        first = draw.choice(names)
        others = [name for name in names if self.sort(name) != self.sort(first)]
        return [first, draw.choice(others)] if draw.random() < 0.3 else [first]

    def doubt_is_excused(self):
        """May an answer have said that nobody knows? Two nodes may have died with its request, as one ended by itself; or
        its store was away for long."""
        return self.deaths["fenced"] + self.deaths["servers away for long"] > 0

    def revive(self):
        """Start nodes again that ended by themselves: a machine was too busy for their lease."""
        for name in NODES:
            process = self.fleet.process(name)
            code = process.popen.poll()
            if code not in (None, -signal.SIGKILL):
                aborted = code == -signal.SIGABRT and process.log_has(OVERRUN)
                assert code == FENCED or aborted, (name, code, process.tail())
                self.deaths["fenced"] += 1
                self.start(name)

    def owners(self):
        """Nodes that have ids, when all nodes live, wherever these move now; else None."""
        self.revive()
        nodes = self.fleet.status()["nodes"]
        live = len(nodes) == len(NODES) and all(n["state"] == "live" for n in nodes)
        return {n["node"] for n in nodes if n["vnodes"] > 0} if live else None

    def hurt(self, names, go_on, unheard=False):
        """They die when all nodes live, and start again when the load goes on. For a node that has no ids, as it has just
        started, one dies that has. `unheard`: nodes as kill_unheard() has it. Returns who died."""
        owners = sorted(until("all nodes live", self.owners, 180))
        names = [owners[0] if name in NODES and name not in owners else name for name in names]
        for name in sorted(names, key=SERVER.__eq__):
            (self.kill_unheard if unheard and name in NODES else self.kill)(name)
            self.deaths[self.sort(name)] += 1
        if SERVER in names:  # the last that died: nothing goes on without
            begin = time.monotonic()
            self.start(SERVER)
            self.deaths["servers away for long"] += time.monotonic() - begin > AWAY_S
        go_on()  # calls revive(), too
        for name in names:
            # A node that had ended by itself before it was killed was started again by revive().
            if name != SERVER and not self.fleet.process(name).running:
                self.start(name)
        return names

    def arrive(self):
        """Every gift arrives, as the store alone says."""
        until("every gift has arrived", lambda: self.store.reader().sends() == 0, 120, 0.1)
