#!/usr/bin/env python3
"""Certificates of a node and of a gateway that were stolen: neither becomes another node or gateway, on either end of
a link; neither writes another's state, asks or answers in its name; and no record of theirs ends a node."""
import re
import struct
import sys
import threading
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Resp, free_port, main, number_of, until
from hostile import (ANSWER, COMMAND, REQUEST, SESSION, STATE, STATE_ACK, Listener, Peer, answer, answers_of, request,
                     state, state_ack)
from secured import Secured

KEYS = 200
NOBODY = 1 << 50  # an incarnation that no configuration has
KV = 0


class Attacked(Secured):
    """n1 and n2 have all ids; certificates of n3 and g2, which never were started, are in other hands."""

    def __enter__(self):
        self.admin = {}
        self.coordinators(1)
        for name in ("n1", "n2"):
            self.node(name, self.page(name))
        self.gateway("g1", self.page("g1"))
        self.settled(["n1", "n2"])
        self.redis = Resp(self.process("g1").resp)
        for i in range(KEYS):
            assert self.redis("SET", f"k{i}", f"v{i}") == "OK"
        self.n3, self.g2 = self.certificate("node", "n3"), self.certificate("gateway", "g2")
        return self

    def page(self, name):
        self.admin[name] = free_port()
        return ["--admin", f"127.0.0.1:{self.admin[name]}"]

    def count(self, name, metric, label):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin[name]}/metrics", timeout=10) as page:
            row = re.search(rf'^{metric}{{\w+="{label}"}} (\d+)', page.read().decode(), re.M)
        return int(row[1]) if row else 0

    def refused(self, name):
        return self.count(name, "ringhold_link_refusals_total", "identity")

    def misused(self, name, record):
        return self.count(name, "ringhold_node_misused_records_total", record)

    def address(self, name):
        return self.process(name).fields["address"]

    def incarnation(self, name):
        return number_of(self.process(name).fields["incarnation"])

    def impostor(self, to, **hello):
        return Peer(self.address(to), "node", "n3", self.n3, **hello)

    def keeps_all(self):
        for i in range(KEYS):
            assert self.redis("GET", f"k{i}") == f"v{i}", i


def acknowledge_all(peer):
    """Take each state that comes as if it were for us."""

    def run():
        while (frame := peer.wait(lambda f: f.type == STATE, timeout=600)) is not None:
            at = 0
            while at < len(frame.body):
                txn, source, index = struct.unpack_from("<QQI", frame.body, at)
                id_size, chunk_size = struct.unpack_from("<BI", frame.body, at + 35)
                at += 40 + id_size + chunk_size
                peer.records(STATE_ACK, state_ack(txn, source, index + 1))

    threading.Thread(target=run, daemon=True).start()


def a_certificate_is_no_other_node(binary):
    with Attacked(binary) as fleet:
        peers = [fleet.impostor("n1", incarnation=fleet.incarnation("n2")) for _ in range(3)]
        for peer in peers:
            acknowledge_all(peer)
        fleet.tell("node", "drain", "n1", "--wait", "30")
        fleet.keeps_all()
        for peer in peers:
            assert "gives its incarnation to another node" in peer.ended(), peer.why
        assert fleet.refused("n1") == 3
        assert fleet.process("n1").log_count("gives its incarnation to another node") == 1
        with Peer(fleet.address("n1"), "gateway", "g2", fleet.g2, incarnation=fleet.incarnation("n1")) as peer:
            assert "its id is a node's incarnation" in peer.ended(), peer.why
        assert fleet.refused("n1") == 4


