"""Pods of packaging/kubernetes as processes: the command, environment and files that each container has, without Kubernetes."""
import base64
import glob
import os
import re

import yaml

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "kubernetes")


def objects():
    found = []
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.yaml"))):
        with open(path) as f:
            found += list(yaml.safe_load_all(f))
    for o in found:
        assert o["apiVersion"] and o["kind"] and o["metadata"]["name"] and o["spec"], o
    return found


def kind(found, *names):
    return [o for o in found if o["kind"] in names]


class Pod:
    """One of a StatefulSet. `secrets`: {name: {key: bytes}}. What it has of files is below `folder`."""

    def __init__(self, workload, number, secrets, folder):
        self.name = f"{workload['metadata']['name']}-{number}"
        self.spec = workload["spec"]["template"]["spec"]
        (self.container,) = self.spec["containers"]
        self.folder = os.path.join(folder, self.name)
        self.env = {}
        for e in self.container["env"]:
            fields = {"metadata.name": self.name, "status.podIP": "10.1.2.3"}
            value = e["value"] if "value" in e else fields[e["valueFrom"]["fieldRef"]["fieldPath"]]
            self.env[e["name"]] = self.expanded(value)
        volumes = {v["name"]: v for v in self.spec["volumes"]}
        for mount in self.container["volumeMounts"]:
            if mount["name"] in volumes:
                self.mount(mount, volumes[mount["name"]]["secret"], secrets)

    def expanded(self, text):
        """$(NAME) as Kubernetes does it: a name that is unknown stays as it is."""
        return re.sub(r"\$\((\w+)\)", lambda m: self.env.get(m.group(1), m.group()), text)

    def mount(self, mount, secret, secrets):
        if secret["secretName"] not in secrets and secret.get("optional"):
            return
        keys = secrets[secret["secretName"]]
        one = mount.get("subPath") or self.expanded(mount.get("subPathExpr", ""))
        at = self.path(mount["mountPath"])
        files = {at: keys[one]} if one else {os.path.join(at, key): data for key, data in keys.items()}
        for path, data in files.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, secret["defaultMode"])

    def path(self, path):
        return self.folder + path

    def here(self, text, addresses):
        """With the pod's files, and addresses that this machine has: addresses(host, port) gives one."""
        text = re.sub(r"(?<![\w./])/(etc|var/lib)/ringhold", lambda m: self.path(m.group()), text)
        host = r"((?:\d+\.){3}\d+|coordinator-\d\.coordinator):(\d+)"
        return re.sub(host, lambda m: addresses(m.group(1), m.group(2)), text)

    def words(self, command):
        """The shell takes $NAME itself, from its environment."""
        return [self.expanded(w) for w in command]


def secrets_of(text):
    """{name: {key: bytes}} of Secrets in YAML."""
    found = [o for o in yaml.safe_load_all(text) if o]
    assert {(o["apiVersion"], o["kind"], o["type"]) for o in found} == {("v1", "Secret", "Opaque")}
    return {o["metadata"]["name"]: {k: base64.b64decode(v) for k, v in o["data"].items()} for o in found}
