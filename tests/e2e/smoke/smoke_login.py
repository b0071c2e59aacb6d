#!/usr/bin/env python3
"""Players log in at an actor: examples/lua/login.lua, what it refuses, tokens that are given, and nobody there."""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, free_port, main, until
from packets import Client
from smoke_auth import Keys, figures, line
from smoke_clients import Player, Tcp

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.normpath(os.path.join(HERE, "..", "..", "examples", "lua", "login.lua"))
REFUSED = 112
ACCOUNT, PLAYER = 11, 12


def gateway(fleet, name, *more, port=0):
    g = fleet.gateway(name, ["--frames", f"127.0.0.1:{port}", "--auth-kind", "10", *more])
    return g, tuple(g.fields["frames"].rsplit(":", 1))


def log_in(address, shown):
    """Until somebody hosts the login: who that is, and the token that was given; or the kick."""
    answer = []

    def once():
        client = Client(address)
        assert client.ack.flags == packets.ACK_AUTH
        client.send(packets.packet(packets.AUTH, shown))
        type_, body = client.wait(packets.AUTH_OK, packets.KICK, packets.GOAWAY)
        answer[:] = [type_, body, client]
        if type_ == packets.GOAWAY:
            assert int.from_bytes(body[:4], "big") > 0 and client.closed(), body
        return type_ != packets.GOAWAY

    until("somebody says who it is", once)
    return answer


def who(body):
    size = body[10]
    rest = body[11 + size :]
    token = rest[2:]
    assert not rest or int.from_bytes(rest[:2], "big") == len(token), rest
    return int.from_bytes(body[8:10], "big"), body[11 : 11 + size], token


def an_actor_says_who_a_client_is(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--lua", SCRIPT])
        keys = Keys(fleet, "keys")
        keys.write(line("k1", b"s" * 32))
        plain, without = gateway(fleet, "g1")
        _, first = gateway(fleet, "g2", "--auth-keys", keys.path)
        _, second = gateway(fleet, "g3", "--auth-keys", keys.path)
        type_, body, client = log_in(first, b"ada:secret")
        assert type_ == packets.AUTH_OK, body
        kind, name, token = who(body)
        assert (kind, name) == (ACCOUNT, b"ada") and token.startswith(b"rh1.k1."), body
        assert client.ask(b"ada", b"who", kind=ACCOUNT).payload == b"ada"
        assert client.ask(b"ada", b"check guess", kind=ACCOUNT).status == packets.ACTOR_FAILED
        assert client.ask(b"eve", b"who", kind=ACCOUNT).status == packets.UNAUTHORIZED
        assert client.bind(b"ada", kind=ACCOUNT).status == packets.OK and client.push() == (1, b"hello ada")
        # The token opens another gateway that has the key, and needs no actor.
        other = Client(second)
        assert other.auth(token.decode())[1:] == (ACCOUNT, b"ada")
        # One without keys gives none, and takes credentials only.
        type_, body, _ = log_in(without, b"bob:other")
        assert type_ == packets.AUTH_OK and who(body) == (ACCOUNT, b"bob", b""), body
        for shown in (b"ada:guess", b"nonsense", b"", b"x" * 1024, token):
            type_, body, client = log_in(without, shown)
            assert type_ == packets.KICK and int.from_bytes(body[:4], "big") == REFUSED, (shown, body)
            assert client.closed()
        until(
            "all is counted",
            lambda: {"logins_ok": 1, "logins_refused": 5, "kicked_login_refused": 5, "logins_under_way": 0}.items()
            <= figures(plain).items(),
        )


def bound(g):
    return "bound_clients:1" in Resp(g.resp)("INFO", "sessions")


def kill_whose(gateways):
    """Kill the gateway that has it bound; the other one."""
    until("a gateway has it bound", lambda: any(bound(g) for g in gateways))
    at, other = gateways if bound(gateways[0]) else reversed(gateways)
    at.kill()
    return other


def two_gateways(fleet):
    """A node with the logins, and two gateways of one key: these, and their addresses."""
    fleet.coordinators(1)
    fleet.node("n1", ["--lua", SCRIPT])
    keys = Keys(fleet, "keys")
    keys.write(line("k1", b"s" * 32))
    ports = [free_port(), free_port()]
    gateways = [gateway(fleet, f"g{i}", "--auth-keys", keys.path, port=p)[0] for i, p in enumerate(ports)]
    return gateways, [f"127.0.0.1:{p}" for p in ports]


def clients_log_in_once(binary):
    for program in Tcp().programs(binary):
        with Fleet(binary) as fleet:
            gateways, addresses = two_gateways(fleet)
            with Player(program, addresses, ACCOUNT, "ada", "ada:secret") as player:
                assert player.next("known") == f"known {ACCOUNT} ada"
                assert player.next("bound") == "bound afresh"
                assert player.next("push") == "push 1 lost 0 hello ada"
                other = kill_whose(gateways)
                assert player.next("known") == f"known {ACCOUNT} ada"
                assert player.next("bound") == "bound again"
                assert player.ask("who") == "answer OK ada"
                counted = figures(other)
                assert (counted["authenticated"], counted["logins_ok"]) == (1, 0), counted
                player.leave()


def accounts_choose_a_player(binary):
    """Login, account, rebind, player, its gateway killed, and the player resumed elsewhere."""
    for program in Tcp().programs(binary):
        with Fleet(binary) as fleet:
            gateways, addresses = two_gateways(fleet)
            with Player(program, addresses, ACCOUNT, "ada", "ada:secret") as player:
                assert player.next("push") == "push 1 lost 0 hello ada"
                player.say("play mage")
                # The push that lets it go on may come before the answer, or behind it.
                assert player.next("rebound") == f"rebound {PLAYER} ada/mage"
                assert player.next("bound") == "bound afresh"
                player.hear("answer OK go on as mage", "push 1 lost 0 you are ada/mage")
                assert player.ask("step") == "answer OK 1"
                player.hear("push 2 lost 0 step 1")
                other = kill_whose(gateways)
                assert player.next("known") == f"known {PLAYER} ada/mage"
                assert player.next("bound") == "bound again"
                assert player.ask("step") == "answer OK 2"
                player.hear("push 3 lost 0 step 2")
                assert Resp(other.resp)("CALL", "@11/ada", "who") == "ada"
                player.leave()


if __name__ == "__main__":
    main([an_actor_says_who_a_client_is, clients_log_in_once, accounts_choose_a_player])
