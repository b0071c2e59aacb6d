#!/usr/bin/env python3
"""A storm of alarms: ALARMS=20000 sleeping actors on three nodes have one each, all due within one minute, and a node is killed
in the middle. Each goes off, none before its time; how late they were is printed. They are written into the store beforehand,
by SQL, as nobody may be awake."""
import os
import random
import signal
import sqlite3
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, healthy, main, until

NODES = ("n1", "n2", "n3")
ALARMS = int(os.environ.get("ALARMS", "20000"))
MINUTE_MS = 60000
BEFORE_MS = 20000  # until the first: the fleet has to be there
GAME = """
local sleeper = ringhold.kind("sleeper", {durable = true, idle = 5})

function sleeper.on_alarm(self, name, payload)
    if ringhold.get("rang") then
        ringhold.put("again", (tonumber(ringhold.get("again")) or 0) + 1)
    else
        ringhold.put("rang", string.format("%.3f", ringhold.time() * 1000))
    end
end
"""


def write_alarms(path, first_ms):
    """The due time of each, by its id."""
    due = {f"sleeper-{i}": first_ms + int(random.random() * MINUTE_MS) for i in range(ALARMS)}
    db = sqlite3.connect(path)
    db.executemany(
        "INSERT INTO entry VALUES (0, ?, 3, CAST('wake' AS BLOB), CAST('' AS BLOB), NULL, NULL, ?, 0)",
        ((i.encode(), ms) for i, ms in due.items()),
    )
    db.commit()
    db.close()
    return due


def count(db, what):
    return db.execute("SELECT count(*) FROM value WHERE key = CAST(? AS BLOB)", (what,)).fetchone()[0]


def each_of_a_storm_goes_off(binary):
    with Fleet(binary) as fleet:
        script = os.path.join(fleet.folder, "game.lua")
        with open(script, "w") as f:
            f.write(GAME)
        path = f"{fleet.folder}/actors.db"
        rate = max(1000, ALARMS * 2000 // MINUTE_MS)
        words = ["--lua", script, "--store", f"sqlite:{path}", "--alarm-rate", str(rate)]
        fleet.coordinators(1)
        maker = fleet.node("n1", words)  # of the file
        maker.kill(signal.SIGKILL)
        maker.wait()
        first_ms = int(time.time() * 1000) + BEFORE_MS + ALARMS // 8
        due = write_alarms(path, first_ms)
        nodes = {name: fleet.node(name, words) for name in NODES}
        fleet.settled(list(NODES))
        print(f"# {ALARMS} alarms, the first in {first_ms / 1000 - time.time():.0f} s", flush=True)
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
        until("half of them went off", lambda: count(db, "rang") >= ALARMS // 2, 120 + ALARMS / 200, 0.2)
        nodes["n1"].kill(signal.SIGKILL)
        nodes["n1"].wait()
        until("all went off", lambda: count(db, "rang") == ALARMS, 120 + ALARMS / 200, 0.5)
        rang = {i.decode(): float(ms) for i, ms in db.execute("SELECT id, value FROM value WHERE key = CAST('rang' AS BLOB)")}
        until("no alarm is left", lambda: db.execute("SELECT count(*) FROM alarm").fetchone()[0] == 0)
        again = count(db, "again")
        db.close()
        late = sorted(rang[i] - due[i] for i in due)
        assert late[0] >= -0.01, f"one went off {-late[0]} ms before its time"
        p50, p99 = late[len(late) // 2], late[len(late) * 99 // 100]
        print(f"# each went off, {again} of them twice; late: p50 {p50:.0f} ms, p99 {p99:.0f} ms, max {late[-1]:.0f} ms", flush=True)
        fleet.node("n1", words)
        fleet.settled(list(NODES))
        healthy(fleet)


main([each_of_a_storm_goes_off])
