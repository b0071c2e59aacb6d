# SPDX-License-Identifier: Apache-2.0
"""A client at the gateways of a Ringhold fleet, for bots, tools and services written in Python.

    from ringhold import Client

    async with Client(["tls://eu1.example:7000", "tls://eu2.example:7000"], token=token) as client:
        client.on_push = lambda payload, sequence, lost: print(payload)
        await client.bind("player-42", kind=7)
        answer = await client.request("player-42", b"buy sword", kind=7)

It needs nothing but Python's own library. docs/clients.md says what it does when lines drop and gateways stop.
"""

from .client import Client, Entity, KickedError, RingholdError
from .packets import Status

__all__ = ["Client", "Entity", "KickedError", "RingholdError", "Status"]
