#!/usr/bin/env python3
"""No secret leaves a process: not by its log at its most talkative, its pages, its configuration printed, its environment or
its words. The secrets are a token of metrics, keys of players' tokens, such tokens, players' payloads, and keys of TLS.
"""
import base64
import os
import signal
import sys
import urllib.error
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from certificates import make
from fleet import main, until
from secured import Secured

TOKEN = "metrics-token-that-nobody-shows"
OPERATOR = "operators-token-that-nobody-shows"
WRONG = "another-token-that-nobody-shows"
KEY = b"the-key-of-tokens-that-is-secret"
PAYLOAD = "a-payload-that-is-for-the-actor"


def written(fleet, name, text):
    path = fleet.data(name)
    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
        f.write(text)
    return path


def page(address, path, token, form=None):
    asked = urllib.request.Request(f"http://{address}{path}", form, {"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def letters_of(key):
    """The lines of a PEM, but for those that say what it is."""
    with open(key) as f:
        return [line.strip() for line in f if not line.startswith("-----")]


def players(gateway, secret):
    """Who signs in, who shows a token that was forged, who shows none."""
    address = tuple(gateway.fields["frames"].rsplit(":", 1))
    good, forged = packets.token("k", KEY, b"me"), packets.token("k", b"x" * 32, b"me")
    me, other = packets.Client(address), packets.Client(address)
    assert len(me.auth(good)) == 3
    until("somebody owns it", lambda: me.ask(b"me", PAYLOAD.encode()).status == packets.OK)
    assert len(other.auth(forged)) != 3 and other.closed()
    secret.update({"a player's token": good, "a forged one": forged})


def nothing_says_a_secret(binary):
    with Secured(binary) as fleet:
        token = written(fleet, "token", TOKEN + "\n")
        keys = written(fleet, "keys", f"k hex:{KEY.hex()}\n")
        chain, key = make(fleet, "players")
        at = {name: f"127.0.0.1:{fleet.port()}" for name in ("c1", "n1", "g1")}
        extra = {name: ["--admin", address, "--admin-token", token, "--log-level", "debug"] for name, address in at.items()}
        extra["c1"] += ["--operator-token", written(fleet, "operator", OPERATOR + "\n")]
        extra["n1"] += ["--kind", "0:echo"]
        extra["g1"] += ["--frames", "127.0.0.1:0", "--wss", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key,
                        "--auth-keys", keys]
        fleet.coordinators(1, extra=extra["c1"])
        started = [fleet.process("c1"), fleet.node("n1", extra["n1"]), fleet.gateway("g1", extra["g1"])]
        secret = {"the token of metrics": TOKEN, "that of operators": OPERATOR, "a wrong one": WRONG, "a key, as it is": KEY.decode(),
                  "a key in hex": KEY.hex(), "a key in base64": base64.b64encode(KEY).decode()[:-2], "a payload": PAYLOAD}
        players(started[2], secret)
        for pem in [key, *(f"{fleet.certificate(*who)}.key" for who in (("coordinator", "1"), ("node", "n1"), ("gateway", "g1")))]:
            secret |= {f"line {n} of {os.path.basename(pem)}": text for n, text in enumerate(letters_of(pem))}
        said = {}
        for process in started:
            address = at[process.name]
            for path in ("/metrics", "/status", "/healthz", "/readyz", "/fleet", "/", "/none"):
                assert WRONG not in page(address, path, WRONG)
                said[f"{process.name}{path}"] = page(address, path, TOKEN)
            if process.name == "c1":  # it asks the leader by its own certificate
                said["a wish"] = page(address, "/drain", OPERATOR, b"node=n9")
                assert "unknown node 'n9'" in said["a wish"], said["a wish"]
            process.kill(signal.SIGHUP)
            until(f"{process.name} reads again", lambda p=process: p.log_has("certificate_read"))
            for name in ("cmdline", "environ"):
                with open(f"/proc/{process.popen.pid}/{name}", "rb") as f:
                    said[f"{name} of {process.name}"] = f.read().decode(errors="replace")
            printed = fleet.run(*process.words, "--print-config")
            assert printed[0] == 0 and token in printed[1], printed
            said[f"configuration of {process.name}"] = printed[1]
        for words in (["status"], ["events"], ["check"], ["top", "--hot"]):
            said[" ".join(words)] = fleet.tell(*words, "-o", "json")
        for process in started:
            with open(process.log) as f:
                said[f"log of {process.name}"] = f.read()
        assert all("ringhold_build_info" in said[f"{name}/metrics"] or "ringhold_ready" in said[f"{name}/metrics"] for name in at)
        for where, text in said.items():
            told = [what for what, words in secret.items() if words in text]
            assert not told, f"{where} says {told}"


main([nothing_says_a_secret])