def nobody_writes_state_but_the_source(binary):
    with Attacked(binary) as fleet:
        over = threading.Event()

        def floods(peer, type, records):
            while not over.wait(0.002) and peer.up:
                try:
                    peer.records(type, *records)
                except OSError:  # as the node has ended
                    return

        n1, n2 = fleet.incarnation("n1"), fleet.incarnation("n2")
        version = number_of(fleet.status()["version"])
        numbers = range(version, version + 600)  # of transactions: one counter gives both
        to_n2, to_n1 = fleet.impostor("n2", incarnation=NOBODY), fleet.impostor("n1", incarnation=NOBODY)
        assert to_n2.up and to_n1.up, (to_n2.why, to_n1.why)  # it may be that the configuration is late
        threads = [
            threading.Thread(target=floods, args=(to_n2, STATE, [state(t, n1, id=b"k1", chunk=b"FORGED") for t in numbers])),
            threading.Thread(target=floods, args=(to_n1, STATE_ACK, [state_ack(t, n1, 1, 1) for t in numbers])),
            threading.Thread(target=floods, args=(to_n1, ANSWER, [answer(gateway=n1, session=s, body=b"FORGED") for s in range(99)])),
        ]
        for thread in threads:
            thread.start()
        until("they are counted", lambda: fleet.misused("n2", "state") and fleet.misused("n1", "answer"))
        fleet.tell("node", "drain", "n1", "--wait", "30")
        over.set()
        for thread in threads:
            thread.join()
        fleet.keeps_all()
        assert fleet.misused("n2", "state") > 500
        assert fleet.process("n2").log_count("record=state ") == 1
        assert fleet.process("n2").log_has("peer=n3 role=node"), fleet.process("n2").tail()
        # What a node asks that no configuration names is not run: it is told to ask again, by its own link alone.
        to_n2.records(REQUEST, request(kind=KV, id=b"k2", gateway=NOBODY, flags=COMMAND, body=command("DEL")))
        frame = to_n2.wait(lambda f: f.type == ANSWER)
        assert [a["code"] for a in answers_of(frame.body)] == [3], frame  # BUSY
        fleet.keeps_all()


def command(*words):
    return bytes([len(words)]) + b"".join(struct.pack("<I", len(w)) + w.encode() for w in words)


def a_gateway_speaks_for_itself(binary):
    with Attacked(binary) as fleet:
        mine, name = 0x7700, "n1"
        key = next(f"k{i}" for i in range(KEYS) if fleet.ask("where", f"0/k{i}")["node"] == name).encode()
        with Peer(fleet.address(name), "gateway", "g2", fleet.g2, incarnation=mine) as peer:
            assert peer.up, peer.why

            def ask(seq, **fields):
                peer.records(REQUEST, request(**{"kind": KV, "id": key, "session": 5, "seq": seq, "gateway": mine, "flags": COMMAND,
                                                 "version": 1, "first": 1 << 60, "body": command("DEL"), **fields}))

            lost = struct.pack("<BQQB", 3, mine + 64, 1, 1)  # NOTE_LOST of another gateway's client
            ask(1, gateway=mine + 64)
            ask(2, gateway=fleet.incarnation("n2"))
            ask(3, flags=SESSION, body=lost)
            ask(6, body=command("GET"))
            frame = peer.wait(lambda f: f.type == ANSWER)
            got = answers_of(frame.body)
            assert [(a["seq"], a["code"]) for a in got] == [(6, 0)] and key.replace(b"k", b"v") in got[0]["body"], got
            assert (fleet.misused(name, "request"), fleet.misused(name, "note")) == (2, 1)
            assert fleet.process(name).log_count("record=request ") == 1
        # A record that could not be ours ends its link, and nothing else.
        for record in (request(seq=0, gateway=mine), request(seq=3, prev=3, gateway=mine), request(copy=0, gateway=mine)):
            with Peer(fleet.address(name), "gateway", "g2", fleet.g2, incarnation=mine) as peer:
                peer.records(REQUEST, record)
                peer.ended()
        fleet.keeps_all()
        assert fleet.process(name).running and fleet.process(name).log_has("it sent a record that can't be decoded")


def whoever_answers_at_an_address_is_asked_for_its_name(binary):
    with Attacked(binary) as fleet:
        address, incarnation = fleet.address("n2"), fleet.incarnation("n2")
        fleet.process("n2").kill()
        fleet.process("n2").wait()
        host, port = address.rsplit(":", 1)
        asked = []

        def asks():
            redis = Resp(fleet.process("g1").resp)
            redis.send(*(("GET", f"k{i}") for i in range(KEYS)))
            asked.extend(redis.read() for _ in range(KEYS))

        thread = threading.Thread(target=asks)
        with Listener(host, int(port), fleet.n3) as listener:
            thread.start()
            for _ in range(3):  # the gateway, the other node, and again
                with listener.accept("node", "n3", incarnation=incarnation) as peer:
                    assert not peer.up and peer.ended(), "it is taken for n2"
            until("it is counted", lambda: fleet.refused("g1") + fleet.refused("n1") >= 3)
        assert fleet.refused("g1") >= 1 and fleet.process("g1").log_count("the process at this address is not the expected one") == 1
        thread.join()
        assert all(value in (None, f"v{i}") for i, value in enumerate(asked)), asked


main([
    a_certificate_is_no_other_node,
    nobody_writes_state_but_the_source,
    a_gateway_speaks_for_itself,
    whoever_answers_at_an_address_is_asked_for_its_name,
])
