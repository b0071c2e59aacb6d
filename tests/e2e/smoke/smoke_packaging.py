#!/usr/bin/env python3
"""What is in packaging/ fits the program: the Kubernetes example's objects belong together and its daemons would start with
what they are given, and do, as processes of this machine; the Dockerfile keeps the rules for one (campaign_packages.py
does its steps), and the Debian package is built with what the build needs. Neither Kubernetes nor Docker runs here.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from certificates import make
from fleet import Fleet, Resp, free_port, main, until

try:
    import pods
    from pods import Pod, kind, objects, secrets_of
except ImportError:  # no python3-yaml
    pods = None

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
INSTRUCTIONS = set("FROM RUN COPY ADD USER WORKDIR VOLUME EXPOSE STOPSIGNAL ENTRYPOINT CMD ENV ARG LABEL SHELL HEALTHCHECK".split())


def text_of(*words):
    with open(os.path.join(ROOT, *words)) as f:
        return f.read()


def picks(selector, labels):
    return selector and selector.items() <= labels.items()


def without_yaml():
    if pods is None:
        print("# no python3-yaml here: the example was not looked at")
    return pods is None


def the_objects_belong_together(_binary):
    if without_yaml():
        return
    found = objects()
    assert len({(o["kind"], o["metadata"]["name"]) for o in found}) == len(found), "two of one name"
    workloads = kind(found, "StatefulSet")
    assert {w["metadata"]["name"] for w in workloads} == {"coordinator", "game", "gateway"}
    services = {s["metadata"]["name"]: s["spec"] for s in kind(found, "Service")}
    labels = [w["spec"]["template"]["metadata"]["labels"] for w in workloads]
    for w, mine in zip(workloads, labels):
        name, spec = w["metadata"]["name"], w["spec"]
        assert picks(spec["selector"]["matchLabels"], mine), name
        assert services[spec["serviceName"]]["clusterIP"] == "None", f"{name}: its service has no names of pods"
        budgets = [b for b in kind(found, "PodDisruptionBudget") if picks(b["spec"]["selector"]["matchLabels"], mine)]
        assert [b["spec"]["maxUnavailable"] for b in budgets] == [1], name
    for what in kind(found, "Service"):
        assert sum(bool(picks(what["spec"]["selector"], mine)) for mine in labels) == 1, what["metadata"]
    for policy in kind(found, "NetworkPolicy"):
        assert any(picks(policy["spec"]["podSelector"]["matchLabels"], mine) for mine in labels), policy["metadata"]


def amount_of(text):
    """Bytes of "256Mi"."""
    number, unit = re.fullmatch(r"(\d+)([KMG]i)", text).groups()
    return int(number) << {"Ki": 10, "Mi": 20, "Gi": 30}[unit]


def the_pods_reach_each_other_and_names_alone(_binary):
    if without_yaml():
        return
    found = objects()
    policies = [p["spec"] for p in kind(found, "NetworkPolicy") if "Egress" in p["spec"]["policyTypes"]]
    listened = set()
    for w in kind(found, "StatefulSet"):
        pod = w["spec"]["template"]
        assert any(picks(p["podSelector"]["matchLabels"], pod["metadata"]["labels"]) for p in policies), w["metadata"]
        listened |= {p["containerPort"] for c in pod["spec"]["containers"] for p in c["ports"] if p["name"] == "links"}
    allowed = {}
    for rule in (rule for p in policies for rule in p["egress"]):
        assert rule["to"] and rule["ports"], f"anybody, or any port: {rule}"
        for to in rule["to"]:
            ((selector, what),) = to.items()
            ((key, value),) = what["matchLabels"].items()
            allowed[selector, key, value] = {(p.get("protocol", "TCP"), p["port"]) for p in rule["ports"]}
    assert allowed == {
        ("podSelector", "app", "ringhold"): {("TCP", port) for port in listened},
        ("namespaceSelector", "kubernetes.io/metadata.name", "kube-system"): {("UDP", 53), ("TCP", 53)},
    }, allowed


def the_pods_are_modest_and_watched(binary):
    if without_yaml():
        return
    for w in kind(objects(), "StatefulSet"):
        pod = w["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        name = container["name"]
        image, _, tag = container["image"].partition(":")
        assert image == "ringhold" and tag == text_of("VERSION").strip(), f"{name}: {container['image']}"
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 7400
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["automountServiceAccountToken"] is False, name
        amounts = [amount_of(container["resources"][what]["memory"]) for what in ("requests", "limits")]
        assert amounts[0] <= amounts[1], f"{name}: {amounts}"
        inside = container["securityContext"]
        assert inside["readOnlyRootFilesystem"] and not inside["allowPrivilegeEscalation"]
        assert inside["capabilities"] == {"drop": ["ALL"]}
        ports = {p["name"] for p in container["ports"]}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"} and "admin" in ports
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
        volumes = {v["name"] for v in pod["volumes"]}
        volumes |= {c["metadata"]["name"] for c in w["spec"].get("volumeClaimTemplates", [])}
        assert {m["name"] for m in container["volumeMounts"]} == volumes, name
        assert all(v["secret"]["defaultMode"] == 0o440 for v in pod["volumes"]), "others could read it"
        stop = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [""])[-1]
        waits = re.search(r"ringhold (node drain) .*--wait (\d+)", stop)
        assert bool(waits) == (name == "node")
        if waits:
            shown = subprocess.run([binary, *waits.group(1).split(), "--help"], capture_output=True, text=True, check=True)
            assert "--wait SECONDS" in shown.stdout
            env = {e["name"]: e.get("value") for e in container["env"]}
            after = int(env["RINGHOLD_NODE_DRAIN"].removesuffix("s"))
            assert int(waits.group(2)) + after < pod["terminationGracePeriodSeconds"], "it would be killed as it drains"


def the_fields_are_those_of_kubernetes(_binary):
    """kubectl drops what it doesn't know as it reads a pod's template."""
    if without_yaml() or not shutil.which("kubectl"):
        print("# no kubectl here: fields were not compared with its own")
        return
    for w in kind(objects(), "StatefulSet"):
        done = subprocess.run(
            ["kubectl", "set", "env", "--local", "-f", "-", "ONE=more", "--dry-run=client", "-o", "json"],
            input=json.dumps(w), capture_output=True, text=True, timeout=60,
        )
        assert done.returncode == 0, done.stderr
        lost = list(missing(w, json.loads(done.stdout)))
        assert not lost, lost


def missing(mine, theirs, at=""):
    """Where `theirs` has not what is in `mine`."""
    if isinstance(mine, dict):
        for key, value in mine.items():
            yield from missing(value, theirs.get(key) if isinstance(theirs, dict) else None, f"{at}.{key}")
    elif isinstance(mine, list):
        for n, value in enumerate(mine):
            yield from missing(value, theirs[n] if isinstance(theirs, list) and n < len(theirs) else None, f"{at}[{n}]")
    elif mine != theirs:
        yield at


class Cluster(Fleet):
    """The pods of the example as processes here: their commands, environments and secrets are its own, addresses are this
    machine's."""

    def __init__(self, binary):
        super().__init__(binary, "prod")
        os.symlink(self.binary, self.data("ringhold"))
        self.path = {"PATH": self.folder + ":" + os.environ["PATH"]}
        script = os.path.join(ROOT, "packaging", "kubernetes", "secrets")
        words = [script, self.data("ca"), "3", "2"]
        made = [subprocess.run(words, capture_output=True, text=True, env={**os.environ, **self.path}, timeout=120) for _ in "12"]
        assert made[0].returncode == 0 and made[0].stdout == made[1].stdout, "what there is, stays: " + made[0].stderr
        self.secrets = secrets_of(made[0].stdout)
        chain, key = make(self, "players")
        self.secrets["ringhold-players"] = {"tls.crt": self.bytes(chain), "tls.key": self.bytes(key)}
        self.here = {}
        workloads = kind(objects(), "StatefulSet")
        self.pods = [Pod(w, n, self.secrets, self.folder) for w in workloads for n in range(w["spec"]["replicas"])]

    @staticmethod
    def bytes(path):
        with open(path, "rb") as f:
            return f.read()

    def address(self, pod, host, port):
        """What others call coordinator-0.coordinator:7400 is 0.0.0.0:7400 to itself."""
        whose = host.split(".")[0] if host.startswith("coordinator") else pod.name
        if (whose, port) not in self.here:
            self.here[whose, port] = f"127.0.0.1:{free_port()}"
        return self.here[whose, port]

    def env(self, pod):
        mine = {k: pod.here(v, lambda h, p: self.address(pod, h, p)) for k, v in pod.env.items()}
        return {**self.path, **mine, "HOSTNAME": pod.name}

    def run_in(self, pod, command, env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGHOLD_")}
        return subprocess.run(command, capture_output=True, text=True, env={**clean, **env}, timeout=120)

    def begin(self, pod):
        program, *words = pod.words(pod.container["command"])
        return self.start(pod.name, words, self.env(pod), ready=False, program=program if program[0] == "/" else self.binary)

    def http(self, pod, path):
        """Status of what a probe or a collector gets without a token."""
        try:
            with urllib.request.urlopen(f"http://{self.address(pod, '0.0.0.0', '9400')}{path}", timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code


def the_daemons_would_start(binary):
    """With each container's command and environment as they are; secrets have the mode that they are mounted with."""
    if without_yaml():
        return
    with Cluster(binary) as cluster:
        for pod in cluster.pods:
            assert not [k for k in pod.env if k.endswith("_INSECURE")], pod.name
            env = {**cluster.path, **{k: re.sub("(?<![0-9])/etc/ringhold", pod.path("/etc/ringhold"), v) for k, v in pod.env.items()}}
            words = pod.words(pod.container["command"])
            words = words[:2] + [words[2] + " --check-config"] if words[0] == "/bin/sh" else words + ["--check-config"]
            done = cluster.run_in(pod, words, env)
            assert done.returncode == 0 and "is fine" in done.stdout, (pod.name, done.stdout, done.stderr)


def the_pods_are_a_fleet(binary):
    """Links by TLS, no one told to be insecure; a pod has its own certificate alone; one that is stopped drains first."""
    if without_yaml():
        return
    with Cluster(binary) as cluster:
        for pod in cluster.pods:
            assert sorted(os.listdir(pod.path("/etc/ringhold/tls"))) == ["ca.pem", "me.key", "me.pem"], pod.name
        started = [cluster.begin(pod) for pod in cluster.pods]
        for process in started:
            process.wait_ready()
        for pod in cluster.pods:
            until(f"{pod.name} is ready", lambda pod=pod: cluster.http(pod, "/readyz") == 200)
            assert cluster.http(pod, "/healthz") == 200 and cluster.http(pod, "/metrics") == 401
        gateway = next(p for p in cluster.pods if p.name == "gateway-0")
        host, port = cluster.address(gateway, "127.0.0.1", "6380").split(":")
        redis = Resp((host, int(port)))
        assert redis("SET", "ada", "36") == "OK"
        pod = next(p for p in cluster.pods if p.name == "game-0")
        stop = [pod.here(w, None) for w in pod.words(pod.container["lifecycle"]["preStop"]["exec"]["command"])]
        done = cluster.run_in(pod, stop, cluster.env(pod))
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert cluster.http(pod, "/readyz") == 503
        assert cluster.process("game-0").kill(signal.SIGTERM).wait() == 0
        assert redis("GET", "ada") == "36"
        stem = pod.path("/etc/ringhold/operator/tls")
        status = [binary, "status", "--link-certificate", f"{stem}.pem", "--link-key", f"{stem}.key"]
        assert "game-2" in cluster.run_in(pod, status, cluster.env(pod)).stdout
        refused = cluster.run_in(pod, status[:2], cluster.env(pod))
        assert refused.returncode == 1, ("a node gives no commands", refused.stdout, refused.stderr)
        os.unlink(pod.path("/etc/ringhold/operator/tls.key"))
        assert cluster.run_in(pod, stop, cluster.env(pod)).returncode == 0, "without the secret, SIGTERM is what drains"


def the_dockerfile_keeps_the_rules(_binary):
    text = text_of("packaging", "docker", "Dockerfile")
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M)).split("\n")
    steps = [line.split(None, 1) for line in lines if line.strip()]
    assert steps and {s[0] for s in steps} <= INSTRUCTIONS, [s[0] for s in steps]
    last = dict(steps)
    for base in (s[1] for s in steps if s[0] == "FROM"):
        tag = base.partition(":")[2]
        assert tag and tag != "latest", f"{base} may be another one tomorrow"
    user = last["USER"].split(":")[0]
    assert user.isdigit() and int(user) > 0, "not root, and by number, so that Kubernetes can tell"
    assert f"--uid {user} " in text and last["ENTRYPOINT"] == '["/usr/bin/ringhold"]'
    for run in (s[1] for s in steps if s[0] == "RUN" and "apt-get" in s[1]):
        assert run.index("apt-get update") < run.index("apt-get install"), "an old list would be taken from the cache"
        assert "-y --no-install-recommends" in run and "rm -rf /var/lib/apt/lists/*" in run
    assert "ADD" not in last, "COPY fetches nothing"
    assert f"ringhold:{text_of('VERSION').strip()}" in text


