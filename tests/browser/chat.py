#!/usr/bin/env python3
"""examples/web-chat in Chromium: three tabs talk while every node and both gateways are restarted, over ws and wss.

    chat.py BINARY [CASE]        playwright-core and screenshots are in build/browser; make browser does all that

Each tab must show each line once, in the room's order.
"""
import json
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

import certificates  # noqa: E402
from fleet import Fleet, free_port, main, until  # noqa: E402

FOLDER = os.path.normpath(os.path.join(HERE, "..", "..", "build", "browser"))
CHAT = os.path.normpath(os.path.join(HERE, "..", "..", "examples", "web-chat"))
NODE = shutil.which("node") or shutil.which("nodejs")
NODES, GATEWAYS = ("n1", "n2", "n3"), ("g1", "g2")
TABS = {"ada": (1280, 800), "bob": (1024, 768), "eve": (390, 844)}  # eve has a phone
EVERY_MS = 100
MORE = 20  # lines that each tab says between two restarts


class Tabs:
    def __init__(self):
        self.popen = subprocess.Popen(
            [NODE, os.path.join(HERE, "tabs.mjs")], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.popen.stdin.close()
        try:
            self.popen.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def __call__(self, what, tab=None, **more):
        self.popen.stdin.write(json.dumps({"do": what, "tab": tab, **more}) + "\n")
        self.popen.stdin.flush()
        line = self.popen.stdout.readline()
        assert line, f"the browser's driver has ended: {what} {tab}"
        answer = json.loads(line)
        assert "error" not in answer, (what, tab, answer)
        return answer["ok"]


class Chat:
    """A fleet with the chat, and its page."""

    def __init__(self, fleet, scheme="ws", gateway=(), serve=()):
        self.fleet, self.scheme, self.extra = fleet, scheme, list(gateway)
        fleet.coordinators(1)
        for name in NODES:
            self.node(name)
        self.ports = {name: free_port() for name in GATEWAYS}
        for name in GATEWAYS:
            self.gateway(name)
        fleet.settled(NODES)
        urls = ",".join(f"{scheme}://127.0.0.1:{port}/" for port in self.ports.values())
        words = [os.path.join(CHAT, "serve.mjs"), "--listen", "127.0.0.1:0", "--gateways", urls, *serve]
        self.url = f"http://{fleet.start('page', words, program=NODE).fields['http']}/"

    def node(self, name):
        return self.fleet.node(name, ["--lua", os.path.join(CHAT, "chat.lua")])

    def gateway(self, name):
        return self.fleet.gateway(name, [f"--{self.scheme}", f"127.0.0.1:{self.ports[name]}", *self.extra])

    def restart(self, name, start, number=signal.SIGTERM):
        process = self.fleet.process(name)
        code = process.kill(number).wait()
        assert code == (0 if number == signal.SIGTERM else -number), (name, code, process.tail())
        start(name)


def all_say_more(tabs, count=MORE):
    """Until each has said so many lines more, and all tabs show all that was said until then."""
    goals = {tab: tabs("state", tab)["said"] + count for tab in TABS}
    until("they talk", lambda: all(tabs("state", tab)["said"] >= goal for tab, goal in goals.items()), pause=0.1)

    def shown(reader):
        counts = {}
        for _, who, number, _ in tabs("lines", reader):
            counts[who] = number
        return all(counts.get(tab, 0) >= goal for tab, goal in goals.items())

    until("all is shown", lambda: all(shown(tab) for tab in TABS), pause=0.1)


def check_all(tabs, said):
    """No line lost, twice or out of order, in any tab."""

    def done():
        return all((s := tabs("state", tab))["unsaid"] == 0 and s["state"] == "ready" for tab in TABS)

    until("all is said", done, pause=0.1)
    total = sum(said.values())

    def spoken(tab):
        return [line for line in tabs("lines", tab) if line[1] != "*"]

    until("all is shown", lambda: all(len(spoken(tab)) >= total for tab in TABS), pause=0.1)
    first = None
    for tab in TABS:
        lines = tabs("lines", tab)
        numbers = [line[0] for line in lines]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{tab}: {numbers}"
        for who, count in said.items():
            right = [[n, f"{who} says {n}"] for n in range(1, count + 1)]
            assert [line[2:] for line in lines if line[1] == who] == right, f"{tab} shows of {who}: {lines}"
        assert len(spoken(tab)) == total, (tab, len(spoken(tab)), total)
        first = first or spoken(tab)
        assert spoken(tab) == first, f"{tab} shows another order than ada"
        state = tabs("state", tab)
        assert not state["errors"], state
        assert state["lost"] == "0" and state["atEnd"], state
        print(f"# {tab}: {len(lines)} lines; session {state['session']}, at {state['gateway']}")


def they_talk_through_restarts(chat, tabs, name):
    for tab, (width, height) in TABS.items():
        tabs("open", tab, url=f"{chat.url}?name={tab}&room=lobby", width=width, height=height)
    for tab in TABS:
        tabs("start", tab, everyMs=EVERY_MS)
    all_say_more(tabs)
    for node in NODES:
        chat.restart(node, chat.node)
        chat.fleet.settled(NODES)
        all_say_more(tabs)
    for gateway in GATEWAYS:
        chat.restart(gateway, chat.gateway)
        all_say_more(tabs)
    sessions = {tab: tabs("state", tab)["session"] for tab in TABS}
    # Both were stopped, so each tab had to leave its own; and no session was begun anew for that.
    assert all(words.startswith("resumed") for words in sessions.values()), sessions
    chat.restart("g1", chat.gateway, signal.SIGKILL)
    all_say_more(tabs)
    check_all(tabs, {tab: tabs("stop", tab) for tab in TABS})
    tabs("shot", "ada", path=os.path.join(FOLDER, f"chat-{name}-desktop.png"))
    tabs("shot", "eve", path=os.path.join(FOLDER, f"chat-{name}-phone.png"))


def over_ws(binary):
    with Fleet(binary) as fleet, Tabs() as tabs:
        they_talk_through_restarts(Chat(fleet), tabs, "ws")


def over_wss(binary):
    """The same encrypted, by a certificate that Chromium is told to take."""
    with Fleet(binary) as fleet, Tabs() as tabs:
        chain, key = certificates.make(fleet, "chat")
        they_talk_through_restarts(Chat(fleet, "wss", ["--tls-cert", chain, "--tls-key", key]), tabs, "wss")


def with_tokens(binary):
    """A page that gives out tokens: tabs come in by hand, one replaces another, and one is loaded again."""
    with Fleet(binary) as fleet, Tabs() as tabs:
        path = fleet.data("keys")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
            f.write(f"# made for this test\nk1 hex:{'5a' * 32}\n")
        chat = Chat(fleet, gateway=["--auth-keys", path], serve=["--keys", path])
        tabs("join", "desk", url=chat.url, name="ada", room="lobby", width=1280, height=800)
        tabs("start", "desk", everyMs=EVERY_MS)
        until("she talks", lambda: tabs("state", "desk")["lines"] > 3)
        tabs("stop", "desk")
        until("all is said", lambda: tabs("state", "desk")["unsaid"] == 0)
        tabs("reload", "desk")
        until("she is back", lambda: tabs("state", "desk")["lines"] > 3)
        assert not tabs("state", "desk")["errors"]
        tabs("join", "phone", url=chat.url, name="ada", room="lobby", width=390, height=844)
        until("the first is told", lambda: tabs("state", "desk")["state"] == "ended")
        assert "another tab" in tabs("state", "desk")["words"]
        tabs("shot", "desk", path=os.path.join(FOLDER, "chat-replaced.png"))
        assert tabs("lines", "desk") == tabs("lines", "phone")[: tabs("state", "desk")["lines"]]


if __name__ == "__main__":
    main([over_ws, over_wss, with_tokens])
