#!/usr/bin/env python3
"""Stolen certificates: what is said with each that its role may not say reaches nobody, is counted and logged
once; and the rows of docs/security.md of what its holder still can do."""
import re
import struct
import sys
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Resp, free_port, main, number_of, until
from hostile import (ANSWER, CALL, COMMAND, CONTROL, HELD, PUSH, RAFT, REQUEST, SCHEMA, SESSION, STATE, STATE_ACK, Listener,
                     Peer, answers_of, caller, encode, push, request, state, state_ack)
from secured import Secured

ADMIN = [name for name in SCHEMA["Admin"] if name != "tag"]
ENVELOPE = ("era", "source_incarnation", "target_incarnation", "version")
BODIES = [name for name in SCHEMA["Control"] if name not in ENVELOPE]
# What an honest one says to a coordinator, a node: docs/security.md.
TO_COORDINATOR = {
    "node": {"register_", "bye", "renew", "prepared", "refused", "stale", "poll", "draining", "get_config", "inspect_answer",
             "actors_answer", "operator_request_answer", "remember", "recall"},
    "gateway": {"get_config", "inspect_answer", "operator_request_answer"},
    "cli": {"admin"},
}
TO_NODE = {"node": {"adopted", "probe", "settle", "settled"}, "gateway": {"adopted"}}
NOTE_PUSH, NOTE_VALUES = 4, 11


def refused(port, role):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    return int(re.search(rf'^ringhold_link_messages_refused_total\{{role="{role}"\}} (\d+)', text, re.M)[1])


def newer_numbers(port, role):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    return int(re.search(rf'^ringhold_coordinator_newer_numbers_total\{{role="{role}"\}} (\d+)', text, re.M)[1])


def words(*arguments):
    """Arguments of a command, as bodies of requests have them."""
    return bytes([len(arguments)]) + b"".join(struct.pack("<I", len(a)) + a for a in arguments)


class Prey(Secured):
    """One coordinator, one node, one gateway, each with its figures, and a value."""

    def __enter__(self):
        self.pages = [free_port() for _ in range(3)]
        extra = [["--admin", f"127.0.0.1:{port}"] for port in self.pages]
        self.coordinators(1, extra=extra[0])
        self.prey = self.node("n1", extra[1])
        self.redis = Resp(self.gateway("g1", extra[2]).resp)
        self.settled(["n1"])
        assert self.redis("SET", "player", "gold") == "OK"
        return self

    def peer(self, role, name, to, certificate=None, **hello):
        """With the certificate of that role and name, unless another is given."""
        address = self.prey.fields["address"] if to == "node" else ("127.0.0.1", self.ports[1])
        stem = self.certificate(*(certificate or ("operator" if role == "cli" else role, name)))
        return Peer(address, role, name, stem, **hello)

    def state(self):
        """What no attack may change."""
        told = self.status()
        events = self.ask("events")
        return [(n["node"], n["state"], n["vnodes"]) for n in told["nodes"]], self.ask("coordinators", "list"), events


def heard(peer, last):
    """Frames that came until `last`, which must come, said yes; those before it."""
    frames = []

    def take(frame):
        frames.append(frame)
        return last(frame)

    assert peer.wait(take) is not None, peer.why
    return frames


def what_is_refused(fleet, peer, page, role, process, attacks, after, answered):
    """Say all attacks: none is answered, all are counted, each kind is logged once though it is said twice."""
    before, lines = refused(page, role), process.log_count("link message_refused")
    assert peer.up, peer.why
    for attack in attacks:
        attack()
    after()
    frames = heard(peer, answered)
    assert all(f.type == CONTROL and set(f.control) <= {"leader", *ENVELOPE} for f in frames[:-1]), frames
    assert refused(page, role) == before + len(attacks), (role, before, refused(page, role), len(attacks))
    assert peer.up, peer.why
    return process.log_count("link message_refused") - lines


