#!/usr/bin/env python3
"""Games in Lua on a real fleet: the samples of examples/lua, a move in the midst of them, a kill,
errors that a script makes, and a script that changes."""
import os
import re
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main, refused, succeeds, until

SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples", "lua")


def sample(name):
    return os.path.normpath(os.path.join(SAMPLES, name))


class Game:
    """One coordinator, a gateway, and nodes n1, n2, ... that host the script."""

    def __init__(self, fleet, script, nodes=1, extra=()):
        self.fleet, self.script, self.extra = fleet, script, list(extra)
        fleet.coordinators(1)
        for i in range(1, nodes + 1):
            self.node(f"n{i}")
        self.gateway = fleet.gateway("g1").resp
        self.redis = Resp(self.gateway)

    def node(self, name):
        return self.fleet.node(name, ["--lua", self.script, *self.extra])

    def __call__(self, id, payload):
        return self.redis("CALL", id, payload)

    def error(self, id, payload):
        return refused(self.redis, "CALL", id, payload)

    def bound(self, id):
        """A connection of its own that reads what the actor pushes."""
        client = Resp(self.gateway)
        assert client("BIND", id) == "OK"
        return client

    def move(self, id):
        """Drain the node that has the id, until the gateway has heard of it, too."""
        before = self.owner(id)
        self.fleet.tell("node", "drain", before, "--wait", "60")
        until("it has moved", lambda: self.owner(id) != before)

    def owner(self, id):
        return self.redis("WHERE", id)[1]


def a_chat_room_moves_with_its_members(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, sample("chat.lua"), nodes=2)
        assert game("room:1", "join ada") == "ada"
        assert game("room:1", "join bob") == "ada bob"
        assert "NOSESSION" in refused(Resp(game.gateway), "BIND", "room:1")
        ada, bob = game.bound("@1/ada"), game.bound("@1/bob")
        assert ada.read() == ["message", "@1/ada", "* bob joined"]  # said before she was there
        assert game("room:1", "say ada 'hello there'") == "said"
        assert bob.read() == ["message", "@1/bob", "ada: hello there"]
        assert game("room:2", "who") == ""
        game("room:1", "say bob moving on")
        game.move("room:1")
        assert game("room:1", "who") == "ada bob"
        game("room:1", "say bob moved")
        assert ada.read() == ["message", "@1/ada", "bob: moving on"]
        assert ada.read() == ["message", "@1/ada", "bob: moved"]
        assert game("room:1", "leave ada") == "bye"
        assert game.error("room:1", "say ada again") == "NOTHERE join first"
        assert bob.read() == ["message", "@1/bob", "* ada left"]
        assert game.error("@1/bob", "hear me") == "ERR only rooms say that"


def lines_of_the_chat_for_browsers_come_once(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, sample(os.path.join("..", "web-chat", "chat.lua")), nodes=2)
        until("somebody owns it", lambda: "ERR enter or say" in game.error("@1/ada", "hello there"))
        ada = game.bound("@1/ada")
        born, at, said = game("@1/ada", "enter lobby 0 0").split()
        assert (at, said) == ("0", "0")
        assert ada.read() == ["message", "@1/ada", f"{born} 1 * 0 ada came in"]
        assert game("@1/ada", "say 1 it's me") == "said"
        assert game("@1/ada", "say 1 it's me") == "said"  # a copy
        assert game.error("@1/ada", "say 3 too early") == "GAP say 2 first"
        assert ada.read() == ["message", "@1/ada", f"{born} 2 ada 1 it's me"]
        game.move("lobby")
        assert game("@1/ada", "say 2 moved") == "said"
        assert ada.read() == ["message", "@1/ada", f"{born} 3 ada 2 moved"]
        assert game("@1/ada", f"enter lobby {born} 1") == f"{born} 1 2"
        assert [ada.read()[2].split()[1] for _ in range(2)] == ["2", "3"]
        assert game.error("@1/ada", "ring lobby 1") == "ERR enter or say"
        assert game.error("lobby", "enter") == "ERR only players say that"


def a_battle_is_fought_to_its_end(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, sample("battle.lua"), nodes=2)
        assert game("battle:7", "join ada") == "waiting"
        assert game.error("battle:7", "attack ada bob") == "NOTHERE no such fighter"
        assert game("battle:7", "join bob") == "fighting"
        assert game.error("battle:7", "join eve") == "CLOSED the battle has begun"
        # Both at once: half a second later the second one is not too soon.
        game.redis.send(*[("CALL", "battle:7", "attack ada bob")] * 2)
        assert 60 <= int(game.redis.read()) <= 80
        assert refused(game.redis.read).startswith("TOOSOON")
        game.move("battle:7")  # in the midst of it: its clock goes on at the new owner
        assert game("battle:7", "state").startswith("fighting")
        until("bob falls", lambda: succeeds(game, "battle:7", "attack ada bob") == "0", pause=0.05)
        assert "winner=ada" in game("battle:7", "state")
        assert game.error("battle:7", "attack bob ada").startswith("CLOSED")
        # The players' own actors were told, wherever they live, and tell it back.
        until("ada was told", lambda: game("battle:7", "score ada") == "1 of 1")
        assert game("@1/ada", "score") == "1"  # the first of its results
        until("bob was told", lambda: game("battle:7", "score bob") == "0 of 1")


