# SPDX-License-Identifier: Apache-2.0
"""Messages and frames, written and read."""

import unittest

from ringhold_host import Error, kinds, wire
from ringhold_host.wire import Fields, Frames, Malformed, Says


class Wire(unittest.TestCase):
    def test_numbers_come_back(self) -> None:
        for value in (0, 1, 127, 128, 300, 1 << 32, (1 << 64) - 1):
            self.assertEqual(Fields(wire.uint(3, value)).uint(3), value)
        self.assertEqual(wire.uint(1, 0), b"")
        self.assertEqual(wire.uint(1, 150), b"\x08\x96\x01")
        self.assertEqual([wire.sint(3, v) for v in (0, -1, 1, -42)], [b"\x18\x00", b"\x18\x01", b"\x18\x02", b"\x18\x53"])
        self.assertEqual(wire.sint(3, -(1 << 63)), b"\x18" + b"\xff" * 9 + b"\x01")

    def test_numbers_that_have_no_place_are_refused(self) -> None:
        for value, bits in ((-1, 64), (1 << 64, 64), (1 << 32, 32), (65536, 16)):
            with self.assertRaises(ValueError):
                wire.uint(1, value, bits)
        with self.assertRaises(ValueError):
            wire.sint(1, 1 << 63)
        with self.assertRaises(TypeError):
            wire.data(1, "text")  # type: ignore[arg-type]

    def test_what_does_not_decode_is_malformed(self) -> None:
        for bad in (b"\x08", b"\x0a\x05abc", b"\x0b", b"\x00\x00", b"\x09abc", b"\x0d\x00", b"\xff" * 11, b"\x08" + b"\x80" * 10 + b"\x01"):
            with self.assertRaises(Malformed, msg=bad.hex()):
                Fields(bad)

    def test_fields_of_another_type_or_a_later_version_are_ignored(self) -> None:
        f = Fields(b"\x08\x05" + b"\x12\x02hi" + b"\x19" + b"x" * 8 + b"\x25" + b"x" * 4 + wire.whole(1007, b"later"))
        self.assertEqual((f.uint(1), f.data(2), f.uint(3), f.data(4)), (5, b"hi", 0, b""))
        self.assertEqual((f.data(1), f.uint(2), f.all(1)), (b"", 0, []))
        self.assertEqual(wire.said(wire.whole(3, b"\x08\x01") + wire.uint(1006, 7))[0], Says.PING)
        for nothing in (b"", wire.whole(99, b""), wire.uint(3, 1)):
            with self.assertRaises(Malformed):
                wire.said(nothing)

    def test_ids_are_any_bytes(self) -> None:
        for name in (b"ann", "ärger".encode(), b"\xff\x00\xfe"):
            self.assertEqual(wire.text(wire.string(name)), name)

    def test_frames_come_in_pieces(self) -> None:
        stream = b"".join(len(f).to_bytes(4, "big") + f for f in (b"", b"one", b"x" * 100000, b"two"))
        for size in (1, 3, 5, 70000, len(stream)):
            frames = Frames()
            came = [f for i in range(0, len(stream), size) for f in frames.feed(stream[i : i + size])]
            self.assertEqual([len(f) for f in came], [0, 3, 100000, 3])
            self.assertEqual(came[3], b"two")
        with self.assertRaises(Malformed):
            list(Frames().feed(b"\xff\xff\xff\xff"))

    def test_messages_are_cut_into_frames(self) -> None:
        says = [bytes([i]) * 100000 for i in range(10)]
        frames = list(wire.frames(says))
        self.assertEqual(len(frames), 4)
        cut = Frames()
        self.assertEqual([m for f in cut.feed(b"".join(frames)) for m in Fields(f).all(1)], says)
        self.assertEqual(list(wire.frames([])), [])

    def test_errors_have_a_code(self) -> None:
        for text, told in (("NOITEM you have 1", "NOITEM you have 1"), ("no such thing", "ERR no such thing"), ("", "ERR ")):
            self.assertEqual(str(Error(text)), told)
        self.assertEqual(wire.line("a\r\nb\0"), b"a  b ")

    def test_each_type_of_answer(self) -> None:
        told = [kinds.put_answer(a) for a in (b"", "OK", -42, True, None)]
        self.assertEqual(told, [b"\x0a\x00", b"\x12\x02OK", b"\x18\x53", b"\x18\x02", b"\x20\x01"])
        with self.assertRaises(TypeError):
            kinds.put_answer([])  # type: ignore[arg-type]
