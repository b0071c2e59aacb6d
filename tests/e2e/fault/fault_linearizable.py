#!/usr/bin/env python3
"""16 clients of two gateways write down what they saw of each key while the fleet changes and is hurt, and porcupine
(tests/tools/linearizable) judges: is it what one register could have told them? (INJECT build.)

MINUTES=: so long, faults drawn by SEED= (`make linearizable`); else each fault once.

An actor's memory goes with its node. Then, once, its key may begin anew, and nothing of before may be seen after that.
Only a key that a killed node may have had is excused: the ring of before says which, where nothing moved.
"""
import collections
import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import judge
from fleet import DEADLINE, Fleet, Resp, RespError, healthy, main, number_of, pairs, until

MINUTES = float(os.environ.get("MINUTES", "0"))
SEED = int(os.environ.get("SEED", str(int(time.time()))))
LEASE_S = 3
# A move that a vote does not come for is given up soon, and of a node that is drained all moves at once.
COORDINATORS = ["--lease", f"{LEASE_S}s", "--election-ms", "300", "--prepare-ms", "1000", "--vnodes", "16"]
FENCED = {75, -signal.SIGABRT}  # how a node ends that finds itself so; the second: an actor was just running
NODES = ["n1", "n2", "n3"]
CLIENTS = 16
KEYS = 12  # asked at a time; short ones, for what a checker takes grows fast with a history's length
OPS_MAX = 80
COPIES = 12  # of actors whose moves are given up
LINKS = 4  # that are lost with answers
LINK_LOST = "inject: losing answer-sent"
OPEN_MAX = 3  # operations of a key that nobody knows the outcome of, before it gets no more
FLYING_MAX = 4
PAUSE_S = 0.01  # of a client between two operations: other tests run beside

SORTS = {  # of keys, and what is done to them
    "register": ["SET", "SET", "GET", "GET", "GET", "GETSET", "SETNX", "DEL"],
    "kept": ["SET", "GET", "GETSET", "SETNX"],  # never deleted
    "list": ["APPEND", "APPEND", "GET"],
    "counter": ["INCR", "INCR", "GET"],
}
WITH_VALUE = {"SET", "GETSET", "SETNX", "APPEND"}
DID_NOT_RUN = {"MOVING", "OVERLOADED"}
NOBODY_KNOWS = {"UNKNOWN", "TIMEOUT"}


def now():
    return time.monotonic_ns()


class Key:
    def __init__(self, name, sort):
        self.name = name
        self.sort = sort
        self.lines = []
        self.asked = self.flying = self.open = 0
        self.last = 0  # when its last answer came

    def full(self):
        return self.asked >= OPS_MAX or self.open >= OPEN_MAX


class Book:
    """What was asked and answered, by key."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="ascii")
        self.file.write("ringhold-operations 1\n")
        self.lock = threading.Lock()
        self.serial = 0
        self.asked = []  # keys that get more
        self.full = []
        self.excused = []  # (since when, keys) of deaths that are not over
        self.codes = collections.Counter()
        for _ in range(KEYS):
            self.fresh()

    def fresh(self):
        self.serial += 1
        self.asked.append(Key(f"k{self.serial}", list(SORTS)[self.serial % len(SORTS)]))

    def take(self, draw):
        """A key to ask one more thing, or None."""
        with self.lock:
            free = [k for k in self.asked if k.flying < FLYING_MAX]
            if not free:
                return None
            key = draw.choice(free)
            self.begins(key)
            return key

    def begins(self, key):
        key.asked += 1
        key.flying += 1
        self.retire(key)

    def retire(self, key):
        if key.full() and key in self.asked:
            self.asked.remove(key)
            self.full.append(key)
            self.fresh()

    def ends(self, key, call, code, command, argument, result):
        with self.lock:
            self.codes[code] += 1
            key.flying -= 1
            if code == "OK":
                key.last = now()
                key.lines.append(f"{call} {key.last} {command} {argument or '-'} {'nil' if result is None else result}")
            elif code not in DID_NOT_RUN and command != "GET":
                key.lines.append(f"{call} - {command} {argument or '-'} -")
                key.open += 1
                self.retire(key)

    def quiet(self):
        """Keys that get no more, and wait for nothing."""
        with self.lock:
            return [k for k in self.full if not k.flying]

    def alive(self):
        with self.lock:
            return self.asked + self.full

    def dies(self, since, keys=None):
        """A node that may have had these keys may have died at any time from then on; by default all that there are."""
        with self.lock:
            self.excused.append((since, self.asked + self.full if keys is None else keys))

    def calm(self, quiet):
        """All nodes live, and whose died have others' memory: since `quiet` was asked nobody died."""
        with self.lock:
            for since, keys in self.excused:
                for key in keys:
                    if key.last > since:
                        key.lines.append(f"{since} {now()} LOSE - -")
            self.excused.clear()
            for key in quiet:
                self.full.remove(key)
                self.put(key)

    def put(self, key):
        if key.lines:
            self.file.write("\n".join([f"KEY {key.name}", *key.lines, ""]))

    def close(self):
        assert not self.excused
        for key in self.asked + self.full:
            assert not key.flying, key.name
            self.put(key)
        self.file.close()


