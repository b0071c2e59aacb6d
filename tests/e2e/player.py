#!/usr/bin/env python3
"""examples/player.c in Python, for the same tests: what is typed goes to an actor, what it pushes is shown.

    player.py GATEWAY,GATEWAY KIND ID [TOKEN]

PLAYER_CA: certificates (PEM) that tls:// gateways are checked by.
"""
import asyncio
import os
import ssl
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "clients", "python"))
from ringhold import Client, RingholdError  # noqa: E402


def say(line):
    print(line, flush=True)


def text(payload):
    return payload.decode("utf-8", "replace")


class Player:
    def __init__(self, gateways, kind, name, token=""):
        context = ssl.create_default_context(cafile=os.environ["PLAYER_CA"]) if "PLAYER_CA" in os.environ else None
        self.client = Client(gateways, token=token, ssl=context)
        self.id, self.kind = name, int(kind)
        self.answers = set()
        self.kicked = asyncio.Event()
        self.client.on_known = lambda who: say(f"known {who.kind}  {text(who.id)}")
        self.client.on_rebound = self.rebound
        self.client.on_ready = lambda: say("ready")
        self.client.on_bound = lambda fresh: say(f"bound {'afresh' if fresh else 'again'}")
        self.client.on_push = lambda payload, sequence, lost: say(f"push {sequence} lost {lost}  {text(payload)}")
        self.client.on_goaway = lambda _, said: say(f"goaway {said}")
        self.client.on_lost = lambda why: say(f"lost {why}")
        self.client.on_begun = lambda: say("begun")
        self.client.on_refused = lambda error: say(f"refused {text(error.payload)}")
        self.client.on_kicked = self.sent_away

    def rebound(self, who):
        say(f"rebound {who.kind}  {text(who.id)}")
        self.id, self.kind = who.id, who.kind  # what is typed goes to that one from here on

    def sent_away(self, error):
        say(f"kicked {error.code}  {error}")
        self.kicked.set()

    def heard(self, answer):
        self.answers.discard(answer)
        error = answer.exception()
        if error is None:
            say(f"answer OK  {text(answer.result())}")
        elif isinstance(error, RingholdError):
            say(f"answer {error.status.name}  {text(error.payload)}")

    async def bind(self):
        try:
            await self.client.bind(self.id, kind=self.kind)
        except RingholdError as error:
            say(f"refused {text(error.payload)}")

    async def lines(self):
        reader = asyncio.StreamReader(limit=1 << 20)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := (await reader.readline()).decode():
            line = line.rstrip("\n")
            if line.startswith("!"):
                self.client.notify(self.id, line[1:], kind=self.kind)
                continue
            answer = self.client.request(self.id, line, kind=self.kind)
            self.answers.add(answer)
            answer.add_done_callback(self.heard)
        while self.answers:
            await asyncio.wait(self.answers)
            await asyncio.sleep(0)

    async def play(self):
        tasks = [asyncio.create_task(run) for run in (self.bind(), self.client.connect())]
        ends = [asyncio.create_task(run) for run in (self.lines(), self.kicked.wait())]
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        self.client.close()
        for task in done:
            task.result()
        await asyncio.gather(*tasks, return_exceptions=True)


asyncio.run(Player(*sys.argv[1:]).play())
