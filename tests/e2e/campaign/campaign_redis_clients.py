#!/usr/bin/env python3
"""Redis clients from their registries on a fleet, each with its defaults and with the settings of docs/redis-clients.md: what they say
when they start, pipelines, connections by the dozen, a transaction, answers that take as long as a take-over, and a gateway that is
killed while they count. What is stored is held against what was answered. A client whose toolchain or registry is not there is skipped,
by a line. CLIENTS= only those of these words; WRITE=1 writes the tables of docs/redis-clients.md."""
import os
import re
import shutil
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main
from redis_client import Driver, judge, started

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "redis_clients")
PAGE = os.path.join(HERE, "..", "..", "..", "docs", "redis-clients.md")
BUILD = os.path.abspath(os.path.join(HERE, "..", "..", "..", "build", "redis-clients"))


class Missing(Exception):
    pass


def run(folder, *words):
    if shutil.which(words[0]) is None:
        raise Missing(f"no {words[0]}")
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Missing(f"{' '.join(words[:3])}: {' '.join(done.stdout.split())[-300:]}")
    return done.stdout.strip()


def copied(language):
    folder = os.path.join(BUILD, language)
    shutil.copytree(os.path.join(SOURCES, language), folder, dirs_exist_ok=True)
    return folder


# Each makes the drivers of its language, and returns the words that start one.


def c():
    folder = copied("c")
    run(folder, "cc", "-O2", "-o", "driver", "driver.c", "-lhiredis", "-lpthread")
    return [os.path.join(folder, "driver")]


def python():
    folder = copied("python")
    run(folder, "python3", "-m", "venv", "venv")
    run(folder, os.path.join(folder, "venv/bin/pip"), "install", "--quiet", "-r", "requirements.txt")
    return [os.path.join(folder, "venv/bin/python3"), os.path.join(folder, "driver.py")]


def node():
    folder = copied("node")
    run(folder, "npm", "install", "--silent", "--no-audit", "--no-fund")
    return ["node", os.path.join(folder, "driver.mjs")]


def go():
    folder = copied("go")
    run(folder, "go", "mod", "tidy")
    run(folder, "go", "build", "-o", "driver", ".")
    return [os.path.join(folder, "driver")]


def java():
    folder = copied("java")
    run(folder, "mvn", "-q", "dependency:build-classpath", "-Dmdep.outputFile=classpath")
    with open(os.path.join(folder, "classpath"), encoding="utf-8") as f:
        path = f.read().strip()
    run(folder, "javac", "-cp", path, "-d", ".", "Driver.java")
    return ["java", "-cp", folder + ":" + path, "Driver"]


def rust():
    folder = copied("rust")
    run(folder, "cargo", "build", "--release", "--quiet")
    return [os.path.join(folder, "target/release/driver")]


def version(file, pattern):
    with open(os.path.join(SOURCES, file), encoding="utf-8") as f:
        return re.search(pattern, f.read(), re.S).group(1)


def of_hiredis():
    return run(HERE, "dpkg-query", "-W", "-f", "${Version}", "libhiredis-dev").split("-")[0]