class Client:
    """Asks one thing at a time, of whichever gateway takes its connection."""

    def __init__(self, book, gateways, number):
        self.book = book
        self.gateways = gateways  # addresses, that of choice first
        self.number = number
        self.serial = 0
        self.redis = None

    def dial(self):
        for address in self.gateways:
            try:
                return Resp(address)
            except ConnectionError:
                pass
        return None

    def hang_up(self):
        if self.redis is not None:
            self.redis.close()
        self.redis = None

    def ask(self, key, command):
        """What became of it, and the answer. The book knows that it begins."""
        self.serial += 1
        if self.serial % 200 == 0:
            self.hang_up()  # its gateway of choice may be there again
        argument = [f"{self.number}.{self.serial};"] if command in WITH_VALUE else []
        self.redis = self.redis or until("a gateway takes the connection", self.dial)
        call, result = now(), None
        try:
            result = self.redis(command, key.name, *argument)
            code = "OK"
        except RespError as error:
            code = str(error).split(" ")[0]
            assert code in DID_NOT_RUN | NOBODY_KNOWS, f"{command} {key.name}: {error}"
        except ConnectionError:  # silence is none: that ends the test
            code = "CUT"
            self.hang_up()
        self.book.ends(key, call, code, command, "".join(argument), result)
        return code, result


class Load(threading.Thread):
    def __init__(self, client):
        super().__init__(daemon=True)
        self.client = client
        self.draw = random.Random(SEED * CLIENTS + client.number)
        self.stopping = False
        self.failed = None
        self.start()

    def run(self):
        try:
            while not self.stopping:
                key = self.client.book.take(self.draw)
                if key is not None:
                    self.client.ask(key, self.draw.choice(SORTS[key.sort]))
                time.sleep(PAUSE_S)  # the rate of the load; nothing is waited for by it
            self.client.hang_up()
        except Exception as error:  # told by who waits for it
            self.failed = error

    def done(self):
        self.stopping = True
        self.join(2 * DEADLINE)
        assert not self.is_alive() and self.failed is None, self.failed


