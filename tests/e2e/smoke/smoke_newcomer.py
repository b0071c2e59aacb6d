#!/usr/bin/env python3
"""What somebody does who has just read README.md, and what goes wrong for them."""
import glob
import os
import signal
import sys

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, main


def folders_are_made_with_those_they_are_in(binary):
    with Fleet(binary) as fleet:
        data = fleet.data
        fleet.data = lambda name: data("ringhold-data/deep/" + name)
        fleet.coordinators(1)
        fleet.node("n1")
        redis = Resp(fleet.gateway("g1").resp)
        assert redis("SET", "ada", "36") == "OK"


def what_root_restores_is_the_daemons(binary):
    """Under systemd the daemon has a user of its own, and who repairs is root."""
    if os.geteuid() != 0:
        print("# not root: whose the files are was not looked at")
        return
    nobody = 65534
    with Fleet(binary) as fleet:
        fleet.coordinators(1)
        folder, backup, mine = fleet.data("c1"), fleet.data("b"), fleet.data("c1/secret")
        fleet.node("n1")
        fleet.settled(["n1"])
        made = fleet.run("backup", backup, "--data", folder)
        assert made[0] == 0, made
        assert fleet.process("c1").kill(signal.SIGTERM).wait() == 0
        for path in (folder, *glob.glob(folder + "/*")):
            os.chown(path, nobody, nobody)
        # What only seems to be in the folder is somebody else's.
        for name in ("of-root", "twice"):
            with open(fleet.data(name), "w"):
                pass
        os.symlink(fleet.data("of-root"), mine)
        os.link(fleet.data("twice"), fleet.data("c1/second-name"))
        code, out, err = fleet.run("recover", "restore", backup, folder, "--yes")
        assert code == 0, (out, err)
        undo = fleet.run("recover", "undo", glob.glob(folder + "/replaced-*")[0], "--yes")
        assert undo[0] == 0, undo
        for at, folders, files in os.walk(folder):
            for name in [*folders, *files]:
                if name not in ("secret", "second-name"):
                    assert os.lstat(os.path.join(at, name)).st_uid == nobody, os.path.join(at, name)
        assert os.stat(fleet.data("of-root")).st_uid == 0 == os.stat(fleet.data("twice")).st_uid


main(
    [
        folders_are_made_with_those_they_are_in,
        what_root_restores_is_the_daemons,
    ]
)
