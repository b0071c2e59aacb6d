#!/usr/bin/env python3
"""Clients say who they are: tokens, keys that are replaced, and strangers that are kept few."""
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, until
from packets import Client, token

KICK_NO_AUTH, MALFORMED, UNKNOWN_KEY, FORGED, FOREIGN, EXPIRED = range(106, 112)
OLD, NEW = b"o" * 32, b"n" * 32


class Keys:
    def __init__(self, fleet, name):
        self.path = fleet.data(name)

    def write(self, text):
        """At once: a gateway never sees half of it."""
        fresh = self.path + ".new"
        with open(os.open(fresh, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(text)
        os.rename(fresh, self.path)


def line(name, secret):
    return f"{name} hex:{secret.hex()}\n"


def start(fleet, *more):
    keys = Keys(fleet, "keys")
    keys.write(line("old", OLD))
    return keys, more_gateway(fleet, "g1", keys, *more)


def more_gateway(fleet, name, keys, *more):
    g = fleet.gateway(name, ["--frames", "127.0.0.1:0", "--auth-keys", keys.path, *more])
    return g, tuple(g.fields["frames"].rsplit(":", 1))


def figures(gateway):
    text = Resp(gateway.resp)("INFO", "packets")
    return {k: int(v) for k, v in (word.split(":") for word in text.split("\r\n") if ":" in word)}


def counts(gateway, **right):
    """Threads tell one another what they have counted some milliseconds later."""
    until(f"figures are {right}", lambda: right.items() <= figures(gateway).items())


def known(address, text):
    client = Client(address)
    assert client.ack.flags == packets.ACK_AUTH, client.ack
    answer = client.auth(text)
    assert len(answer) == 3, answer
    return client


def tokens_open_the_door(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo", "--kind", "7:echo"))
        keys, (gateway, address) = start(fleet)
        code, made, err = fleet.run("token", "make", "--keys", keys.path, "--id", "me", "--kind", "7", "--ttl", "1h")
        assert code == 0, err
        assert fleet.run("token", "check", "--keys", keys.path, made.strip())[0] == 0
        assert fleet.run("token", "check", "--keys", keys.path, "--cluster", "x", made.strip())[0] == 2
        client = known(address, made.strip())
        until("somebody owns it", lambda: client.ask(b"me", b"x", kind=7).status == packets.OK)
        for entity, kind in ((b"me", 0), (b"you", 7)):
            assert client.ask(entity, b"x", kind=kind).status == packets.UNAUTHORIZED
        # All in one write, by a token that was made elsewhere.
        other = Client(address, greet=False)
        mine = packets.packet(packets.AUTH, token("old", OLD, b"you").encode())
        other.send(packets.hello(), mine, packets.asking(packets.REQUEST, 5, b"you", b"hey"))
        answer = other.response()
        assert (answer.request, answer.status, answer.payload) == (5, packets.OK, b"hey"), answer
        refused = (
            (EXPIRED, token("old", OLD, b"me", ttl=-10)),
            (FOREIGN, token("old", OLD, b"me", cluster=b"elsewhere")),
            (UNKNOWN_KEY, token("new", NEW, b"me")),
            (FORGED, token("old", NEW, b"me")),
            (FORGED, made.strip()[:-2] + ("AA" if made.strip()[-2:] != "AA" else "BA")),
            (MALFORMED, "let me in"),
        )
        for code, text in refused:
            late = Client(address)
            assert late.auth(text)[0] == code, (code, text)
            assert late.closed()
        rude = Client(address)
        rude.send(packets.asking(packets.REQUEST, 1, b"me", b"x"))
        assert rude.notice(packets.KICK)[0] == KICK_NO_AUTH and rude.closed()
        # Tools on the other address are asked nothing.
        assert Resp(gateway.resp)("CALL", "you", "x") == "x"
        counts(gateway, authenticated=2, unauthorized=2, unauthenticated=0)
        counts(gateway, kicked_token_forged=2, kicked_token_expired=1, kicked_no_auth=1)


def keys_are_replaced_by_a_signal(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo"))
        keys, (gateway, address) = start(fleet)
        stays = known(address, token("old", OLD, b"me"))

        def again(text, count):
            keys.write(text)
            gateway.kill(signal.SIGHUP)
            until("the keys are read again", lambda: gateway.log_has(f"keys={count}"))

        assert Client(address).auth(token("new", NEW, b"me"))[0] == UNKNOWN_KEY
        again(line("old", OLD) + line("new", NEW), 2)
        for name, secret in (("old", OLD), ("new", NEW)):
            known(address, token(name, secret, b"me")).close()
        again(line("new", NEW), 1)
        assert Client(address).auth(token("old", OLD, b"me"))[0] == UNKNOWN_KEY
        known(address, token("new", NEW, b"me")).close()
        # A file that is no good is named, with its line, and changes nothing.
        keys.write("# none\nnew hex:00\n")
        gateway.kill(signal.SIGHUP)
        until("it says why not", lambda: gateway.log_has(f"{keys.path}:2: a secret has at least 32 bytes"))
        known(address, token("new", NEW, b"me")).close()
        until("who was there stays", lambda: stays.ask(b"me", b"x").status == packets.OK)
        words = ["gateway", "--join", fleet.addresses, "--resp", "127.0.0.1:0", "--frames", "127.0.0.1:0"]
        code, _, err = fleet.run(*words, "--auth-keys", keys.path)
        assert code == 1 and f"{keys.path}:2: " in err, err


def strangers_are_few_and_go(binary, threads="1"):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ("--kind", "0:echo"))
        limits = ["--unauthenticated-address", "3", "--auth-time", "60s", "--threads", threads]
        keys, (few, address) = start(fleet, *limits)
        crowd = [Client(address) for _ in range(3)]
        last = Client(address, greet=False)
        assert last.notice(packets.GOAWAY)[0] > 0 and last.closed()
        assert len(crowd[0].auth(token("old", OLD, b"me"))) == 3  # makes room
        crowd.append(Client(address))
        counts(few, unauthenticated=3, refused_unauthenticated_address=1)
        # Who says nothing, or nothing that counts, is gone soon.
        _, address = more_gateway(fleet, "g2", keys, "--auth-time", "2s")
        silent, polite = Client(address, greet=False), Client(address)
        assert silent.closed()
        assert polite.notice(packets.KICK)[0] == KICK_NO_AUTH and polite.closed()


def threads_count_strangers_together(binary):
    strangers_are_few_and_go(binary, "3")


if __name__ == "__main__":
    main(
        [
            tokens_open_the_door,
            keys_are_replaced_by_a_signal,
            strangers_are_few_and_go,
            threads_count_strangers_together,
        ]
    )
