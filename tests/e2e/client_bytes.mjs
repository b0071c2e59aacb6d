/* SPDX-License-Identifier: Apache-2.0
 *
 * The JavaScript client's packets are those of docs/protocol-client.md, and come out of a stream cut anywhere.
 *
 *     client_bytes.mjs PAGE
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Packets, RingholdError, Status, Type, asking, bytes, packet, text } from "../../clients/js/ringhold.js";

const hex = (data) => Buffer.from(data).toString("hex");
const page = readFileSync(process.argv[2], "utf8");
const examples = new Map();
for (const [, type, shown] of page.matchAll(/^\| (\d+) \|[^|]*\|[^|]*\|[^|]*\| `([0-9a-f ]+)` \|$/gm)) {
  examples.set(Number(type), shown.replaceAll(" ", ""));
}
assert.ok(examples.size >= 12, "the page has examples");

const boss = bytes("boss");
const made = new Map([
  [Type.HELLO, packet(Type.HELLO, [2, 0x5248], [1, 1], [1, 1], [2, 0])],
  [Type.PING, packet(Type.PING, bytes("x"))],
  [Type.PONG, packet(Type.PONG, bytes("x"))],
  [Type.REQUEST, asking(Type.REQUEST, 0x01020304, boss, { kind: 0x0506, flags: 1 }, bytes("hit 7"))],
  [Type.NOTIFY, asking(Type.NOTIFY, 9, bytes("a"), { deadlineMs: 2000 })],
  [Type.UNBIND, packet(Type.UNBIND, [4, 9])],
  [Type.AUTH, packet(Type.AUTH, bytes("rh1.k1.AA.BB"))],
  [Type.ACK, packet(Type.ACK, [8, 5n], [4, 8])],
]);
for (const [type, data] of made) assert.equal(hex(data), examples.get(type), `type ${type}`);

const stream = Buffer.from([...examples.values()].join(""), "hex");
for (let cut = 1; cut <= stream.length; cut++) {
  const packets = new Packets();
  const found = [];
  for (let at = 0; at < stream.length; at += cut) found.push(...packets.take(new Uint8Array(stream.subarray(at, at + cut))));
  assert.deepEqual(found.map((p) => hex(packet(p.type, p.body))), [...examples.values()], `cut by ${cut}`);
}
assert.throws(() => new Packets(10).take(new Uint8Array([6, 0, 0, 11])).next(), RangeError);
assert.throws(() => bytes(7), TypeError);
assert.equal(text(bytes("übel")), "übel");
assert.deepEqual(bytes(new Uint16Array([1, 2]).subarray(1)), new Uint8Array([2, 0]));

const said = new RingholdError(Status.MOVING, bytes("no"), 100);
assert.deepEqual([said.code, said.mayHaveRun, said.retryMs, said.message], ["MOVING", false, 100, "MOVING: no"]);
assert.equal(new RingholdError(Status.TIMEOUT).mayHaveRun, true);
assert.equal(new RingholdError(200).mayHaveRun, true);
assert.equal(new RingholdError(200).code, "UNKNOWN");
