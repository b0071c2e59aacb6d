#!/usr/bin/env python3
"""Rooms push to their groups while every node is drained in turn: each member gets each push once, and in order.

Rooms and members move by the thousand. PUSHES=N pushes at the least (500000), DRAINS=N (8).

Alone: its 640 clients have to read as fast as they are told, or the gateways cut them off.
"""
import os
import selectors
import struct
import sys
import time

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, main, until
from packets import Client

ROOMS, MEMBERS, TICK_MS = 40, 16, 15
PUSHES = int(os.environ.get("PUSHES", "500000"))
DRAINS = int(os.environ.get("DRAINS", "8"))
NODES = ["n1", "n2", "n3"]


class Members:
    """Their clients. Each is of one room, whose pushes are numbered; what is acknowledged is let go."""

    def __init__(self, gateways):
        self.selector = selectors.DefaultSelector()
        self.all = []
        self.pushes = self.late = self.lost = 0
        for i in range(ROOMS * MEMBERS):
            member = Client(gateways[i % len(gateways)].fields["frames"].rsplit(":", 1))
            member.name, member.room, member.rest = f"m{i}", i % ROOMS, b""
            member.sequence = member.number = 0
            member.keep(member.name.encode())
            assert not member.kept
            member.socket.setblocking(False)
            self.selector.register(member.socket, selectors.EVENT_READ, member)
            self.all.append(member)

    def take(self, seconds):
        for key, _ in self.selector.select(seconds):
            self.hear(key.data)

    def hear(self, m):
        more = m.socket.recv(1 << 18)
        assert more, f"{m.name} is cut off"
        data, at = m.rest + more, 0
        while len(data) - at >= 4:
            size = int.from_bytes(data[at + 1 : at + 4], "big")
            if len(data) - at < 4 + size:
                break
            self.packet(m, data[at], data[at + 4 : at + 4 + size])
            at += 4 + size
        m.rest = data[at:]
        m.send(packets.ack(m.sequence, 1))

    def packet(self, m, type_, body):
        if type_ == packets.PING:
            m.send(packets.packet(packets.PONG, body))
            return
        assert type_ == packets.PUSH, (m.name, type_, body)
        sequence, number = struct.unpack(">Q", body[:8])[0], int(body[8:])
        assert sequence == m.sequence + 1, (m.name, sequence, m.sequence)
        m.sequence = sequence
        self.pushes += 1
        if number < m.number:
            self.late += 1
        m.number = max(m.number, number)


def pushes_stay_in_order_while_all_are_drained(binary):
    plugin = ["--actor", os.path.join(os.path.dirname(os.path.abspath(binary)), "tests", "plugins", "room.so")]
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        lost = fleet.data("lost")
        env = {"RINGHOLD_INJECT_LOSE": lost}
        for name in NODES:
            fleet.node(name, plugin, env)
        fleet.settled(NODES)
        gateways = [fleet.gateway(name, ["--frames", "127.0.0.1:0"]) for name in ("g1", "g2")]
        ops = Resp(gateways[0].resp)
        members = Members(gateways)
        begun = time.monotonic()
        for room in range(ROOMS):
            names = [m.name for m in members.all if m.room == room]
            for i in range(0, len(names), 40):
                assert ops("CALL", f"room{room}", "join " + " ".join(names[i : i + 40])) == "0"
            assert ops("CALL", f"room{room}", f"tick {TICK_MS}") == "0"

        loses = False

        def hears(check):
            """until(), while the members hear. A room that was handed over pushes when it was asked something."""

            def once():
                nonlocal loses
                loses = not loses
                with open(lost, "w") as file:
                    file.write("commit-received\n" if loses else "")
                end = time.monotonic() + 0.1
                while time.monotonic() < end:
                    members.take(0.02)
                ops.send(*(("CALL", f"room{room}", "last") for room in range(ROOMS)))
                for _ in range(ROOMS):
                    ops.read()
                return check()

            return once

        def is_settled(names):
            s = fleet.status()
            owners = {n["node"] for n in s["nodes"] if n["vnodes"] > 0}
            return owners == set(names) and not (s["pending"] or s["planned"] or s["planning"])

        for i in range(DRAINS):
            name = NODES[i % len(NODES)]
            rest = [n for n in NODES if n != name]
            process = fleet.process(name)
            process.kill(15)
            until(f"{name} is empty", hears(lambda: not process.running), pause=0)
            until(f"{name} has left", hears(lambda: is_settled(rest)), pause=0)
            fleet.node(name, plugin, env)
            until(f"{name} is back", hears(lambda: is_settled(NODES)), pause=0)
            print(f"# drain {i}: {time.monotonic() - begun:.1f} s {members.pushes} late {members.late}", flush=True)
        until("all was pushed", hears(lambda: members.pushes >= PUSHES), pause=0)
        for room in range(ROOMS):
            assert ops("CALL", f"room{room}", "tick 0") == "0"
        last = [ops("CALL", f"room{room}", "last") for room in range(ROOMS)]
        until("all is heard", hears(lambda: all(m.sequence == int(last[m.room]) for m in members.all)), pause=0)
        print(
            f"# {members.pushes} pushes to {len(members.all)} members of {ROOMS} rooms in {DRAINS} drains, "
            f"{time.monotonic() - begun:.0f} s: {members.late} late"
        )
        assert members.late == 0, f"{members.late} of {members.pushes} pushes came late"


main([pushes_stay_in_order_while_all_are_drained])
