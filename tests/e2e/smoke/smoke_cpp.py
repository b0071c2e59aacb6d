#!/usr/bin/env python3
"""Actors in C++ (include/ringhold.hpp): what examples/counter.cpp and tests/plugins/wrapped.cpp do on a fleet, built by each compiler that is
here."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
import packets
from fleet import Fleet, Resp, healthy, main, refused, succeeds, until

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))


def works(compiler):
    """It is here, and so is its library."""
    words = [compiler, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    return shutil.which(compiler) and subprocess.run(words, input=b"#include <string>\n", stderr=subprocess.DEVNULL, check=False).returncode == 0


COMPILERS = [c for c in ("g++", "clang++") if works(c)]
STRICT = ["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-shared", "-fPIC", "-I" + os.path.join(ROOT, "include")]


def built(folder, compiler, source, *options):
    made = os.path.join(folder, os.path.basename(source).replace(".cpp", f"-{compiler}.so"))
    words = [compiler, *(options or ["-std=c++17"]), *STRICT, os.path.join(ROOT, source), "-o", made]
    subprocess.run(words, check=True)
    return made


def it_compiles_without_exceptions(_):
    with tempfile.TemporaryDirectory(prefix="ringhold-cpp-") as folder:
        for compiler in COMPILERS:
            built(folder, compiler, "examples/counter.cpp", "-std=c++17", "-fno-exceptions", "-fno-rtti")
            built(folder, compiler, "examples/counter.cpp", "-std=c++20")


def a_count_moves(binary):
    with Fleet(binary) as fleet:
        actor = built(fleet.folder, COMPILERS[0], "examples/counter.cpp")
        fleet.coordinators(1)
        for name in ("n1", "n2"):
            fleet.node(name, ["--actor", actor])
        fleet.settled(["n1", "n2"])
        redis = Resp(fleet.gateway("g1").resp)
        for count in range(1, 4):
            counts = {redis("CALL", f"id-{i}", "") for i in range(50)}
            assert counts == {str(count)}, (counts, count)
            if count == 1:
                fleet.tell("node", "drain", "n1", "--wait", "60")
            elif count == 2:
                fleet.tell("node", "drain", "n1", "cancel")
                fleet.tell("node", "drain", "n2", "--wait", "60")
        healthy(fleet)


def each_function_does_what_it_says(binary):
    for compiler in COMPILERS:
        with Fleet(binary) as fleet:
            actor = built(fleet.folder, compiler, "tests/plugins/wrapped.cpp")
            fleet.coordinators(1)
            fleet.node("n1", ["--actor", actor + "=fleet", "--store", "sqlite:" + fleet.data("game.db")])
            g = fleet.gateway("g1", ["--frames", "127.0.0.1:0"])
            redis = Resp(g.resp)

            def ask(text, id="ann"):
                return redis("CALL", id, text)

            until("somebody owns it", lambda: succeeds(redis, "CALL", "ann", "get x") == "nothing")
            assert ask("remember me") == "afresh" and ask("remember you") == "me"
            assert ask("who") == "ann fleet 1"
            assert ask("ask bob") == "he says bob fleet 1"
            assert not ask("put sword")
            assert ask("all") == "item=sword ", repr(ask("all"))
            assert ask("erase") == "1" and ask("get item") == "nothing"
            assert ask("give bob") == "1"
            until("the gift is there", lambda: ask("get item", "bob") == "gift")
            assert int(ask("tick")) >= 5 and ask("post") == "posted"
            assert ask("alarm hello") == "0"
            until("it rings", lambda: ask("get rang") == "hello")
            for wrong, error in (("drop", "DROPPED nobody answered"), ("x", "ERR what?"), ("throw", "ERR it broke here")):
                assert refused(redis, "CALL", "ann", wrong) == error, wrong
            assert ask("remember") == "afresh"  # what threw has begun afresh
            assert ask("get given") == "bob"  # and what was answered is still there
            player = packets.Client(tuple(g.fields["frames"].rsplit(":", 1)))
            player.bind(b"ann")
            assert player.push()[1] == b"welcome"
            assert ask("push hi") == "0" and player.push()[1] == b"hi"
            player.close()


def nothing_compiles_it(_):
    print("# SKIP C++: no compiler is installed")


if __name__ == "__main__":
    main([it_compiles_without_exceptions, a_count_moves, each_function_does_what_it_says] if COMPILERS else [nothing_compiles_it])
