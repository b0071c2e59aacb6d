#!/usr/bin/env python3
"""`ringhold test`: tests of actors in Lua, without a fleet: those of the samples, and what each call of the kit does."""
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import main

SAMPLES = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "examples", "lua"))

GAME = r"""
local chest = ringhold.kind("chest", {durable = true})
local memory = ringhold.kind("memory", {number = 7, raw = true})
local dice = {}
function chest.add(self, n)
    local now = (tonumber(ringhold.get("n")) or 0) + n
    ringhold.put("n", now)
    return now
end
function chest.get(self) return ringhold.get("n") end
function chest.give(self, to, n)
    ringhold.put("n", ringhold.get("n") - n)
    ringhold.send_once("chest", to, "add", n)
end
function chest.bury(self, s) ringhold.alarm("rot", tonumber(s)) return ringhold.time() end
function chest.on_alarm(self) ringhold.put("n", nil) end
function chest.slow(self, ms)
    local began = ringhold.now()
    ringhold.sleep(tonumber(ms))
    return ringhold.now() - began
end
function chest.dice(self) return math.random(1000000) end
function chest.words(self, ...) return table.concat({...}, "|") end
function chest.refuse(self) ringhold.refuse("NO never") end
function chest.bytes(self) return "a\0b" end
function memory.on_activate(self, state) self.text = self.text or "" end
function memory.on_message(self, text) self.text = self.text .. text return self.text end
function memory.on_session(self, what, why)
    if what == "lost" then self.text = "lost " .. why elseif self.text == "closed" then return false else ringhold.push("hello\0you") end
end
"""

GOOD = r"""
local test = require("ringhold_test")
local helper = require("beside")

test.case("a gift arrives once, whatever becomes of the commits", function()
    for _, how in ipairs({"good", "before", "behind"}) do
        for count = 1, 5 do
            local t <close> = test.new("game.lua")
            assert(t:call("chest/ann", "add 10"))
            t:commits(how, count)
            t:send("chest/ann", "give bob 3")
            t:advance(60000)
            test.equal(t:call("chest/ann", "get"), "7", how)
            test.equal(t:call("chest/bob", "get"), "3", how)
        end
    end
end)

test.case("a commit that is refused changes nothing", function()
    local t = test.new("game.lua")
    t:commits("refused")
    test.equal(select(2, t:call("chest/ann", "add 1")):match("^%S+"), "STORE_UNAVAILABLE")
    t:commits("unknown", 1)
    test.equal(select(2, t:call("chest/ann", "add 1")):match("^%S+"), "UNKNOWN")
    test.equal(t:call("chest/ann", "get"), "")
end)

test.case("alarms come when their time does, though the node died", function()
    local t = test.new("game.lua")
    assert(t:call("chest/ann", "add 10"))
    local at = t:clock()
    test.equal(tonumber(t:call("chest/ann", "bury 3600")), at / 1000)
    t:crash()
    test.equal(t:lives("chest/ann"), false)
    t:advance(3595000)
    test.equal(t:call("chest/ann", "get"), "10")
    t:advance(10000)
    test.equal(t:call("chest/ann", "get"), "")
end)

test.case("a script's clock is the test's", function()
    local t = test.new("game.lua")
    local at = t:clock()
    test.equal(at, 1767225600000)
    test.equal(t:call("chest/ann", "slow 3000"), "3000")
    test.equal(t:clock(), at + 3000)
end)

test.case("memory moves, and a crash takes it", function()
    local t = test.new("game.lua")
    test.equal(t:move("memory/x"), nil)
    test.equal(select(2, t:move("memory/x")):match("^%S+"), "GONE")
    test.equal(t:call("7/x", "a b"), "a b")
    test.equal(t:move("memory/x"), true)
    test.equal(t:call("memory/x", "c"), "a bc")
    t:crash()
    test.equal(t:call("memory/x", "d"), "d")
end)

test.case("clients bind, are pushed to, and leave", function()
    local t = test.new("game.lua")
    test.equal(t:bind("chest/ann"), false)
    test.equal(t:bind("memory/x"), true)
    test.equal(t:pushed("memory/x"), "hello\0you")
    test.equal(t:pushed("memory/x"), nil)
    t:leave("memory/x")
    test.equal(t:call("memory/x", "!"), "lost closed!")
    assert(t:call("memory/y", "closed"))
    test.equal(t:bind("memory/y"), false)
end)

test.case("words and bytes arrive as they are", function()
    local t = test.new("game.lua")
    test.equal(t:call("chest/ann", "words", "two words", "", 'a"b\\c', "\n\0\xff", 7), 'two words||a"b\\c|\n\0\xff|7')
    test.equal(t:call("chest/a%20b", "words 'one word' two"), "one word|two")
    test.equal(t:call("chest/ann", "bytes"), "a\0b")
    local answer, why = t:call("chest/ann", "refuse")
    test.equal(answer, nil)
    test.equal(why, "NO never")
end)

test.case("chance is the same in each run", function()
    local t = test.new("game.lua")
    print("# " .. t:call("chest/ann", "dice") .. " " .. t:call("chest/ann", "dice") .. helper)
end)
"""

