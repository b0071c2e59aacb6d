# SPDX-License-Identifier: Apache-2.0
"""The packets are those of docs/protocol-client.md, and come out of a stream cut anywhere."""

import pathlib
import re
import struct
import unittest

from ringhold.packets import Flag, InvalidPacket, Packets, Type, asking, packet

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "protocol-client.md"
ROW = re.compile(r"^\| (\d+) \|[^|]*\|[^|]*\|[^|]*\| `([0-9a-f ]+)` \|$", re.MULTILINE)


class Bytes(unittest.TestCase):
    def setUp(self) -> None:
        self.page = {int(type_): bytes.fromhex(shown) for type_, shown in ROW.findall(PAGE.read_text())}

    def test_they_are_those_of_the_page(self) -> None:
        self.assertGreaterEqual(len(self.page), 12)
        made = {
            Type.HELLO: packet(Type.HELLO, struct.pack(">HBBH", 0x5248, 1, 1, 0)),
            Type.PING: packet(Type.PING, b"x"),
            Type.PONG: packet(Type.PONG, b"x"),
            Type.REQUEST: asking(Type.REQUEST, 0x01020304, b"boss", b"hit 7", kind=0x0506, flags=Flag.IDEMPOTENT),
            Type.NOTIFY: asking(Type.NOTIFY, 9, b"a", deadline_ms=2000),
            Type.UNBIND: packet(Type.UNBIND, struct.pack(">I", 9)),
            Type.AUTH: packet(Type.AUTH, b"rh1.k1.AA.BB"),
            Type.ACK: packet(Type.ACK, struct.pack(">QI", 5, 8)),
        }
        for type_, data in made.items():
            with self.subTest(type_):
                self.assertEqual(data.hex(), self.page[type_].hex())

    def test_a_stream_may_be_cut_anywhere(self) -> None:
        stream = b"".join(self.page.values())
        for cut in range(1, len(stream) + 1):
            packets = Packets()
            found = []
            for at in range(0, len(stream), cut):
                found += [packet(*p) for p in packets.take(stream[at : at + cut])]
            self.assertEqual(found, list(self.page.values()), f"cut by {cut}")

    def test_one_that_is_too_large_comes_out_as_an_error_behind_those_before(self) -> None:
        packets = Packets(10)
        found = packets.take(packet(3, b"x") + b"\x06\x00\x00\x0b")
        self.assertEqual(next(found), (3, b"x"))
        with self.assertRaises(InvalidPacket):
            next(found)
