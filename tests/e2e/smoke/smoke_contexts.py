#!/usr/bin/env python3
"""Fleets by name: which one a command asks, where contexts are kept, and who may write them."""
import os
import stat
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, main

DEAD = "127.0.0.1:1"  # nobody listens there


class Home:
    """A configuration folder, and a command that uses it."""

    def __init__(self, fleet):
        self.fleet = fleet
        self.base = os.path.join(fleet.folder, "config")

    def __call__(self, *words, **variables):
        before = dict(os.environ)
        os.environ.update({"XDG_CONFIG_HOME": self.base, **variables})
        try:
            return self.fleet.run(*words)
        finally:
            os.environ.clear()
            os.environ.update(before)

    def path(self, *names):
        return os.path.join(self.base, "ringhold", *names)

    def works(self, *words, **variables):
        code, out, err = self(*words, **variables)
        assert code == 0, (words, code, out, err)
        return out

    def fails(self, *words, **variables):
        code, out, err = self(*words, "--timeout-ms", "300", **variables)
        assert code == 1, (words, code, out, err)
        return err


def an_option_goes_before_the_environment_and_that_before_the_context(binary):
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        good = fleet.addresses
        home = Home(fleet)
        home.works("context", "add", "prod", "--coordinators", good)
        home.works("context", "add", "dead", "--coordinators", DEAD)
        assert f"context prod is in use: {good}" in home.works("context", "use", "prod")
        home.fails("status", RINGHOLD_CONTEXT="dead")
        home.works("status", "--context", "prod", RINGHOLD_CONTEXT="dead")
        home.fails("status", "--context=dead")
        home.fails("status", RINGHOLD_COORDINATORS=DEAD)  # goes before the context in use
        home.works("status", "--context", "prod", RINGHOLD_COORDINATORS=DEAD)  # which was named by an option
        home.works("status", "--coordinators", good, "--context", "dead")
        home.works("--coordinators", good, "status", RINGHOLD_CONTEXT="dead")
        home.works("--context", "prod", "-o", "json", "node", "list", RINGHOLD_CONTEXT="dead")
        home.works("context", "use", "none")
        home.fails("status", "--context", "nobody")


def contexts_are_kept(binary):
    with Fleet(binary) as fleet:
        home = Home(fleet)
        assert home.works("context", "list").split() == ["CONTEXT", "IN", "USE", "CLUSTER", "COORDINATORS", "GATEWAY"]
        home.works("context", "add", "b", "--coordinators", "h1:7400,h2:7400", "--cluster", "game", "--gateway", "g:6381")
        home.works("context", "add", "a", "--coordinators", "h:1")
        home.works("context", "use", "b")
        rows = [line.split() for line in home.works("context", "list").splitlines()[1:]]
        assert rows == [["a", "no", "h:1"], ["b", "yes", "game", "h1:7400,h2:7400", "g:6381"]], rows
        shown = home.works("context", "show")
        assert shown == "context b\ncoordinators = h1:7400,h2:7400\ncluster = game\ngateway = g:6381\n", shown
        for path in (home.path("context", "a"), home.path("context", "b"), home.path("current")):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, path
        assert stat.S_IMODE(os.stat(home.path("context")).st_mode) == 0o700
        home.works("context", "remove", "b")
        assert not os.path.exists(home.path("current")) and os.listdir(home.path("context")) == ["a"]
        code, _, err = home("context", "show")
        assert code == 1 and "no context is in use" in err, err


def what_is_wrong_is_refused(binary):
    with Fleet(binary) as fleet:
        home = Home(fleet)
        for words, why in {
            ("a/b", "--coordinators", "h:1"): "can't be a name",
            ("-x", "--coordinators", "h:1"): "can't be a name",
            ("a",): "must be HOST:PORT",
            ("a", "--coordinators", "h"): "must be HOST:PORT",
            ("a", "--coordinators", "h:1", "--link-ca", "/dev/null"): "give all three or none",
            ("a", "--coordinators", "h:1", "--token", "nowhere"): "No such file",
        }.items():
            code, out, err = home("context", "add", *words)
            assert code == 1 and out == "" and why in err, (words, code, out, err)
        assert not os.path.exists(home.path())
        assert "there is no context 'x'" in home.fails("status", "--context", "x")
        assert "there is no context 'x'" in home.fails("status", RINGHOLD_CONTEXT="x")
        home.works("context", "add", "a", "--coordinators", "h:1")
        os.chmod(home.path("context", "a"), 0o660)
        assert "others may write it" in home.fails("status", "--context", "a")
        os.chmod(home.path("context", "a"), 0o600)
        with open(home.path("context", "a"), "a") as f:
            f.write("colour = red\n")
        assert "a key is unknown" in home.fails("status", "--context", "a")
        assert "unknown command '--nonsense'" in home("--nonsense", "status")[2]


main([an_option_goes_before_the_environment_and_that_before_the_context, contexts_are_kept, what_is_wrong_is_refused])
