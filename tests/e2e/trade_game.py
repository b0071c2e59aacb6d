"""The trade example of hosts/, in whatever language, in a fleet: for smoke_host_protocol.py (Go), smoke_host_python.py and
smoke_host_node.py, whose Game says how a node and its host are started.

    class Game(TradeGame):
        def node(self, name): ...
        def host(self, name): ...

    game = Game(fleet, "n1")
    game("ann", "add sword 2")          # the answer; game.error(): the text of one that is an error
    game.bound("bob").read()            # what bob's client is pushed
    gives_and_pushes(game)              # all that players and rooms can do
"""
import os

from fleet import Resp, refused, succeeds, until


class TradeGame:
    """One coordinator, a gateway, nodes with a host each, and one store."""

    def __init__(self, fleet, *names):
        self.fleet = fleet
        fleet.coordinators(1, extra=["--lease", "1s", "--election-ms", "300"])
        for name in names:
            self.node(name)
            self.host(name)
        self.gateway = fleet.gateway("g1", ["--deadline-ms", "30000"]).resp
        self.redis = Resp(self.gateway)

    def node(self, name):
        raise NotImplementedError

    def host(self, name):
        raise NotImplementedError

    def __call__(self, id, payload):
        return self.redis("CALL", id, payload)

    def error(self, id, payload):
        return refused(self.redis, "CALL", id, payload)

    def bound(self, id):
        client = Resp(self.gateway)
        assert client("BIND", id) == "OK"
        return client

    def has_ended(self, *ids):
        """Until the node has ended these actors with their host: what is asked before is refused."""
        for id in ids:
            until(f"{id} has ended, too", lambda id=id: self.fleet.process("n1").log_has(f"failed actor=0/{id}"))


def gives_and_pushes(game):
    assert game("ann", "add sword 2") == "2"
    assert game("ann", "bag") == "sword=2"
    assert game.error("ann", "dance") == "ERR add, bag, give, join, say, remind"
    bob = game.bound("bob")
    assert game("ann", "give bob sword 1") == "1"
    assert bob.read() == ["message", "bob", "* ann gave you sword 1"]
    assert game.error("ann", "give bob sword 9") == "NOITEM you have only 1"
    assert (game("ann", "bag"), game("bob", "bag")) == ("sword=1", "sword=1")
    assert game("ann", "join lobby") == "joined"
    said = game.error("bob", "say lobby hi")  # what the room answered
    assert said == "NOTHERE join first", said
    assert game("bob", "join lobby") == "joined"
    assert game("ann", "say lobby hello there") == "said to 2"
    assert bob.read() == ["message", "bob", "lobby ann: hello there"]
    assert game("@4/lobby", "tick") == "OK"
    until("the timer rang", lambda: game("@4/lobby", "who") == "ann bob, 2 said")
    assert game("bob", "remind 0.2 tea") == "OK"
    assert bob.read() == ["message", "bob", "* tea, 1"]
    # Many at once, of many actors.
    game.redis.send(*[("CALL", f"p{i % 50}", "add coin 1") for i in range(1000)])
    assert [game.redis.read() for _ in range(1000)] == [str(i // 50 + 1) for i in range(1000)]


def comes_back_when_killed(game, times=1):
    """The host of node n1 ends amidst a request, is started again, and is killed so many times."""
    process = game.fleet.process
    assert game("ann", "add sword 2") == "2"
    assert game("ann", "join lobby") == "joined"
    # The code of a player ends the whole process amidst a request.
    assert game.error("bob", "crash") == "UNKNOWN outcome: the actor's host ended amidst it"
    assert process("host-n1").wait() == 3
    game.has_ended("ann")
    waits = Resp(game.gateway)
    waits.send(("CALL", "ann", "bag"))  # for the host that comes
    game.host("n1")
    assert waits.read() == "sword=2"
    until("the room is there, afresh", lambda: succeeds(game, "@4/lobby", "who") == ", 0 said")
    for _ in range(times):
        process("host-n1").kill().wait()
        game.host("n1")
        until("it answers", lambda: succeeds(game, "ann", "bag") == "sword=2")


def stands_still(pid):
    """True when a SIGSTOP has reached each of its threads: until then it may still answer."""
    states = set()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as file:
            states.add(file.read().rpartition(")")[2].split()[0])
    return states == {"T"}