class Faults:
    def __init__(self, fleet, book, gateways):
        self.fleet = fleet
        self.book = book
        self.gateways = gateways
        self.client = Client(book, list(gateways.values()), CLIENTS)
        self.draw = random.Random(SEED)
        self.count = collections.Counter()
        self.spared = self.probed = 0
        self.since = now()  # nobody had died then

    def some(self, names):
        return self.fleet.process(self.draw.choice(sorted(names)))

    def go_on(self, answers=100):
        codes = self.book.codes
        before = codes["OK"]
        until("the load goes on", lambda: codes["OK"] >= before + answers)

    def revive(self):
        """Start nodes again that no fault has ended: they were too slow for their lease on a busy machine."""
        for name in NODES:
            if not self.fleet.process(name).running:
                code = self.fleet.process(name).popen.returncode
                assert code in FENCED, (code, self.fleet.process(name).tail())
                self.book.dies(self.since)
                self.count["ended by itself"] += 1
                start_node(self.fleet, name)

    def whole(self):
        """Nodes that ended are there again, whatever moves now."""

        def calm():
            self.revive()
            quiet, since = self.book.quiet(), now()
            if not {n["state"] for n in self.fleet.status()["nodes"]} <= {"live", "leaving"}:
                return False
            self.book.calm(quiet)
            self.since = since
            return True

        until("all nodes live", calm)

    def until_or_ended(self, what, victim, check):
        """Wait for what a node does that no fault ends. One that ends by itself does it no more, and that is told by the
        count of such; it is there again."""

        def check_or_ended():
            ended = not victim.running
            self.revive()
            return ended or check()

        until(what, check_or_ended)

    def settled(self, nodes=None):
        """When all that ended by themselves are there again."""
        self.revive()
        self.fleet.settled(nodes)

    def replaced(self, victim):
        until("others have its ids", lambda: victim.name not in owners(self.fleet))

    def pause(self, process, seconds):
        process.kill(signal.SIGSTOP)
        time.sleep(seconds)  # the length of the pause is the experiment
        process.kill(signal.SIGCONT)

    @contextlib.contextmanager
    def lost(self, process, frames):
        """Until then these frames of a node are."""
        path = self.fleet.data(f"{process.name}.lose")
        with open(path, "w", encoding="ascii") as file:
            file.write(frames + "\n")
        yield
        os.remove(path)

    def given_up(self, source):
        return {t["txn"] for t in self.fleet.ask("txn", "list", "--limit", "1000")
                if t["state"] == "aborted" and t["from"] == source.name}  # fmt: skip

    def probes(self, victim, count):
        """Keys of its own that nobody else asks."""
        self.probed += 1
        redis = Resp(self.gateways["g1"])
        names = (f"p{self.probed}.{i}" for i in itertools.count())
        its = (n for n in names if pairs(redis("WHERE", n))["node"] == victim.name)
        found = [Key(n, "probe") for n in itertools.islice(its, count)]
        redis.close()
        self.book.full += found
        return found

    def stay(self):
        """Is it so that nobody was leaving? From now on it is."""
        leaving = [n["node"] for n in self.fleet.status()["nodes"] if n["state"] == "leaving"]
        for name in leaving:
            self.fleet.tell("node", "drain", name, "cancel")
        return not leaving

    # ---- what is done

    def drain(self):
        if self.stay():
            self.fleet.tell("node", "drain", self.draw.choice(NODES))

    def answers_lost(self):
        """They are lost with their links: who joins again hears them once more, and nothing runs a second time."""
        # One that is drained may have given its last id away before its answers get lost.
        staying = {n["node"] for n in self.fleet.status()["nodes"] if n["state"] == "live" and n["vnodes"] > 0}
        victim = self.some(staying)
        before = victim.log_count(LINK_LOST)
        with self.lost(victim, "answer-sent"):
            enough = before + LINKS
            self.until_or_ended("links are lost with answers", victim, lambda: victim.log_count(LINK_LOST) >= enough)

    def votes_lost(self):
        """Others have the state of its actors, and the moves are given up. It changes, and moves again."""
        self.stay()
        self.settled(NODES)
        victim = self.some(NODES)
        before, probes = self.given_up(victim), self.probes(victim, COPIES)
        for probe in probes:
            self.answered(probe, "SET")
        with self.lost(victim, "prepared-sent"):
            self.fleet.tell("node", "drain", victim.name)
            enough = len(NODES) - 1
            self.until_or_ended("its moves are given up", victim, lambda: len(self.given_up(victim) - before) >= enough)
        for probe in probes:
            self.answered(probe, "SET")
        self.until_or_ended("it gives what it has", victim, lambda: victim.name not in owners(self.fleet))
        for probe in probes:
            self.answered(probe, "GET")

    def weight(self):
        self.fleet.tell("node", "weight", self.draw.choice(NODES), str(self.draw.randint(1, 4)))

    def leader_killed(self):
        leader = self.fleet.leader()
        leader.kill().wait()
        self.go_on()
        self.fleet.coordinator(int(leader.name[1:]), extra=COORDINATORS)

    def leader_paused(self):
        self.pause(self.fleet.leader(), 0.3 * LEASE_S)

    def gateway_killed(self):
        victim = self.some(self.gateways)
        victim.kill().wait()
        self.go_on()
        self.fleet.gateway(victim.name, port=self.gateways[victim.name][1])

    def gateway_paused(self):
        self.pause(self.some(self.gateways), 0.5)

    def node_paused(self):
        self.pause(self.some(NODES), 0.2 * LEASE_S)

    def node_stopped(self):
        """For longer than its lease: others have its ids, and when it goes on it finds itself fenced."""
        victim, since = self.some(owners(self.fleet)), now()
        victim.kill(signal.SIGSTOP)
        self.replaced(victim)
        victim.kill(signal.SIGCONT)
        assert victim.wait() in FENCED, victim.tail()
        self.book.dies(since)
        start_node(self.fleet, victim.name)

    def at_rest(self):
        """A node that has ids, a probe of its own, and the keys that others have; None if something moved meanwhile: the probe
        may have gone elsewhere then, and would outlive the node."""
        self.settled()
        redis = Resp(self.gateways["g1"])
        victim = self.some(owners(self.fleet))
        probe = self.probes(victim, 1)[0]
        self.answered(probe, "SET")
        place = {key: pairs(redis("WHERE", key.name)) for key in self.book.alive()}
        status = self.fleet.status()
        still = not (status["pending"] or status["planned"] or status["planning"])
        here = pairs(redis("WHERE", probe.name))["node"] == victim.name
        redis.close()
        spared = {k for k, w in place.items()
                  if w["node"] != victim.name and w["version"] == number_of(status["version"])}  # fmt: skip
        return (victim, probe, spared) if still and here else None

    def node_killed(self):
        """Where nothing moves: only what it had, and keys that are new, may begin anew. Each time one is killed."""
        victim, probe, spared = until("nothing moves", self.at_rest)
        since = now()
        victim.kill().wait()
        self.book.dies(since, [k for k in self.book.alive() if k not in spared])
        self.spared += len(spared)
        self.replaced(victim)
        assert self.answered(probe, "GET") is None
        self.answered(probe, "SET")
        self.answered(probe, "GET")
        start_node(self.fleet, victim.name)

    def answered(self, key, command):
        def ask():
            self.book.begins(key)
            code, result = self.client.ask(key, command)
            return (result,) if code == "OK" else None

        return until(f"{command} {key.name} is answered", ask)[0]

    def node_killed_in_a_drain(self):
        """It is there again before others have what it had."""
        self.drain()
        victim, since = self.some(NODES), now()
        victim.kill().wait()
        self.book.dies(since)
        start_node(self.fleet, victim.name)

    ALL = (drain, leader_killed, answers_lost, weight, gateway_killed, drain, node_paused, votes_lost, node_killed,
           leader_paused, gateway_paused, node_killed_in_a_drain, answers_lost, weight, node_stopped)  # fmt: skip

    def do(self, fault):
        fault(self)
        self.count[fault.__name__] += 1
        self.go_on()
        self.whole()

    def run(self):
        for fault in self.ALL:
            self.do(fault)
        end = time.monotonic() + 60 * MINUTES
        while time.monotonic() < end:
            self.do(self.draw.choice(self.ALL))
            if self.draw.random() < 0.3:  # else the next one comes amid moves
                self.settled()
                self.whole()