def the_package_is_built_with_what_the_build_needs(_binary):
    control = text_of("packaging", "debian", "control")
    builds = re.search(r"^Build-Depends:(.*?)\n\n", control, re.S | re.M).group(1)
    wanted = set(re.findall(r"^(\S+) +# (?:build\b|check: examples/store_)", text_of("packages.txt"), re.M)) - {"gcc", "libc6-dev", "make"}
    missing = wanted - {w.strip().split(" ")[0] for w in builds.split(",")}
    assert wanted and not missing, f"packaging/debian/control builds without {missing}"


def who_links_statically_has_what_that_takes(_binary):
    """What pkg-config --static says, is there with the development package."""
    libraries = re.search(r"^lib_libs := (.*)", text_of("Makefile"), re.M).group(1).replace("-l", "").split()
    brings = {"ssl": "libssl-dev", "crypto": "libssl-dev", "uv": "libuv1-dev", "sqlite3": "libsqlite3-dev", "nng": "libnng-dev",
              "protobuf-c": "libprotobuf-c-dev", "pthread": None, "dl": None, "m": None}  # fmt: skip
    control = text_of("packaging", "debian", "control")
    depends = re.search(r"^Package: libringhold-dev\n.*?^Depends:(.*?)^Desc", control, re.S | re.M).group(1)
    missing = {brings[name] for name in libraries} - {None} - set(re.split(r"[\s,]+", depends))
    assert not missing, f"libringhold-dev does not depend on {missing}"


main([
    the_objects_belong_together,
    the_fields_are_those_of_kubernetes,
    the_pods_are_modest_and_watched,
    the_pods_reach_each_other_and_names_alone,
    the_daemons_would_start,
    the_pods_are_a_fleet,
    the_dockerfile_keeps_the_rules,
    the_package_is_built_with_what_the_build_needs,
    who_links_statically_has_what_that_takes,
])  # fmt: skip
