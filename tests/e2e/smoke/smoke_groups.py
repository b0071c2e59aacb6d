#!/usr/bin/env python3
"""A room pushes the same to all its members, wherever they live: each gets it once and in order, while both move."""
import os
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, pairs, until
from packets import OK, Client

MEMBERS = 40
NUMBERS = 80  # said in each phase, and more
NODES = ["n1", "n2", "n3"]


def plugin(fleet):
    return ["--actor", os.path.join(os.path.dirname(fleet.binary), "tests", "plugins", "room.so")]


class Player:
    """A member's client."""

    def __init__(self, name, gateway):
        self.name = name
        self.sequence = 0
        self.line = Client(gateway.fields["frames"].rsplit(":", 1))
        self.session = self.line.keep(name)

    def hear(self):
        sequence, payload = self.line.push()
        assert sequence == self.sequence + 1, (self.name, sequence, self.sequence)
        self.sequence = sequence
        return payload

    def hear_through(self, number):
        """The numbers that it is pushed, to this one."""
        numbers = []
        while not numbers or numbers[-1] < number:
            numbers.append(int(self.hear()))
        return numbers

    def come_back(self, gateway):
        self.line = Client(gateway.fields["frames"].rsplit(":", 1))
        answer = self.line.resume(self.name, self.session.name, self.sequence)
        assert answer.status == OK, answer


def last(ops):
    return int(ops("CALL", "room", "last"))


def everybody_hears_everything_once_while_all_move(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name, plugin(fleet))
        fleet.settled(["n1", "n2"])
        gateways = [fleet.gateway(name, ["--frames", "127.0.0.1:0"]) for name in ("g1", "g2")]
        ops = Resp(gateways[0].resp)
        names = [f"m{i}" for i in range(MEMBERS)]
        players = [Player(name.encode(), gateways[i % 2]) for i, name in enumerate(names)]
        assert ops("CALL", "room", "join " + " ".join(names)) == "0"
        assert ops("CALL", "room", "join nobody") == "0"  # no client, and asleep
        assert int(ops("CALL", "room", "count")) == MEMBERS + 1

        # To all, and to no one else.
        assert ops("CALL", "room", "leave m0") == "0"
        assert ops("CALL", "room", "cast hello") == "0"
        assert [p.hear() for p in players[1:]] == [b"hello"] * (MEMBERS - 1)
        assert ops("CALL", "room", "join m0") == "0"

        # Broadcasts and what is sent to each by turns, while the members' nodes change.
        ops("CALL", "room", "tick 10")
        fleet.node("n3", plugin(fleet))
        fleet.settled(NODES)
        owner = pairs(ops("WHERE", "room"))["node"]
        other, stays = (n for n in NODES if n != owner)
        before = last(ops)
        fleet.tell("node", "drain", other)
        fleet.settled([owner, stays])
        until("more was said", lambda: last(ops) > before + NUMBERS)

        # Then the room's own, while one of them is away.
        middle = last(ops)
        heard = [p.hear_through(middle) for p in players]
        players[1].line.close()
        fleet.tell("node", "drain", owner)
        fleet.settled([stays])
        until("more was said", lambda: last(ops) > middle + NUMBERS)
        players[1].come_back(gateways[0])
        ops("CALL", "room", "tick 0")
        end = last(ops)
        for player, numbers in zip(players, heard):
            numbers += player.hear_through(end)
            assert sorted(numbers) == list(range(1, end + 1)), (player.name, numbers)
        print(f"# {MEMBERS} members heard {end} each, lost 0, duplicated 0")


main([everybody_hears_everything_once_while_all_move])