def start_node(fleet, name):
    fleet.node(name, env={"RINGHOLD_INJECT_LOSE": fleet.data(f"{name}.lose")})


def owners(fleet):
    return {n["node"] for n in fleet.status()["nodes"] if n["vnodes"] > 0}


def each_key_is_one_register(binary):
    program = judge.program(binary)
    with Fleet(binary) as fleet:
        fleet.coordinators(3, extra=COORDINATORS)
        for name in NODES:
            start_node(fleet, name)
        gateways = {name: fleet.gateway(name, port=fleet.port()).resp for name in ("g1", "g2")}
        fleet.settled(NODES)
        book = Book(fleet.data("operations"))
        both = list(gateways.values())
        loads = [Load(Client(book, both[i % 2 :] + both[: i % 2], i)) for i in range(CLIENTS)]
        faults = Faults(fleet, book, gateways)
        faults.run()
        for load in loads:
            load.done()
        book.close()
        healthy(fleet)
        print(f"# SEED={SEED}; faults: " + ", ".join(f"{k.replace('_', ' ')} {n}" for k, n in faults.count.items()))
        print(f"# answers: {dict(book.codes)}; {faults.spared} times a key had to outlive another's node")
        for words in ([], ["--doctored"]):
            done = subprocess.run([program, *words, book.file.name], capture_output=True, text=True)
            print("".join(f"# {line}\n" for line in done.stdout.splitlines()[-20:]), end="")
            assert done.returncode == 0, f"{program} ended with {done.returncode} {done.stderr}"


if skip := judge.build(sys.argv[1]):
    print(f"ok - each_key_is_one_register # SKIP {skip}")
    sys.exit(0)
main([each_key_is_one_register])
