"""What packaging/docker/Dockerfile says, done step by step over a root of Debian: no Docker runs here."""
import json
import os
import re
import shutil
import subprocess


class Image:
    """`below` is the root that FROM means. It is not written to: a layer over it is, in the caller's mount namespace."""

    def __init__(self, dockerfile, context, below, folder):
        with open(dockerfile) as f:
            text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", f.read(), flags=re.M))
        self.steps = [line.split(None, 1) for line in text.split("\n") if line.strip()]
        self.context, self.below, self.folder = context, below, folder
        self.root = os.path.join(folder, "image")
        self.user, self.at = "0:0", "/"
        self.entry, self.words, self.volumes, self.ports = [], [], [], []

    def __enter__(self):
        parts = [os.path.join(self.folder, name) for name in ("image-layer", "image-work", "image")]
        for part in parts:
            os.mkdir(part)
        layers = f"lowerdir={self.below},upperdir={parts[0]},workdir={parts[1]}"
        self.call("mount", "-t", "overlay", "-o", layers, "overlay", self.root)
        self.call("mount", "-t", "proc", "proc", os.path.join(self.root, "proc"))
        return self

    def __exit__(self, *_):
        for at in (*reversed(self.volumes), "/proc", ""):
            self.call("umount", self.root + at)

    @staticmethod
    def call(*words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def build(self):
        """Each step in its order; one that isn't known here fails."""
        for name, what in self.steps:
            getattr(self, "step_" + name.lower())(what)

    def step_from(self, what):
        assert what == "debian:12-slim", what
        with open(os.path.join(self.root, "etc", "os-release")) as f:
            assert 'VERSION_ID="12"' in f.read(), "the root is another Debian"

    def step_run(self, what):
        self.call("chroot", f"--userspec={self.user}", self.root, "env", "DEBIAN_FRONTEND=noninteractive", "/bin/sh", "-c", what)

    def step_copy(self, what):
        *sources, target = what.split()
        found = [n for n in os.listdir(self.context) for s in sources if re.fullmatch(s.replace("*", ".*"), n)]
        assert found, f"{self.context} has no {sources}"
        for name in found:
            shutil.copy(os.path.join(self.context, name), self.root + target)

    def step_user(self, what):
        self.user = what

    def step_workdir(self, what):
        self.at = what
        assert os.path.isdir(self.root + what)

    def step_volume(self, what):
        self.volume = what

    def step_expose(self, what):
        self.ports = what.split()

    def step_stopsignal(self, what):
        assert what == "SIGTERM"

    def step_entrypoint(self, what):
        self.entry = json.loads(what)

    def step_cmd(self, what):
        self.words = json.loads(what)

    def seal(self):
        """As Kubernetes runs it: nothing is written but the volume."""
        uid, gid = self.user.split(":")
        self.call("mount", "-t", "tmpfs", "-o", f"uid={uid},gid={gid},mode=750", "tmpfs", self.root + self.volume)
        self.volumes = [self.volume]
        self.call("mount", "-o", "remount,ro", self.root)

    def command(self, *words):
        """What starts it: with these words, or those of CMD."""
        inside = f"cd {self.at} && exec \"$@\""
        return ["chroot", f"--userspec={self.user}", self.root, "/bin/sh", "-c", inside, "-", *self.entry, *(words or self.words)]