# name, where it is from, driver, its name there, version, the settings of the page
CLIENTS = [
    ("redis", "npm", node, "redis", lambda: version("node/package.json", r'"redis": "(.*?)"'), "none needed"),
    ("ioredis", "npm", node, "ioredis", lambda: version("node/package.json", r'"ioredis": "(.*?)"'), "`maxRetriesPerRequest: 0`"),
    ("@valkey/valkey-glide", "npm", node, "glide", lambda: version("node/package.json", r'glide": "(.*?)"'), "`requestTimeout: 15000`"),
    ("redis (redis-py)", "PyPI", python, "redis", lambda: version("python/requirements.txt", r"redis==(\S+)"), "`socket_timeout=15, retry=Retry(NoBackoff(), 0)`"),
    ("valkey (valkey-py)", "PyPI", python, "valkey", lambda: version("python/requirements.txt", r"valkey==(\S+)"), "`socket_timeout=15, retry=Retry(NoBackoff(), 0)`"),
    ("valkey-glide-sync", "PyPI", python, "glide", lambda: version("python/requirements.txt", r"sync==(\S+)"), "`request_timeout=15000`"),
    ("go-redis v9", "Go", go, "go-redis", lambda: version("go/go.mod", r"go-redis/v9 v(\S+)"), "`MaxRetries: -1, ReadTimeout: 15 * time.Second`"),
    ("rueidis", "Go", go, "rueidis", lambda: version("go/go.mod", r"rueidis v(\S+)"), "`DisableCache: true, DisableRetry: true, ConnWriteTimeout: 15 * time.Second`"),
    ("jedis", "Maven", java, "jedis", lambda: version("java/pom.xml", r"jedis</artifactId>\s*<version>(.*?)<"), "`socketTimeoutMillis(15000)`"),
    ("lettuce", "Maven", java, "lettuce", lambda: version("java/pom.xml", r"lettuce-core</artifactId>\s*<version>(.*?)<"), "`autoReconnect(false)`, and a new connection when one is lost"),
    ("redis (redis-rs), `Connection`", "crates.io", rust, "redis-rs", lambda: version("rust/Cargo.toml", r'"=(.*?)"'), "none needed"),
    ("redis (redis-rs), `ConnectionManager`", "crates.io", rust, "redis-rs-manager", lambda: version("rust/Cargo.toml", r'"=(.*?)"'), "`set_response_timeout(Some(Duration::from_secs(15)))`"),
    ("hiredis", "Debian 12", c, "hiredis", of_hiredis, "none needed"),
]


def made(make, drivers):
    if make not in drivers:
        try:
            drivers[make] = make()
        except Missing as why:
            drivers[make] = why
    return drivers[make]


def clients(binary):
    only = os.environ.get("CLIENTS", "").split()
    drivers, rows, starts, bad = {}, [], [], []
    os.makedirs(BUILD, exist_ok=True)
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.settled(["n1"])
        gateways = [0]
        for name, source, make, word, number, settings in CLIENTS:
            words = made(make, drivers)
            if only and word not in only:
                continue
            if isinstance(words, Missing):
                print(f"# skip {name}: {words}", flush=True)
                continue
            row = {}
            for how in ("defaults", "recommended"):
                row[how] = judge(fleet, gateways, lambda address, how=how, word=word, words=words: Driver([*words, word, how, *map(str, address)]), f"{source}.{word}.{how}".replace(" ", "-"))
                print(f"# {name} {number()}, {how}: {row[how]}", flush=True)
            rows.append((name, source, number(), settings, row))
            starts.append((name, started(row["recommended"])))
            bad += [] if row["recommended"].good else [name]
    for line in table(rows) + [""] + table_of_starts(starts):
        print(line)
    if os.environ.get("WRITE"):
        write(table(rows), table_of_starts(starts))
    assert rows and not bad, bad


def table(rows):
    lines = ["| client | version | as it is | settings | with them |", "|---|---|---|---|---|"]
    for name, source, number, settings, row in rows:
        lines.append(f"| {name}, {source} | {number} | {row['defaults'].words()} | {settings} | {row['recommended'].words()} |")
    return lines


def table_of_starts(starts):
    lines = ["| client | what it says when it starts, and what a gateway answers |", "|---|---|"]
    for name, said in starts:
        lines.append(f"| {name} | {said} |")
    return lines


def write(*tables):
    with open(PAGE, encoding="utf-8") as f:
        text = f.read()
    for mark, lines in zip(("clients", "starts"), tables):
        text, count = re.subn(
            rf"(<!-- {mark}: by make redis-clients -->\n).*?(<!-- end -->)",
            lambda m, lines=lines: m[1] + "\n".join(lines) + "\n" + m[2],
            text,
            flags=re.S,
        )
        assert count == 1, mark
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(text)


main([clients])