BAD = r"""
local test = require("ringhold_test")
local function world() return test.new("game.lua") end
local function deep(t) test.equal(t:call("chest/ann", "get"), 1, "gold") end
test.case("an assertion", function() assert(1 == 2) end)
test.case("it goes on", function() world() end)
test.case("in a function", function() deep(world()) end)
test.case("a kind that is none", function() world():call("box/a", "x") end)
test.case("an id without a kind", function() world():call("ann", "x") end)
test.case("an id that no actor has", function() world():call("chest/" .. ("x"):rep(256), "x") end)
test.case("a payload with a zero", function() world():call("memory/a", "a\0b") end)
test.case("no such game", function() test.new("none.lua") end)
test.case("a game that does not load", function() test.new("broken.lua") end)
test.case("a second world", function() world() world() end)
test.case("a closed world", function() local t = world() t:close() t:crash() end)
test.case("a commit like none", function() world():commits("sometimes") end)
test.case("back in time", function() world():advance(-1) end)
test.case("an error that is no text", function() error({}) end)
test.case("a case in a case", function() test.case("x", function() end) end)
test.case("of a helper", function() require("beside_bad")() end)
"""


class Trials:
    def __init__(self, binary):
        self.binary = os.path.abspath(binary)
        self.folder = tempfile.TemporaryDirectory(prefix="ringhold-trial-")
        self.write("game.lua", GAME)
        self.write("broken.lua", "local k = ringhold.kind('k')\nfunction k.x( end\n")
        self.write("beside.lua", "return ''")
        self.write("beside_bad.lua", "return function() error('so') end")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def write(self, name, text):
        with open(os.path.join(self.folder.name, name), "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, *words, within=None):
        done = subprocess.run([self.binary, "test", *words], capture_output=True, text=True, timeout=120, cwd=within or self.folder.name)
        return done.returncode, done.stdout, done.stderr


def the_samples_are_tested(binary):
    with Trials(binary) as trials:
        tests = sorted(glob.glob(os.path.join(SAMPLES, "*_test.lua")))
        samples = {name for name in os.listdir(SAMPLES) if not name.endswith("_test.lua")}
        assert samples == {os.path.basename(test).replace("_test", "") for test in tests}, samples
        code, out, err = trials.run(*tests)
        assert code == 0 and "not ok" not in out and not err, (out, err)
        assert out.endswith(f"\n1..{out.count('ok ')}\n"), out


def what_the_kit_says_it_does(binary):
    with Trials(binary) as trials:
        trials.write("good_test.lua", GOOD)
        code, out, err = trials.run("good_test.lua")
        assert code == 0 and out.count("\nok ") + 1 == 8, (out, err)
        assert trials.run("good_test.lua")[1] == out, "each run is the same"
        code, again, _ = trials.run(f"{os.path.basename(trials.folder.name)}/good_test.lua", within=os.path.dirname(trials.folder.name))
        assert (code, again) == (0, out), "from wherever it is run"
        code, some, _ = trials.run("good_test.lua", "--only", "alarms")
        assert code == 0 and some.startswith("ok 1 - alarms come") and some.endswith("1..1\n"), some


def what_fails_is_told_with_its_line(binary):
    with Trials(binary) as trials:
        trials.write("bad_test.lua", BAD)
        code, out, err = trials.run("bad_test.lua")
        cases = re.findall(r'^test\.case\("([^"]*)"', BAD, re.M)
        line = {text.split('"')[1]: i for i, text in enumerate(BAD.splitlines(), 1) if text.startswith("test.case")}
        assert code == 1 and out.endswith(f"1..{len(cases)}\n"), out
        told = dict(re.findall(r"^not ok \d+ - (.*)\n# (.*)", out, re.M))
        assert set(cases) - set(told) == {"it goes on"}, told
        for name, text in told.items():
            at = {"in a function": 4, "a second world": 3}.get(name, line[name])
            assert text.startswith(f"bad_test.lua:{at}: "), (name, text)
        assert told["in a function"] == 'bad_test.lua:4: gold: "" instead of 1', told
        assert "no kind like that of 'box/a'" in told["a kind that is none"], told
        assert "an actor is KIND/ID" in told["an id without a kind"], told
        assert re.search(r"beside_bad\.lua:1: so$", told["of a helper"]), told
        assert "none.lua: No such file" in err and "broken.lua:2:" in err, err


def a_file_that_is_none_is_an_error(binary):
    with Trials(binary) as trials:
        trials.write("empty_test.lua", "")
        trials.write("torn_test.lua", "local test = \n")
        trials.write("falls_test.lua", 'local test = require("ringhold_test")\ntest.case("well", function() end)\nerror("so")\n')
        trials.write("good_test.lua", 'local test = require("ringhold_test")\ntest.case("well", function() end)\n')
        for name, says in (
            ("empty_test.lua", "it has no case"),
            ("torn_test.lua", "torn_test.lua:2: "),
            ("falls_test.lua", "falls_test.lua:3: so"),
            ("none_test.lua", "none_test.lua"),
        ):
            code, out, err = trials.run(name, "good_test.lua")
            assert code == 1 and says in err and " - well\n" in out, (name, out, err)
        assert trials.run()[0] == 1 and "usage" in trials.run("--help")[1]


if __name__ == "__main__":
    main([
        the_samples_are_tested,
        what_the_kit_says_it_does,
        what_fails_is_told_with_its_line,
        a_file_that_is_none_is_an_error,
    ])  # fmt: skip
