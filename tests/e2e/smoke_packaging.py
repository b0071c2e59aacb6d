#!/usr/bin/env python3
"""What is in packaging/ fits the program: the Kubernetes example's objects belong together and its daemons would start with
what they are given, the Dockerfile keeps the rules for one, and the Debian package is built with what the build needs.
Neither Kubernetes nor Docker runs here.
"""
import glob
import os
import re
import subprocess
import tempfile

from fleet import main

try:
    import yaml
except ImportError:
    yaml = None

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PACKAGING = os.path.join(ROOT, "packaging")
INSTRUCTIONS = set("FROM RUN COPY ADD USER WORKDIR VOLUME EXPOSE STOPSIGNAL ENTRYPOINT CMD ENV ARG LABEL SHELL HEALTHCHECK".split())


def text_of(*words):
    with open(os.path.join(ROOT, *words)) as f:
        return f.read()


def objects():
    found = []
    for path in sorted(glob.glob(os.path.join(PACKAGING, "kubernetes", "*.yaml"))):
        with open(path) as f:
            found += list(yaml.safe_load_all(f))
    for o in found:
        assert o["apiVersion"] and o["kind"] and o["metadata"]["name"] and o["spec"], o
    return found


def kind(found, *names):
    return [o for o in found if o["kind"] in names]


def picks(selector, labels):
    return selector and selector.items() <= labels.items()


def without_yaml():
    if yaml is None:
        print("# no python3-yaml here: the example was not looked at")
    return yaml is None


def the_objects_belong_together(_binary):
    if without_yaml():
        return
    found = objects()
    assert len({(o["kind"], o["metadata"]["name"]) for o in found}) == len(found), "two of one name"
    workloads = kind(found, "StatefulSet", "Deployment")
    assert {w["metadata"]["name"] for w in workloads} == {"coordinator", "game", "gateway"}
    services = {s["metadata"]["name"]: s["spec"] for s in kind(found, "Service")}
    labels = [w["spec"]["template"]["metadata"]["labels"] for w in workloads]
    for w, mine in zip(workloads, labels):
        name, spec = w["metadata"]["name"], w["spec"]
        assert picks(spec["selector"]["matchLabels"], mine), name
        if w["kind"] == "StatefulSet":
            assert services[spec["serviceName"]]["clusterIP"] == "None", f"{name}: its service has no names of pods"
        budgets = [b for b in kind(found, "PodDisruptionBudget") if picks(b["spec"]["selector"]["matchLabels"], mine)]
        assert [b["spec"]["maxUnavailable"] for b in budgets] == [1], name
    for what in kind(found, "Service"):
        assert sum(bool(picks(what["spec"]["selector"], mine)) for mine in labels) == 1, what["metadata"]
    for policy in kind(found, "NetworkPolicy"):
        assert any(picks(policy["spec"]["podSelector"]["matchLabels"], mine) for mine in labels), policy["metadata"]


def the_pods_are_modest_and_watched(binary):
    if without_yaml():
        return
    for w in kind(objects(), "StatefulSet", "Deployment"):
        pod = w["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        name = container["name"]
        image, _, tag = container["image"].partition(":")
        assert image == "ringhold" and tag == text_of("VERSION").strip(), f"{name}: {container['image']}"
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 7400
        inside = container["securityContext"]
        assert inside["readOnlyRootFilesystem"] and not inside["allowPrivilegeEscalation"]
        assert inside["capabilities"] == {"drop": ["ALL"]}
        ports = {p["name"] for p in container["ports"]}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"} and "admin" in ports
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
        volumes = {v["name"] for v in pod["volumes"]}
        volumes |= {c["metadata"]["name"] for c in w["spec"].get("volumeClaimTemplates", [])}
        assert {m["name"] for m in container["volumeMounts"]} == volumes, name
        stop = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [""])[-1]
        waits = re.search(r"ringhold (node drain) .*--wait (\d+)", stop)
        assert bool(waits) == (name == "node")
        if waits:
            shown = subprocess.run([binary, *waits.group(1).split(), "--help"], capture_output=True, text=True, check=True)
            assert "--wait SECONDS" in shown.stdout
            env = {e["name"]: e.get("value") for e in container["env"]}
            after = int(env["RINGHOLD_NODE_DRAIN"].removesuffix("s"))
            assert int(waits.group(2)) + after < pod["terminationGracePeriodSeconds"], "it would be killed as it drains"


def the_daemons_would_start(binary):
    """With each container's command and environment; secrets have the mode that they are mounted with."""
    if without_yaml():
        return
    with tempfile.TemporaryDirectory() as folder:
        for w in kind(objects(), "StatefulSet", "Deployment"):
            pod = w["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            mode = {v["secret"]["defaultMode"] for v in pod["volumes"]}
            env = {k: v for k, v in os.environ.items() if not k.startswith("RINGHOLD_")}
            for e in container["env"]:
                value = e.get("value") or {"metadata.name": "pod-0", "status.podIP": "10.1.2.3"}[
                    e["valueFrom"]["fieldRef"]["fieldPath"]
                ]
                value = re.sub(r"\$\((\w+)\)", lambda m, env=env: env[m.group(1)], value)
                if value.startswith("/etc/ringhold/"):
                    value = os.path.join(folder, os.path.basename(value))
                    with open(value, "w") as f:
                        f.write("k1 hex:" + "ab" * 32 + "\n")
                    os.chmod(value, mode.pop() if len(mode) == 1 else 0o440)
                    mode = {0o440}
                env[e["name"]] = value
            os.symlink(os.path.abspath(binary), os.path.join(folder, "ringhold"))
            env |= {"PATH": folder + ":" + os.environ["PATH"], "HOSTNAME": w["metadata"]["name"] + "-0"}
            words = list(container["command"])
            words = words[:2] + [words[2] + " --check-config"] if words[0] == "/bin/sh" else words + ["--check-config"]
            done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=30)
            assert done.returncode == 0 and "is fine" in done.stdout, (container["name"], done.stdout, done.stderr)
            os.unlink(os.path.join(folder, "ringhold"))


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
    wanted = set(re.findall(r"^(\S+) +# build\b", text_of("packages.txt"), re.M)) - {"gcc", "libc6-dev", "make"}
    missing = wanted - {w.strip().split(" ")[0] for w in builds.split(",")}
    assert wanted and not missing, f"packaging/debian/control builds without {missing}"


def who_links_statically_has_what_that_takes(_binary):
    """What pkg-config --static says, is there with the development package."""
    libraries = re.search(r"^lib_libs := (.*)", text_of("Makefile"), re.M).group(1).replace("-l", "").split()
    brings = {"ssl": "libssl-dev", "crypto": "libssl-dev", "uv": "libuv1-dev", "nng": "libnng-dev",
              "protobuf-c": "libprotobuf-c-dev", "pthread": None, "dl": None, "m": None}  # fmt: skip
    control = text_of("packaging", "debian", "control")
    depends = re.search(r"^Package: libringhold-dev\n.*?^Depends:(.*?)^Desc", control, re.S | re.M).group(1)
    missing = {brings[name] for name in libraries} - {None} - set(re.split(r"[\s,]+", depends))
    assert not missing, f"libringhold-dev does not depend on {missing}"


main([
    the_objects_belong_together,
    the_pods_are_modest_and_watched,
    the_daemons_would_start,
    the_dockerfile_keeps_the_rules,
    the_package_is_built_with_what_the_build_needs,
    who_links_statically_has_what_that_takes,
])  # fmt: skip
