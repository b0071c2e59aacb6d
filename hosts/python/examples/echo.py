# SPDX-License-Identifier: Apache-2.0
"""The least host: actors that answer what they are asked.

    ringhold node --name n1 --host unix:/tmp/host.sock --kind 0:host=echo
    PYTHONPATH=hosts/python python3 hosts/python/examples/echo.py unix:/tmp/host.sock
"""

import asyncio
import sys

from ringhold_host import Actor, Answer, Host, Message, Turn


class Echo(Actor, kind="echo"):
    async def receive(self, turn: Turn, message: Message) -> Answer:
        return message.payload


if __name__ == "__main__":
    asyncio.run(Host(sys.argv[1], [Echo], name="echo").run())