def an_inventory_survives_a_kill(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, sample("player.lua") + "=" + fleet.data("players.db"), nodes=2)
        assert game("ada", "give sword") == "1"
        assert game("ada", "give potion 3") == "3"
        game.move("ada")
        assert game("ada", "bag") == "potion=3 sword=1"
        assert game("ada", "take potion") == "2"
        assert game.error("ada", "take potion 9").startswith("NOITEM")
        fleet.process(game.owner("ada")).kill(signal.SIGKILL).wait()
        game.node("n3")
        until("it lives again", lambda: succeeds(game, "ada", "bag") == "potion=2 sword=1")
        assert game("ada", "give shield") == "1"
        assert game("ada", "bag") == "potion=2 shield=1 sword=1"


def closed(client):
    try:
        client.read()
    except OSError:
        return True
    return False


def write(fleet, text):
    """Another file in its place, as editors do it."""
    path = fleet.data("game.lua")
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)
    return path


BAD = """
local room = ringhold.kind("room", {limit = 1000})
function room.boom(self)
    local x
    return x.y
end
function room.spin(self) while true do end end
function room.eat(self) local t = {} while true do t[#t + 1] = ("x"):rep(100000) .. #t end end
function room.stuck(self) ringhold.wait() end
function room.ok(self) return "alive" end
function room.on_activate(self) if ringhold.self() == "cursed" then error("it is cursed") end end
function room.on_handoff(self) error("it will not go") end
function room.on_flush(self) ringhold.sleep(1) end
"""


def a_scripts_errors_end_one_message_each(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, write(fleet, BAD), extra=["--lua-instructions", "20000000", "--lua-memory-mb", "32"])
        node = fleet.process("n1")
        assert re.match(r"ERR lua: .*game.lua:5: attempt to index a nil value", game.error("r", "boom"))
        assert "it ran 20000000 instructions without a wait" in game.error("r", "spin")
        assert "not enough memory" in game.error("r", "eat")
        assert "its limit of 1000 ms" in game.error("r", "stuck")
        assert "no method 'fly'" in game.error("r", "fly")
        assert game("r", "ok") == "alive"
        for word in ("boom", "spin", "eat", "stuck"):
            assert node.log_has(f"script_error actor=room/r in={word} error="), node.tail()
        game.redis.send(("CALL", "cursed", "ok"))
        until("it is named", lambda: node.log_has("actor=room/cursed in=on_activate error="))
        fleet.node("n2", ["--lua", game.script])
        fleet.tell("node", "drain", "n1", "--wait", "60")
        assert Resp(fleet.process("g1").resp)("CALL", "r", "ok") == "alive"
        assert node.running and node.log_has("actor=room/r in=on_handoff error="), node.tail()


CURSED = """
local room = ringhold.kind("room", {flush = 1})
function room.on_activate(self) ringhold.timer("bell", 10) end
function room.on_timer(self, name) error("no " .. name) end
function room.on_flush(self, why) if why ~= "moved" then error("no flush " .. why) end end
function room.on_deactivate(self, why) error("not " .. why) end
function room.ok(self) return "alive" end
function room.fail(self) ringhold.fail("ERR by its own word") end
"""


def an_error_in_any_callback_is_named(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, write(fleet, CURSED))
        node = fleet.process("n1")
        assert game("r", "ok") == "alive"
        for word, error in (("on_timer", "no bell"), ("on_flush", "no flush periodic")):
            line = f"script_error actor=room/r in={word} error="
            until(line, lambda line=line: node.log_has(line))
            assert node.log_has(error), node.tail()
        assert game("r", "ok") == "alive"
        assert game.error("r", "fail") == "ERR by its own word"
        until("its end", lambda: node.log_has("script_error actor=room/r in=on_deactivate error="))
        assert node.log_has("not broken"), node.tail()
        until("it starts afresh", lambda: succeeds(game, "r", "ok") == "alive")
        assert node.running


BOUND = """
local hero = ringhold.kind("hero")
function hero.on_activate(self, state) if not state then self.heard = {} end end
function hero.on_session(self, what, why)
    self.heard[#self.heard + 1] = what .. (why and ":" .. why or "")
    if self.bad then error("no " .. what) end
    ringhold.sleep(5)
    ringhold.push("hello")
    return not self.shy
end
function hero.told(self) return table.concat(self.heard, " ") end
function hero.set(self, name, value) self[name] = value == "on" end
function hero.push(self, text) return select(2, ringhold.push(text)) or "sent" end
function hero.kick(self, code, text) return select(2, ringhold.kick(tonumber(code), text)) or "kicked" end
"""


