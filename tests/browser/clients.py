#!/usr/bin/env python3
"""The JavaScript client through ws and wss, where the WebSockets are those of npm's ws; that one by hand; the package.

The cases of tests/e2e/smoke/smoke_clients.py, all of them, another way to the gateways.
"""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "e2e", "smoke")]

import certificates  # noqa: E402
import smoke_clients  # noqa: E402
from fleet import DEADLINE, Fleet, Resp, main, succeeds, until  # noqa: E402
from smoke_clients import NODE  # noqa: E402

FOLDER = os.path.normpath(os.path.join(HERE, "..", "..", "build", "browser"))
PACKAGE = os.path.normpath(os.path.join(HERE, "..", "..", "clients", "js"))


class Ws(smoke_clients.Tcp):
    entry = "ws"
    tls = ()

    def words(self, port):
        return [*super().words(port), *self.tls]

    def url(self, address):
        return f"{self.entry}://{address}/"

    def programs(self, _binary):
        yield [NODE, os.path.join(smoke_clients.HERE, "player.mjs")]


class Wss(Ws):
    entry = "wss"

    def __init__(self, folder):
        here = types.SimpleNamespace(data=functools.partial(os.path.join, folder))
        chain, key = certificates.make(here, "clients")
        self.tls = ["--tls-cert", chain, "--tls-key", key]
        os.environ["NODE_EXTRA_CA_CERTS"] = chain  # what node trusts beside the system's


def through(carrier, case):
    def run(binary):
        smoke_clients.carrier = carrier
        case(binary)

    run.__name__ = f"{case.__name__}_by_{carrier.entry}"
    return run


def by_hand(carrier):
    def run(binary):
        smoke_clients.carrier = carrier
        with Fleet(binary) as fleet:
            smoke_clients.start(fleet)
            g = smoke_clients.gateway(fleet, "g1", 0)
            until("somebody owns it", lambda: succeeds(Resp(g.resp), "CALL", "hand", "events") is not None)
            words = [NODE, os.path.join(HERE, "by_hand.mjs"), smoke_clients.address_of(g)]
            done = subprocess.run(words, cwd=FOLDER, capture_output=True, text=True, timeout=DEADLINE)
            assert done.returncode == 0 and done.stdout == "all right\n", (done.stdout, done.stderr)

    run.__name__ = f"bytes_by_hand_by_{carrier.entry}"
    return run


def the_package_has_what_it_should(_binary):
    npm = shutil.which("npm")
    done = subprocess.run([npm, "pack", "--dry-run", "--json"], cwd=PACKAGE, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    (package,) = json.loads(done.stdout)
    files = sorted(f["path"] for f in package["files"])
    assert files == ["README.md", "package.json", "ringhold.d.ts", "ringhold.js"], files
    print(f"# {package['filename']}: {len(files)} files, {package['unpackedSize']} bytes")


def cases(folder):
    shared = [
        smoke_clients.players_ask_and_are_pushed_to,
        smoke_clients.gateways_are_replaced_under_them,
        smoke_clients.sessions_go_on_while_gateways_are_replaced,
        smoke_clients.tokens_are_shown,
    ]
    for carrier in (Ws(), Wss(folder)):
        yield by_hand(carrier)
        yield from (through(carrier, case) for case in shared)
    yield the_package_has_what_it_should


if __name__ == "__main__":
    os.environ["WS_FROM"] = FOLDER
    with tempfile.TemporaryDirectory() as made:
        main(list(cases(made)))