def no_gateway_and_no_node_commands_the_coordinators(binary):
    with Prey(binary) as fleet:
        c1 = fleet.process("c1")
        before = fleet.state()
        # Who repeats himself is counted each time and logged once.
        with fleet.peer("gateway", "g9", "coordinator") as peer:
            attacks = [lambda: peer.control("admin", tag=1, events={"limit": 9})] * 100
            logged = what_is_refused(fleet, peer, fleet.pages[0], "gateway", c1, attacks, lambda: peer.control("get_config"),
                                     lambda f: "config" in f.control)
            assert logged == 1 and c1.log_count('peer=g9 role=gateway address=127.0.0.1') == 1, c1.tail()
        forged = "eve\n2026-01-01T00:00:00.000Z info coordinator forged \033[31m"
        with Listener() as elsewhere:
            for role, name in (("gateway", "g1"), ("node", "n1")):
                with fleet.peer(role, name, "coordinator") as peer:
                    attacks = [lambda w=w: peer.control("admin", tag=1, **{w: {}}) for w in ADMIN]
                    voters = [{"id": 1, "address": elsewhere.address}]
                    attacks += [lambda: peer.control("admin", tag=2, coordinators={"voters": voters, "by": forged})]
                    attacks += [lambda b=b: peer.control(b) for b in BODIES if b not in TO_COORDINATOR[role] | {"admin"}]
                    attacks += [lambda t=t: peer.frame(t) for t in (RAFT, REQUEST, ANSWER, STATE, STATE_ACK, PUSH)]
                    # Two bodies in one message, of which the last may be said.
                    hidden = encode("Control", {"admin": {"drain": {"name": "n1"}}, "get_config": {}})
                    attacks += [lambda: peer.frame(CONTROL, hidden)]
                    logged = what_is_refused(fleet, peer, fleet.pages[0], role, c1, attacks, lambda: peer.control("get_config"),
                                             lambda f: "config" in f.control)
                    assert logged < 20, logged  # a ration, of all peers together
                    print(f"# {role}: {len(attacks)} messages to a coordinator, none heard, {logged} lines of log")
            elsewhere.socket.settimeout(0)
            try:
                elsewhere.socket.accept()
                raise AssertionError("the leader dialled an address that a gateway named")
            except BlockingIOError:
                pass
        assert fleet.state() == before
        assert not c1.log_has("forged")


def a_gateway_speaks_as_no_actor_and_to_no_node_as_a_coordinator(binary):
    with Prey(binary) as fleet:
        with fleet.peer("gateway", "g1", "node", incarnation=64) as peer:
            notes = [bytes([NOTE_PUSH]) + b"forged", bytes([NOTE_VALUES, 1, 0, 0, 0, 0, 0])]
            attacks = [
                lambda: peer.records(REQUEST, request(id=b"player", gateway=64, flags=CALL, body=caller(0, b"bank") + b"x")),
                lambda: peer.records(REQUEST, request(id=b"player", gateway=64, chain=[7])),
                lambda: peer.records(REQUEST, request(id=b"player", gateway=64, flags=HELD)),
                lambda: peer.records(REQUEST, request(id=b"player", gateway=64, hops=1)),
                *[lambda n=n: peer.records(REQUEST, request(id=b"player", gateway=64, flags=SESSION, body=n)) for n in notes],
                # Behind a good one, in one frame.
                lambda: peer.records(REQUEST, request(id=b"a", gateway=64), request(id=b"a", gateway=64, chain=[7])),
                lambda: peer.records(STATE, state(1, 2)),
                lambda: peer.records(STATE_ACK, state_ack(1, 2)),
                lambda: peer.records(ANSWER, b""),
                lambda: peer.records(PUSH, push(1, 2)),
                lambda: peer.frame(RAFT, b"x"),
                *[lambda b=b: peer.control(b) for b in BODIES if b not in TO_NODE["gateway"]],
            ]
            mine = request(id=b"other", gateway=64, seq=9, base=9)
            what_is_refused(fleet, peer, fleet.pages[1], "gateway", fleet.prey, attacks, lambda: peer.records(REQUEST, mine),
                            lambda f: f.type == ANSWER and [a["seq"] for a in answers_of(f.body)] == [9])
            print(f"# gateway: {len(attacks)} messages to a node, none heard")
        with fleet.peer("node", "n2", "node") as peer:
            attacks = [lambda b=b: peer.control(b) for b in BODIES if b not in TO_NODE["node"]]
            attacks += [lambda: peer.frame(RAFT, b"x"), lambda: peer.records(PUSH, push(1, 2))]
            what_is_refused(fleet, peer, fleet.pages[1], "node", fleet.prey, attacks, lambda: peer.records(REQUEST, request(seq=9, base=9)),
                            lambda f: f.type == ANSWER)
            print(f"# node: {len(attacks)} messages to a node, none heard")
        assert fleet.redis("GET", "player") == "gold"
        assert fleet.redis("APPEND", "player", "!") == 5


