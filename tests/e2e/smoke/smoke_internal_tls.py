#!/usr/bin/env python3
"""Links by TLS: nothing is said in the clear on any of a fleet's own ports, who has no good certificate is
refused, logged and counted, and certificates are replaced while all of it runs."""
import os
import re
import signal
import socket
import ssl
import sys
import urllib.request

sys.path.append(sys.path[0] + "/..")  # fleet.py and the like
from fleet import Fleet, Resp, free_port, main, until
from secured import Capture, Secured, expired, foreign, hello, talk

COORDINATOR, NODE, GATEWAY, CLI = 1, 2, 3, 4


def refusals(port):
    """{reason: count} of a daemon that has its --admin there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    rows = re.findall(r'^ringhold_link_refusals_total\{reason="(\w+)"\} (\d+)', text, re.M)
    return {reason: int(count) for reason, count in rows}


def port_of(process):
    return int(process.fields["address"].rsplit(":", 1)[1])


def nothing_is_said_in_the_clear(binary):
    if not Capture.possible():
        print("# needs CAP_NET_RAW: nobody listened")
        return
    with Secured(binary, "purple-cluster") as fleet:
        capture = Capture()
        fleet.coordinators(3)
        nodes = [fleet.node("node-alpha"), fleet.node("node-beta")]
        gateway = fleet.gateway("gateway-gamma", port=fleet.port())
        fleet.settled(["node-alpha", "node-beta"])
        redis = Resp(gateway.resp)
        for i in range(200):
            assert redis("SET", f"entity-{i}", f"the-payload-{i}") == "OK"
        nodes.append(fleet.node("node-delta"))  # values move, from node to node
        fleet.settled(["node-alpha", "node-beta", "node-delta"])
        for i in range(200):
            assert redis("GET", f"entity-{i}") == f"the-payload-{i}"
        assert fleet.status()["nodes"]
        streams = capture.stop()
        ports = {f"coordinator {i}": p for i, p in fleet.ports.items()}
        ports.update({n.name: port_of(n) for n in nodes})
        clear = [b"purple-cluster", b"entity-", b"the-payload-", b"node-alpha", b"gateway-gamma", b"ringhold"]
        for name, port in ports.items():
            mine = {k: s for k, s in streams.items() if port in k and s["whole"] and s["bytes"]}
            assert mine, f"nobody spoke to {name}"
            for (source, target), stream in mine.items():
                assert stream["bytes"][:2] == b"\x16\x03", (name, source, target, bytes(stream["bytes"][:40]))
                for word in clear:
                    assert word not in stream["bytes"], (name, word)
            print(f"# {name}: {len(mine)} streams, {sum(len(s['bytes']) for s in mine.values())} bytes, no word in the clear")
        seen = b"".join(bytes(s["bytes"]) for k, s in streams.items() if gateway.resp[1] in k)
        assert b"the-payload-7" in seen and b"entity-7" in seen  # of clients, who come without TLS: it does listen


def who_has_no_good_certificate_is_refused_logged_and_counted(binary):
    with Secured(binary) as fleet:
        admin = free_port()
        fleet.coordinators(1, extra=["--admin", f"127.0.0.1:{admin}"])
        node_admin = free_port()
        node = fleet.node("n1", ["--admin", f"127.0.0.1:{node_admin}"])
        fleet.gateway("g1")
        fleet.certificate("coordinator", "2")
        fleet.certificate("node", "n2")
        g1, n1, c2 = (os.path.join(fleet.tls, s) for s in ("gateway-g1", "node-n1", "coordinator-2"))
        bad_ca = foreign(fleet, "node", "n2")
        old = expired(fleet, n1)
        other = fleet.data("other")
        fleet.quietly("tls", "init", "--dir", other, "--cluster", "other")
        cases = (
            # what                                     reason            certificate  hello
            ("no certificate", "no_certificate", None, b""),
            ("a foreign CA", "untrusted", bad_ca, hello("ringhold", NODE, "n2")),
            ("an expired one", "expired", old, hello("ringhold", NODE, "n1")),
            ("a gateway's, as a coordinator", "role", g1, hello("ringhold", COORDINATOR, "1")),
            ("a gateway's, as an operator", "role", g1, hello("ringhold", CLI, "cli")),
            ("a node's, as a coordinator", "role", n1, hello("ringhold", COORDINATOR, "1")),
            ("a node's, as another node", "name", n1, hello("ringhold", NODE, "n2")),
            ("a coordinator's, as another", "name", c2, hello("ringhold", COORDINATOR, "1")),
        )
        for process, port, page in ((fleet.process("c1"), fleet.ports[1], admin), (node, port_of(node), node_admin)):
            for what, reason, stem, say in cases:
                before = refusals(page)[reason]
                talk(("127.0.0.1", port), say, stem)
                until(f"{what} is counted", lambda: refusals(page)[reason] > before)
                assert refusals(page)[reason] == before + 1, (process.name, what)
            for reason, words in (
                ("no_certificate", "the peer sent no certificate"),
                ("untrusted", "refusal=untrusted reason="),
                ("expired", "certificate has expired"),
            ):
                assert process.log_count(words) == 1, (process.name, reason, process.tail(20))
            assert process.log_has('address=127.0.0.1:'), process.tail()
            for claim in ("coordinator 1", "operator cli"):
                assert process.log_count(f"the certificate is for gateway g1, the hello for {claim}") == 1, process.tail(20)
            # Without TLS, and by an older one.
            before = refusals(page)
            with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
                plain.sendall(hello("ringhold", NODE, "n3"))
                while plain.recv(4096):
                    pass
            talk(("127.0.0.1", port), b"", n1, ssl.TLSVersion.TLSv1_2)
            until("both are counted", lambda: refusals(page)["tls_handshake"] > before["tls_handshake"])
            after = refusals(page)
            assert after["plaintext"] == before["plaintext"] + 1
            assert process.log_count("the peer does not use TLS") == 1, process.tail(20)
        # And who is what it says is let in: a node of TLS's own words gets a hello back.
        got = talk(("127.0.0.1", port_of(node)), hello("ringhold", GATEWAY, "g1"), g1)
        assert b"n1" in got and b"certificate" not in got, got
        # A whole daemon without certificates: it says what it met.
        before = refusals(admin)["plaintext"]
        words = ["node", "--name", "n9", "--join", fleet.addresses, "--data", fleet.data("n9")]
        plain = Fleet.start(fleet, "n9", words, ready=False)
        until("it is refused", lambda: refusals(admin)["plaintext"] > before)
        assert plain.running
        code, _, err = Fleet.run(fleet, "status", "--coordinators", fleet.addresses, "--timeout-ms", "500")
        assert code == 1 and "no coordinator answers" in err, err
        fleet.settled(["n1"])


def certificates_are_replaced_while_all_runs(binary):
    with Secured(binary) as fleet:
        fleet.coordinators(3)
        fleet.node("n1")
        fleet.node("n2")
        gateway = fleet.gateway("g1")
        fleet.settled(["n1", "n2"])
        redis = Resp(gateway.resp)
        assert redis("INCR", "a") == 1
        # Another authority: both are trusted first, then certificates are of the new one alone.
        new = fleet.data("new")
        fleet.quietly("tls", "init", "--dir", new, "--cluster", fleet.cluster)
        trusted = os.path.join(fleet.tls, "ca.pem")
        with open(trusted, "a") as both, open(os.path.join(new, "ca.pem")) as one:
            both.write(one.read())

        def hang_up():
            for p in fleet.processes:
                count = p.log_count("certificate_read")
                p.kill(signal.SIGHUP)
                until(f"{p.name} has read them", lambda p=p, count=count: p.log_count("certificate_read") > count)

        hang_up()
        for role, name in sorted(fleet.made):
            fleet.quietly("tls", role, name, "--dir", new)
            for end in ("key", "pem"):
                os.replace(os.path.join(new, f"{role}-{name}.{end}"), os.path.join(fleet.tls, f"{role}-{name}.{end}"))
        hang_up()
        with open(os.path.join(new, "ca.pem")) as one, open(trusted, "w") as only:
            only.write(one.read())
        hang_up()
        assert redis("INCR", "a") == 2
        # New connections are by the new ones: of a process that is killed, and of one that joins.
        fleet.process("c1").kill().wait()
        fleet.coordinator(1)
        os.replace(os.path.join(new, "ca.key"), os.path.join(fleet.tls, "ca.key"))
        fleet.node("n3")
        fleet.settled(["n1", "n2", "n3"])
        assert redis("INCR", "a") == 3
        # What is no pair is said, and changes nothing.
        key = os.path.join(fleet.tls, "node-n1.key")
        os.chmod(key, 0o644)
        fleet.process("n1").kill(signal.SIGHUP)
        until("n1 says so", lambda: fleet.process("n1").log_has("others may read or write the file: chmod 600"))
        assert redis("INCR", "a") == 4
        fleet.settled(["n1", "n2", "n3"])


def coordinators_join_by_certificates_of_their_own(binary):
    with Secured(binary) as fleet:
        fleet.coordinators(1)
        node = fleet.node("n1")
        gateway = fleet.gateway("g1")
        fleet.settled(["n1"])
        redis = Resp(gateway.resp)
        assert redis("INCR", "a") == 1
        joining = {i: f"{fleet.host(f'c{i}')}:{fleet.port()}" for i in (2, 3)}
        wish = ",".join(f"{i}={address}" for i, address in joining.items())

        def join(number, flags=()):
            words = ["coordinator", "--id", str(number), "--cluster", fleet.cluster, "--listen", joining[number]]
            words += ["--data", fleet.data(f"c{number}"), "--join-group"]
            return fleet.start(f"c{number}", [*words, *flags])

        join(2)
        stem = foreign(fleet, "coordinator", "3")
        ca = os.path.join(os.path.dirname(stem), "ca.pem")
        impostor = join(3, ["--link-ca", ca, "--link-certificate", f"{stem}.pem", "--link-key", f"{stem}.key"])
        code, _, err = fleet.run(
            "coordinators", "add", wish, "--coordinators", fleet.addresses, "--cluster", fleet.cluster
        )
        assert code == 1 and "coordinator 3: no answer" in err, (code, err)
        impostor.kill().wait()
        join(3)
        fleet.tell("coordinators", "add", wish)

        def three_are_linked():
            rows = fleet.ask("coordinators", "list")
            return [row["id"] for row in rows if row["linked"] == "yes"] == [1, 2, 3]

        until("three coordinators vote", three_are_linked)
        for process in (node, gateway):
            until(f"{process.name} has learnt both", lambda p=process: p.log_count("coordinator_learnt") == 2)
        fleet.process("c1").kill().wait()
        fleet.ports = {i: int(address.rsplit(":", 1)[1]) for i, address in joining.items()}
        until("another one leads", lambda: any(row["leader"] == "yes" for row in fleet.ask("coordinators", "list")))
        fleet.settled(["n1"])
        assert redis("INCR", "a") == 2
        assert node.running


def what_would_be_refused_does_not_start(binary):
    with Secured(binary) as fleet:
        fleet.ports = {1: free_port()}
        stem = fleet.certificate("gateway", "g1")
        node = ["node", "--name", "n1", "--check-config"]
        for words, why in (
            (node + fleet.flags(stem), "the certificate is for ringhold://ringhold/gateway/g1, but this is node n1"),
            (node + fleet.flags(stem)[:4], "give all three or none"),
            (node + ["--listen", "0.0.0.0:7501"], "beyond loopback, unencrypted"),
            (["status", *fleet.flags(stem)], "the certificate is for ringhold://ringhold/gateway/g1, but this is operator cli"),
            (["gateway", "--name", "g2", "--check-config", *fleet.flags(stem)], "but this is gateway g2"),
        ):
            code, out, err = Fleet.run(fleet, *words)
            assert code == 1 and why in err, (words, out, err)
        n1 = fleet.certificate("node", "n1")
        code, out, err = Fleet.run(fleet, *node, "--listen", "0.0.0.0:7501", *fleet.flags(n1))
        assert code == 0, err  # without --insecure
        # The same from one section for all, and from the environment.
        path = fleet.data("ringhold.ini")
        with open(path, "w") as f:
            f.write(f"[tls]\nca = {fleet.tls}/ca.pem\ncertificate = {n1}.pem\nkey = {n1}.key\n[node]\nname = n1\n"
                    f"listen = 0.0.0.0:7501\n")
        code, out, err = Fleet.run(fleet, "config", "check", path)
        assert (code, out) == (0, "[node] is fine\n"), err
        with open(path, "a") as f:
            f.write("[tls]\ncrl = none\n")
        code, out, err = Fleet.run(fleet, "config", "check", path)
        assert code == 1 and ":9: crl: unknown key" in err, err
        os.chmod(f"{n1}.key", 0o640 | 0o004)
        code, out, err = Fleet.run(fleet, *node, *fleet.flags(n1))
        assert code == 1 and "chmod 600" in err, err


main([
    nothing_is_said_in_the_clear,
    who_has_no_good_certificate_is_refused_logged_and_counted,
    certificates_are_replaced_while_all_runs,
    coordinators_join_by_certificates_of_their_own,
    what_would_be_refused_does_not_start,
])
