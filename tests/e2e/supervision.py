"""What the shipped units promise, shown by a systemd that runs them. `root` is a Booted of debian.py with the three started."""
import os
import re

from fleet import healthy, until

ROLES = ("coordinator", "node", "gateway")
UNITS = [f"ringhold-{role}" for role in ROLES]
EXPOSURE_MAX = {"ringhold-coordinator": 1.1, "ringhold-node": 1.3, "ringhold-gateway": 1.4}
CAP_NET_BIND_SERVICE = 1 << 10
INI = "/etc/ringhold/ringhold.ini"
DRAIN = "/etc/systemd/system/ringhold-node.service.d/drain.conf"


def pid_of(root, unit):
    return root.property(unit, "MainPID")


def signal(root, unit, name):
    root.says("sh", "-c", f"kill -{name} {pid_of(root, unit)}")


def drop_in(root, path, text):
    root.shell(f"mkdir -p {os.path.dirname(path)}")
    root.write(path, text)
    root.says("systemctl", "daemon-reload")


def each_is_watched(root):
    for unit in UNITS:
        assert root.property(unit, "Type") == "notify" and root.property(unit, "ActiveState") == "active"
        until(f"{unit} says so", lambda u=unit: root.property(u, "StatusText") == "ready")
        fed = root.property(unit, "WatchdogTimestampMonotonic")
        until(f"{unit} feeds its watchdog", lambda u=unit, f=fed: root.property(u, "WatchdogTimestampMonotonic") != f)
        assert 'Status: "ready"' in root.says("systemctl", "status", "--no-pager", unit)
    return "active when ready, status shown, watchdog fed"


def the_killed_come_back(root):
    """Also what begins before the coordinators are back."""
    for unit in UNITS:
        before = int(root.property(unit, "NRestarts"))
        signal(root, unit, "KILL")
        root.restarted(unit, before)
    root.settled(["game-1"])
    healthy(root)
    assert root.says("redis-cli", "-p", "6380", "SET", "ada", "36").strip() == "OK"
    return "killed with -9, each is started again, and they are a fleet"


def the_hung_are_replaced(root):
    before = int(root.property("ringhold-gateway", "NRestarts"))
    signal(root, "ringhold-gateway", "STOP")
    root.restarted("ringhold-gateway", before)
    assert "Watchdog timeout" in root.unit_log("ringhold-gateway")
    return "a gateway that hangs is ended by the watchdog and started again"


def incarnations(root):
    return set(re.findall(r"node serving node=game-1 incarnation=(\d+)", root.unit_log("ringhold-node")))


def the_fenced_come_back(root):
    """With game-2 beside it, which takes its ids."""
    before = int(root.property("ringhold-node", "NRestarts"))
    served = incarnations(root)
    signal(root, "ringhold-node", "STOP")
    root.settled(["game-2"])
    signal(root, "ringhold-node", "CONT")
    root.restarted("ringhold-node", before)
    assert incarnations(root) > served
    root.settled(["game-1", "game-2"])
    how = "75" if "status=75" in root.unit_log("ringhold-node") else "the watchdog's signal"
    return f"a node that stood still past its lease ends with {how} and joins again as a new one"


def a_drain_has_a_deadline(root):
    """Nobody is there to take its ids. What it had is lost, so the unit has failed."""
    root.says("systemctl", "stop", "--no-block", "ringhold-node")
    told = until("its drain is told", lambda: re.match(r"it leaves, \d+ vnodes.*", root.property("ringhold-node", "StatusText")))
    until("the drain was cut short", lambda: root.property("ringhold-node", "ActiveState") == "failed")
    assert root.property("ringhold-node", "ExecMainStatus") == "143"
    root.says("systemctl", "reset-failed", "ringhold-node")
    root.unit_start("ringhold-node")
    root.settled(["game-1"])
    return f'stopped alone, a node says "{told.group()}" until its deadline, and the unit has failed'


def others_stay_when_upgraded(root):
    before = [pid_of(root, unit) for unit in UNITS]
    root.apt("install", "--reinstall", *root.here)
    assert [pid_of(root, unit) for unit in UNITS] == before
    return "installed again, the packages restart nothing"


def a_variable_sets_one_thing(root):
    """A port that only root may have, given as `systemctl edit` does."""
    path = "/etc/systemd/system/ringhold-gateway.service.d/frames.conf"
    drop_in(root, path, "[Service]\nEnvironment=RINGHOLD_GATEWAY_FRAMES=127.0.0.1:81\n")
    root.says("systemctl", "restart", "ringhold-gateway")
    assert re.search(r": 0100007F:0051 \S+ 0A ", root.says("cat", "/proc/net/tcp")), "port 81 listens"
    root.shell(f"rm -r {os.path.dirname(path)} && systemctl daemon-reload && systemctl restart ringhold-gateway")
    return "a gateway listens on port 81"


def the_lease_is_watched(root, pid):
    """By a thread that goes before all others, if this machine lets systemd give that right."""
    if re.search(r"Max realtime priority +0 ", root.says("cat", f"/proc/{pid}/limits")):
        print("# no real-time priority here: systemd may not raise a limit (CAP_SYS_RESOURCE)")
        return
    threads = root.shell(f"for t in /proc/{pid}/task/*; do chrt -p ${{t##*/}}; done")
    assert threads.count("SCHED_FIFO") == 1, threads


