#!/usr/bin/env python3
"""What a Redis user sees at the gateway, also after the owner was drained."""
import subprocess
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, RespError, main, number_of, pairs, until


def redis_cli(address, *words):
    done = subprocess.run(
        ["redis-cli", "-h", address[0], "-p", str(address[1]), *words],
        capture_output=True,
        text=True,
        timeout=30,
    )
    return done.stdout.strip()


def redis_cli_answers_as_a_user_expects(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1")
        fleet.node("n2")
        at = fleet.gateway("g1").resp
        assert redis_cli(at, "PING") == "PONG"
        assert redis_cli(at, "SET", "name", "ada lovelace") == "OK"
        assert redis_cli(at, "GET", "name") == "ada lovelace"
        assert redis_cli(at, "GET", "nothing") == ""
        assert [redis_cli(at, "INCR", "n") for _ in range(3)] == ["1", "2", "3"]
        assert redis_cli(at, "INCRBY", "n", "39") == "42"
        assert redis_cli(at, "APPEND", "name", "!") == "13"
        assert redis_cli(at, "STRLEN", "name") == "13"
        assert redis_cli(at, "EXISTS", "name") == "1"
        assert redis_cli(at, "DEL", "name") == "1"
        assert "not an integer" in redis_cli(at, "SET", "w", "x") + redis_cli(at, "INCR", "w")
        assert "unknown command" in redis_cli(at, "FLUSHDB")
        assert "ringhold_version" in redis_cli(at, "INFO")
        assert redis_cli(at, "WHERE", "n").split()[0] == "node"
        assert redis_cli(at, "-3", "GET", "nothing") == ""


def a_drained_owner_hands_values_over_in_memory(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(3)
        nodes = {name: fleet.node(name) for name in ("n1", "n2", "n3")}
        fleet.settled(nodes)
        redis = Resp(fleet.gateway("g1").resp)
        for i in range(500):
            assert redis("SET", f"k{i}", f"value {i}") == "OK"
        before = pairs(redis("WHERE", "k7"))
        owner = before["node"]
        fleet.tell("node", "drain", owner)
        wish = [e for e in fleet.ask("events", "--limit", "1000") if e["command"] == "drain"][-1]
        assert "@" in wish["by"] and " from 127.0.0.1" in wish["by"], wish
        fleet.settled(set(nodes) - {owner})
        for i in range(500):
            assert redis("GET", f"k{i}") == f"value {i}"
        after = pairs(redis("WHERE", "k7"))
        assert after["node"] != owner
        assert int(after["generation"]) > int(before["generation"]), (before, after)
        asked = fleet.ask("where", "0/k7")
        assert asked["node"] == after["node"] and number_of(asked["generation"]) == int(after["generation"])


def a_terminated_node_drains_and_exits_0(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        nodes = {name: fleet.node(name) for name in ("n1", "n2")}
        fleet.settled(nodes)
        redis = Resp(fleet.gateway("g1").resp)
        for i in range(200):
            redis("INCRBY", f"k{i}", i)
        nodes["n1"].kill(15)
        assert nodes["n1"].wait() == 0, nodes["n1"].tail()
        assert [redis("INCRBY", f"k{i}", 0) for i in range(200)] == list(range(200))
        until("its name is free", lambda: [n["node"] for n in fleet.status()["nodes"]] == ["n2"])


def call_and_tell_reach_an_actor(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("n1", ["--actor", "echo"])
        redis = Resp(fleet.gateway("g1").resp)
        assert redis("CALL", "someone", "hello") == "hello"
        assert redis("TELL", "someone", "hello") == "OK"
        big = "x" * 1000000
        assert redis("CALL", "someone", big) == big
        try:
            redis("CALL", "someone")
            raise AssertionError("an argument is missing")
        except RespError as error:
            assert "wrong number of arguments" in str(error)


def deleted_keys_give_their_memory_back(binary):
    if "address" in binary:
        print("# the address sanitizer never gives memory back")
        return
    keys, at_once = 50000, 500
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        node = fleet.node("n1")
        redis = Resp(fleet.gateway("g1").resp)
        base = node.rss()

        def each(word, *arguments):
            for i in range(0, keys, at_once):
                redis.send(*((word, f"key{k}", *arguments) for k in range(i, i + at_once)))
                for _ in range(at_once):
                    redis.read()

        each("SET", "x" * 100)
        grown = node.rss() - base
        each("DEL")
        until("no actor is left", lambda: fleet.ask("node", "list")[0]["actors"] == 0)
        # What copies of these requests are answered by stays for two minutes.
        until("most of it is given back", lambda: node.rss() - base < 0.75 * grown)


def a_role_without_nodes_is_named(binary):
    """The first waits while the fleet starts; all that come later are told at once, and those of a role with nodes are served."""
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        fleet.node("m1", ["--role", "match", "--kind", "3:kv"])
        fleet.settled(["m1"])
        at = fleet.gateway("g1").resp
        for _ in range(3):
            said = redis_cli(at, "GET", "ada")
            assert said.startswith("NOKIND no node of the role 'default' is in the fleet"), said
        assert redis_cli(at, "INCR", "@3/ada") == "1"


main(
    [
        a_role_without_nodes_is_named,
        redis_cli_answers_as_a_user_expects,
        a_drained_owner_hands_values_over_in_memory,
        a_terminated_node_drains_and_exits_0,
        call_and_tell_reach_an_actor,
        deleted_keys_give_their_memory_back,
    ]
)
