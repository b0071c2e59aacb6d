"""porcupine as a judge of what clients saw: tests/tools/linearizable, built with Go."""
import functools
import os
import shutil
import subprocess

from fleet import DEADLINE

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "linearizable")


def program(binary):
    """Where it is: beside the binary that is tested."""
    return os.path.join(os.path.dirname(os.path.abspath(binary)), "linearizable")


def build(binary):
    """Why there is none, or None."""
    if shutil.which("go") is None:
        return "go is not installed (golang-go)"
    env = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    run = functools.partial(subprocess.run, cwd=TOOL, env=env, capture_output=True, text=True)
    try:
        got = run(["go", "mod", "download"], timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        return "the module porcupine cannot be had: no answer"
    if got.returncode != 0:
        return f"the module porcupine cannot be had: {got.stderr.splitlines()[-1]}"
    mine = f"{program(binary)}.{os.getpid()}"  # another test may just run the one that is there
    built = run(["go", "build", "-o", mine])
    assert built.returncode == 0, built.stderr
    os.rename(mine, program(binary))
    return None