def a_client_is_bound_to_an_actor(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, write(fleet, BOUND), nodes=2)
        nobody = "NOSESSION no client is bound to the actor"
        assert game("eve", "push x") == nobody
        first = game.bound("eve")
        assert first.read() == ["message", "eve", "hello"]
        assert game("eve", "push one") == "sent"
        game.move("eve")
        assert game("eve", "push two") == "sent"
        assert [first.read()[2], first.read()[2]] == ["one", "two"]

        second = game.bound("eve")
        assert first.read()[:2] == ["kick", 1] and closed(first)
        assert second.read() == ["message", "eve", "hello"]
        assert game("eve", "kick 1007 'go away'") == "kicked"
        assert game("eve", "push x") == nobody
        assert second.read() == ["kick", 1007, "go away"] and closed(second)
        until("it is told", lambda: game("eve", "told") == "bound replaced lost:kicked")

        # One that says no, and one that fails, which is named.
        owner = fleet.process(game.owner("eve"))
        line = "script_error actor=hero/eve in=on_session error="
        game("eve", "set shy on")
        assert "REFUSED" in refused(Resp(game.gateway), "BIND", "eve")
        assert not owner.log_has(line), owner.tail()
        game("eve", "set bad on")
        assert "REFUSED" in refused(Resp(game.gateway), "BIND", "eve")
        until(line, lambda: owner.log_has(line))
        assert owner.log_has("no bound"), owner.tail()
        assert game("eve", "push x") == nobody
        game("eve", "set bad off")
        game("eve", "set shy off")
        third = game.bound("eve")
        third.close()
        until("it is told", lambda: game("eve", "told").endswith("bound lost:closed"))


def a_changed_script_is_loaded(binary):
    text = """
local room = ringhold.kind("room")
function room.hit(self) self.n = (self.n or 0) + 1 return %d * 1000000 + self.n end
"""
    with Fleet(binary) as fleet:
        game = Game(fleet, write(fleet, text % 1), extra=["--lua-reload"])
        node = fleet.process("n1")
        assert game("r", "hit") == "1000001"
        write(fleet, text % 2 + "function room.hit(")
        until("it is refused", lambda: game("r", "hit") and node.log_has("lua reload_failed"))
        assert node.log_has("game.lua:4: <name>"), node.tail()
        assert game("r", "hit").startswith("1")
        write(fleet, text % 3)
        until("it runs", lambda: game("r", "hit").startswith("3"))
        until("it says so", lambda: node.log_has("lua reloaded"))  # another worker may have run it first


REMEMBERED = """
local town = ringhold.kind("town", {remembered = function() return {"rome", "ulm"} end})
function town.on_activate(self) ringhold.log("founded", (ringhold.self())) end
"""


def remembered_ids_live_without_being_asked(binary):
    with Fleet(binary) as fleet:
        Game(fleet, write(fleet, REMEMBERED))
        node = fleet.process("n1")
        until("both live", lambda: node.log_has("founded rome") and node.log_has("founded ulm"))


BESIDE = """
local room = ringhold.kind("room", {number = %d})
function room.hit() return "hit" end
"""


def a_script_stands_beside_actors_in_c(binary):
    with Fleet(binary) as fleet:
        game = Game(fleet, write(fleet, BESIDE % 4), extra=["--actor", "kv", "--kind", "1:echo"])
        assert game.redis("INCR", "n") == 1
        assert game("@1/a", "hello") == "hello"
        assert game("@4/a", "hit") == "hit"
        code, _, err = fleet.run("node", "--name", "n2", "--lua", write(fleet, BESIDE % 0), "--actor", "kv")
        assert code == 1 and "number 0 is already that of the kind 'room'" in err, err


def a_script_is_checked_without_a_fleet(binary):
    with Fleet(binary) as fleet:
        code, out, err = fleet.run("node", "--lua-check", sample("battle.lua"))
        assert code == 0 and "kind battle number=0" in out and "kind player number=1" in out, (out, err)
        path = write(fleet, "local room = ringhold.kind('room'\n")
        for flag in ("--lua-check", "--lua"):
            code, out, err = fleet.run("node", "--name", "n1", flag, path)
            assert code == 1 and "game.lua:2:" in err and len(err.splitlines()) == 1, err
        code, out, err = fleet.run("node", "--name", "n1", "--lua", path + ".not")
        assert code == 1 and "No such file" in err, err


main(
    [
        a_script_stands_beside_actors_in_c,
        a_chat_room_moves_with_its_members,
        lines_of_the_chat_for_browsers_come_once,
        a_battle_is_fought_to_its_end,
        an_inventory_survives_a_kill,
        a_scripts_errors_end_one_message_each,
        an_error_in_any_callback_is_named,
        a_client_is_bound_to_an_actor,
        a_changed_script_is_loaded,
        remembered_ids_live_without_being_asked,
        a_script_is_checked_without_a_fleet,
    ]
)