def rights_are_taken_away(root):
    said = root.shell("systemd-analyze verify " + " ".join(f"{u}.service" for u in UNITS) + " 2>&1")
    assert "ringhold" not in said, said
    exposed = {}
    for unit in UNITS:
        text = root.says("systemd-analyze", "security", "--no-pager", unit)
        exposed[unit] = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", text).group(1))
        assert exposed[unit] <= EXPOSURE_MAX[unit], text
        pid = pid_of(root, unit)
        state = dict(s.split(":\t", 1) for s in root.says("cat", f"/proc/{pid}/status").splitlines() if ":\t" in s)
        caps = CAP_NET_BIND_SERVICE if unit == "ringhold-gateway" else 0
        assert [int(state[c], 16) for c in ("CapEff", "CapPrm", "CapBnd", "CapAmb")] == [caps] * 4, state
        assert (state["NoNewPrivs"], state["Seccomp"]) == ("1", "2"), state
        assert re.search(r"Max core file size +0 +0 ", root.says("cat", f"/proc/{pid}/limits"))
        inside = f"nsenter -t {pid} -m -- sh -c"
        for path in ("/etc", "/usr/bin", "/var/log", "/home", "/root"):
            root.shell(f"! {inside} 'touch {path}/x' 2>/dev/null")
        root.shell(f"{inside} 'touch /var/lib/ringhold/x && rm /var/lib/ringhold/x && ! test -e /dev/kmsg'")
    the_lease_is_watched(root, pid_of(root, "ringhold-node"))
    return "rights are taken away: exposure " + ", ".join(f"{u[9:]} {e}" for u, e in exposed.items())


# ---- links by TLS, as docs/security.md and operating.md say


def stop_all(root):
    assert root.unit_stop("ringhold-gateway") == 0
    assert root.unit_stop("ringhold-node") == 143
    assert root.unit_stop("ringhold-coordinator") == 0
    root.shell("systemctl reset-failed ringhold-node")


def start_all(root):
    for unit in UNITS:
        root.unit_start(unit)
    root.settled(["game-1"])
    healthy(root)


def certificates(root, *more):
    """Made where no process of the fleet is, and brought."""
    names = (("coordinator", "1"), ("node", "game-1"), ("gateway", "gw-1"))
    for role, name in names:
        root.says("ringhold", "tls", role, name, "--dir", "/root/ca", *more)
    keys = " ".join(f"/root/ca/{role}-{name}.{end}" for role, name in names for end in ("pem", "key"))
    root.shell(f"install -m 640 -g ringhold /root/ca/ca.pem {keys} /etc/ringhold")
    return {role: f"/etc/ringhold/{role}-{name}" for role, name in names}


def links_go_by_tls(root):
    with open(root.path(INI)) as f:
        plain = f.read()
    stop_all(root)
    root.says("ringhold", "tls", "init", "--cluster", "ringhold", "--dir", "/root/ca")
    root.says("ringhold", "tls", "operator", "alice", "--dir", "/root/ca")
    stems = certificates(root)
    text = plain + "\n[tls]\nca = /etc/ringhold/ca.pem\n"
    for role, stem in stems.items():
        text = text.replace(f"\n[{role}]\n", f"\n[{role}]\nlink-certificate = {stem}.pem\nlink-key = {stem}.key\n")
    root.write(INI, text)
    assert root.says("ringhold", "config", "check", INI).count("is fine") == 3
    mine = "/root/ca/operator-alice"
    root.environment = ["RINGHOLD_TLS_CA=/root/ca/ca.pem", f"RINGHOLD_TLS_CERTIFICATE={mine}.pem", f"RINGHOLD_TLS_KEY={mine}.key"]
    start_all(root)
    reloads(root)
    stop_all(root)
    root.environment = []
    root.write(INI, plain)
    root.shell(f"rm -r {os.path.dirname(DRAIN)} /root/ca /etc/ringhold/*.pem /etc/ringhold/*.key && systemctl daemon-reload")
    start_all(root)
    return "links by TLS, one certificate each; renewed, they are read at `systemctl reload`; no key is in the journal"


def reloads(root):
    before = [pid_of(root, unit) for unit in UNITS]
    certificates(root, "--renew")
    for unit in UNITS:
        root.says("systemctl", "reload", unit)
        until(f"{unit} has read its certificate", lambda u=unit: "certificate_read" in root.unit_log(u))
    assert [pid_of(root, unit) for unit in UNITS] == before
    healthy(root)
    journal = root.says("journalctl", "--no-pager", "-o", "cat")
    for key in root.shell("cat /etc/ringhold/*.key").splitlines():
        assert key.startswith("-----") or key not in journal


def done(text):
    print(f"ok - systemd: {text}", flush=True)


def shown(root):
    drop_in(root, DRAIN, "[Service]\nEnvironment=RINGHOLD_NODE_DRAIN=3s\n")  # from the next start on
    for case in (
        each_is_watched,
        the_killed_come_back,
        the_hung_are_replaced,
        a_drain_has_a_deadline,
        others_stay_when_upgraded,
        a_variable_sets_one_thing,
        rights_are_taken_away,
        links_go_by_tls,
    ):
        done(case(root))
