"""A Redis client on a fleet: what it does at the start, in a pipeline, in a transaction, when answers are late, and when its gateway is
killed. The client is in a driver (redis_clients/README.md)."""
import subprocess
import threading
import time

from fleet import DEADLINE, Resp, until
from relay import Relay

WORKERS = 4
TAKE_OVER = 4.5  # seconds: the lease, its margin and the take-over are 3.6


class Driver:
    """A process that does what it is told by lines, and tells what came of it."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        """The answer's text and whether it is good; one that does not come within the deadline ends the driver."""
        watch = threading.Timer(DEADLINE, self.process.kill)
        watch.start()
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        head = line = "nothing"
        while line and head not in ("ok", "error"):  # some clients log to stdout
            line = self.process.stdout.readline()
            head, _, text = line.strip().partition(" ")
        watch.cancel()
        assert line, (words, self.process.poll())
        return text, head == "ok"

    def count(self, key):
        assert self("count", key, WORKERS)[1]

    def stop(self):
        """Answered, refused, unknown; and the texts of errors."""
        text, good = self("stop")
        assert good, text
        words = text.split()
        return [int(w.split("=")[1]) for w in words[:3]], " ".join(words[3:])

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Verdict:
    """What a client did."""

    def __init__(self):
        self.start = self.batch = self.many = self.multi = None
        self.doubled = {}  # by what happened; of increments
        self.unknown = {}
        self.back = True
        self.said = []
        self.texts = []

    @property
    def good(self):
        return self.start is None and not (self.batch or self.many or self.multi) and self.back and not any(self.doubled.values()) and not self.unknown["late"]

    def words(self):
        if self.start is not None:
            return f"**does not start**: {self.start[:120]}"
        found = [w for w in (self.batch, self.many, self.multi) if w]
        if self.doubled["killed"]:
            found.append("**a killed gateway: increments run twice**")
        if not self.back:
            found.append("**does not come back after a killed gateway**")
        if self.doubled["late"]:
            found.append("**a late answer: increments run twice**")
        elif self.unknown["late"]:
            found.append("gives up before a take-over ends")
        return "; ".join(found) or "all of it works, nothing runs twice"

    def __repr__(self):
        return f"{self.words()}; doubled {self.doubled}, unknown {self.unknown}, {self.texts}"


def stored(redis, key):
    return int(redis("GET", key) or 0)


def count_through(driver, relay, direct, key, happens):
    """Increments while `happens()`; answered <= stored, and what is above answered + unknown ran twice."""
    driver.count(key)
    until("it counts", lambda: stored(direct, key) >= 50)
    relay.hold()
    until("an answer is kept back", relay.held)
    redis = happens()
    seen = stored(redis, key)
    try:
        until("it counts again", lambda: stored(redis, key) >= seen + 50, 20)
        back = True
    except AssertionError:
        back = False
    try:
        (answered, _, unknown), texts = driver.stop()
    except AssertionError:
        return 0, 0, False, "some of its calls never end"
    found = stored(redis, key)
    assert answered <= found, (key, answered, found)
    return max(0, found - answered - unknown), unknown, back, texts


def judge(fleet, gateways, drive, key, late=TAKE_OVER):
    """A verdict on the client of drive(address). Keys are its own; `gateways` counts those that were started; answers are `late` by so many
    seconds once."""

    def gateway():
        gateways[0] += 1
        return fleet.gateway(f"g{gateways[0]}")

    first, second = gateway(), gateway()
    relay, direct = Relay(first.resp), Resp(second.resp)
    driver, v = drive(relay.address), Verdict()
    try:
        text, good = driver("start")
        v.said = said_of(relay)
        if not good:
            v.start = text
            return v
        check_batches(driver, direct, key, v)

        def wait():
            time.sleep(late)
            relay.release()
            return direct

        v.doubled["late"], v.unknown["late"], _, texts = count_through(driver, relay, direct, key + ".late", wait)
        v.texts.append(texts)

        def killed():
            first.kill()
            relay.cut(second.resp)
            return direct

        v.doubled["killed"], v.unknown["killed"], v.back, texts = count_through(driver, relay, direct, key + ".killed", killed)
        v.texts.append(texts)
        return v
    finally:
        driver.end()
        relay.stop()
        direct.close()
        for g in (first, second):
            if g.running:
                g.kill()


def check_batches(driver, direct, key, v):
    text, good = driver("pipeline", key + ".pipeline", 1000)
    if not good or text != "1000" or stored(direct, key + ".pipeline") != 1000:
        v.batch = f"**pipeline**: {text[:80]}"
    text, good = driver("churn", key + ".churn", 50)
    if not good or text != "50" or stored(direct, key + ".churn") != 50:
        v.many = f"**new connections**: {text[:80]}"
    text, good = driver("multi", key + ".multi")
    v.texts.append("MULTI: " + text[:80])
    if good or stored(direct, key + ".multi") != 0:
        v.multi = "**a transaction seems to run**"
    text, good = driver("pipeline", key + ".after", 1)
    if not good:
        v.multi = f"**its connection is of no use after MULTI**: {text[:80]}"


def said_of(relay):
    """What its first connections said before the test's own commands, and what was answered."""
    said = {}
    for line in relay.opened:
        for words, answer in line.said:
            text = b" ".join(w for w in words if isinstance(w, bytes)).decode(errors="replace")
            if text.upper().startswith(("SET START", "GET START", "INCR START")):
                break
            said.setdefault(short(text), answer)
    return said


def short(text):
    """Without what is another with each run or version."""
    words = text.split(" ")
    if words[0].upper() == "CLIENT" and words[1].upper() == "SETINFO":
        words = words[:3]
    if words[0].upper() == "CLIENT" and words[1].upper() == "MAINT_NOTIFICATIONS":
        words = words[:3]
    return " ".join(words)


def started(verdict):
    """A cell of a table."""
    cells = []
    for text, answer in verdict.said.items():
        error = isinstance(answer, bytes) and answer.startswith(b"-")
        cells.append(f"`{text}`" + (f" → `{answer.decode().split(' ')[0]} …`" if error else ""))
    return ", ".join(cells) or "nothing"