def texts_are_plain_and_links_of_a_name_bounded(binary):
    with Prey(binary) as fleet:
        c1 = fleet.process("c1")
        before = fleet.ask("events")
        forged = "eve\n2026-01-01T00:00:00.000Z info coordinator forged"
        for role, name, body, fields in (
            ("cli", "tests", "admin", {"coordinators": {"voters": [{"id": 1, "address": "x"}], "by": forged}}),
            ("cli", "tests", "admin", {"drain": {"name": "n1", "by": forged}}),
            ("cli", "tests", "admin", {"remove": {"name": "n1", "reason": "\033[2J"}}),
            ("node", "n2", "register_", {"name": "n2", "address": "127.0.0.1:1\n", "nonce": 1}),
            ("node", "n2", "register_", {"name": "n2", "address": "127.0.0.1:1", "nonce": 1, "zone": "\u009b2J"}),
            ("node", "n2", "register_", {"name": "n2", "nonce": 1, "kinds": [{"number": 9, "name": "a\rb"}]}),
            ("node", "n2", "refused", {"txn": 1, "why": "\x07"}),
        ):
            with fleet.peer(role, name, "coordinator") as peer:
                peer.control(body, **fields)
                peer.ended()
        assert 1 <= c1.log_count("a text with control characters") <= 7, c1.tail(20)
        assert not c1.log_has("\n2026-01-01") and not c1.log_has("\033")
        assert fleet.ask("events") == before
        # What an operator types is made plain, and does not lose him his answer.
        code, _, err = fleet.run("node", "remove", "n9\nx", "--coordinators", fleet.addresses)
        assert code == 1 and "n9?x" in err, (code, err)
        peers = [fleet.peer("gateway", "g1", "coordinator", incarnation=64 * i) for i in range(1, 129)]
        try:
            assert [p.why for p in peers if not p.up] == ["the peer has as many links here as one process may have"], [p.why for p in peers]
            with urllib.request.urlopen(f"http://127.0.0.1:{fleet.pages[0]}/metrics", timeout=10) as page:
                assert b'link_refusals_total{reason="too_many"} 1\n' in page.read()
            assert c1.log_count("the peer has as many links") == 1
            with fleet.peer("gateway", "g2", "coordinator") as other:
                assert other.up, other.why
        finally:
            for p in peers:
                p.close()
        fleet.settled(["n1"])


def the_rows_of_what_a_stolen_certificate_can_do(binary):
    with Prey(binary) as fleet:
        version = number_of(fleet.status()["version"])
        # Of a gateway: it asks any actor what any player may, is told the ring, and ends sessions.
        with fleet.peer("gateway", "g1", "coordinator", incarnation=64) as peer:
            config = peer.ask("get_config", "config")["config"]
            assert [m["name"] for m in config["members"]] == ["n1"]
            version = config["version"]
            # What it says of a ring of the future stops nothing for long.
            peer.control("get_config", have_version=2**64 - 1)
            until("it is counted", lambda: newer_numbers(fleet.pages[0], "gateway") == 1)
            assert fleet.process("c1").log_count("database_went_back gateway=g1 knows=16777215.1099511627775") == 1
            fleet.tell("node", "weight", "n1", "3")
            version = number_of(fleet.status()["version"])
        with fleet.peer("gateway", "g1", "node", incarnation=64) as peer:
            take = words(b"GET", b"player")
            peer.records(REQUEST, request(id=b"player", gateway=64, flags=COMMAND, body=take, first=version, version=version))
            answer = answers_of(peer.wait(lambda f: f.type == ANSWER).body)[0]
            assert answer["code"] == 0 and answer["body"].endswith(b"gold"), answer
            kick = bytes([9]) + struct.pack("<I", 1) + b"out"
            peer.records(REQUEST, request(id=b"player", gateway=64, flags=SESSION, body=kick, seq=2, first=version, version=version))
            assert answers_of(peer.wait(lambda f: f.type == ANSWER).body)[0]["code"] == 0
        # Of a node: it registers under its own name, and then calls any actor in the name of any other.

        def call(incarnation):
            body = caller(0, b"bank") + words(b"SET", b"player", b"robbed")
            with fleet.peer("node", "n2", "node", incarnation=incarnation) as peer:
                peer.records(REQUEST, request(id=b"player", gateway=incarnation, session=7, flags=CALL | COMMAND, body=body,
                                              first=version, version=version))
                answer = answers_of(peer.wait(lambda f: f.type == ANSWER).body)[0]
            return answer["code"], answer["body"]

        assert call(7) == (3, b"")  # BUSY: no configuration has it
        with fleet.peer("node", "n2", "coordinator") as peer:
            fields = {"address": "127.0.0.1:1", "boot_id": b"b" * 16, "data_uuid": b"u" * 16, "nonce": 1, "weight": 1,
                      "role": "jail", "kinds": [{"number": 9, "name": "guard"}]}  # which gives it nothing of n1's
            peer.control("register_", name="n1", **fields)
            told = peer.wait(lambda f: "reg_refused" in f.control).control["reg_refused"]
            assert told["reason"] == "the name is not the one that the link belongs to", told
            incarnation = peer.ask("register_", "reg_ok", name="n2", **fields)["incarnation"]
            until("n1 knows it", lambda: call(incarnation) == (0, b"sOK"))
        assert fleet.redis("GET", "player") == "robbed"
        # It may be nobody else, whatever its hello says.
        for role, name, to, certificate, why in (
            ("node", "n2", "coordinator", ("node", "n1"), "the certificate is for node n1, the hello for node n2"),
            ("coordinator", "1", "node", ("node", "n1"), "the certificate is for node n1, the hello for coordinator 1"),
            ("cli", "eve", "coordinator", ("gateway", "g1"), "the certificate is for gateway g1, the hello for operator eve"),
            ("cli", "eve", "node", ("operator", "tests"), "cli and node have no links with each other: ask a coordinator"),
            ("gateway", "g1", "node", ("operator", "tests"), "the certificate is for operator tests, the hello for gateway g1"),
        ):
            with fleet.peer(role, name, to, certificate) as peer:
                assert peer.ended() == why, peer.why
        # Of an operator, and of a coordinator as one: all commands.
        for certificate in (("operator", "tests"), ("coordinator", "1")):
            with fleet.peer("cli", "eve", "coordinator", certificate) as peer:
                reply = peer.ask("admin", "admin_reply", tag=1, events={"limit": 9})
                assert [e["command"] for e in reply["events"]], reply
                weighed = peer.ask("admin", "admin_reply", tag=2, weight={"name": "n2", "weight": 2, "by": certificate[0]})
                assert not weighed.get("error"), weighed
        events = until("both are in the history", lambda: [e for e in fleet.ask("events") if e["subject"] == "node n2" and e["by"]])
        assert all(re.fullmatch(r"(operator as operator tests|coordinator as coordinator 1) from 127\.0\.0\.1:\d+", e["by"]) for e in events), events
        # Of a node: it says that the coordinators are an old copy, and they change nothing until they are started again.
        with fleet.peer("node", "n2", "coordinator") as peer:
            peer.control("poll", version=2**64 - 1)
            until("it is counted", lambda: newer_numbers(fleet.pages[0], "node") == 1)
            assert fleet.process("c1").log_count("database_went_back node=n2 knows=16777215.1099511627775") == 1
        refusal = (1, "", "ringhold: the coordinators' database went back (docs/recovery.md#went-back)\n")
        where = ("--coordinators", fleet.addresses, "--cluster", fleet.cluster)
        assert fleet.run("node", "weight", "n1", "4", *where) == refusal
        fleet.process("c1").kill()
        fleet.coordinator(1, extra=["--admin", f"127.0.0.1:{fleet.pages[0]}"])
        fleet.tell("node", "weight", "n1", "4")


main([
    no_gateway_and_no_node_commands_the_coordinators,
    a_gateway_speaks_as_no_actor_and_to_no_node_as_a_coordinator,
    texts_are_plain_and_links_of_a_name_bounded,
    the_rows_of_what_a_stolen_certificate_can_do,
])
