/* SPDX-License-Identifier: Apache-2.0
 *
 * A client of docs/protocol-client.md by hand: the package ws, and bytes. The actor is tests/plugins/pusher.c.
 *
 *     by_hand.mjs URL          ws is found from the current folder; NODE_EXTRA_CA_CERTS says whom wss trusts
 */
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const WebSocket = createRequire(`${process.cwd()}/`)("ws");
const ID = "hand";

/** Type, u24 size, body. */
function packet(type, ...parts) {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "hex") : part)));
  const head = Buffer.alloc(4);
  head.writeUInt32BE(type * 0x1000000 + body.length);
  return Buffer.concat([head, body]);
}

/** u32 name, flags, size of the id, kind 0, id, payload. */
function asking(type, name, payload = "") {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(name);
  head.writeUInt8(ID.length, 5);
  return packet(type, head, Buffer.from(ID), Buffer.from(payload));
}

class Talk {
  constructor(url) {
    this.kept = []; // messages that nobody took yet
    this.wake = null;
    this.socket = new WebSocket(url, "ringhold.v1");
    this.socket.on("message", (data, isBinary) => {
      assert.ok(isBinary);
      assert.equal(data.length, 4 + data.readUIntBE(1, 3)); // one packet a message
      this.kept.push(data);
      this.wake?.();
    });
    this.closed = new Promise((done) => {
      this.socket.on("close", done);
    });
    this.opened = new Promise((done, failed) => {
      this.socket.on("open", done);
      this.socket.on("error", failed);
    });
  }

  send(...packets) {
    for (const one of packets) this.socket.send(one);
  }

  /** The body of the next message of this type; others wait for their turn. */
  async next(type) {
    for (;;) {
      const at = this.kept.findIndex((message) => message[0] === type);
      if (at >= 0) return this.kept.splice(at, 1)[0].subarray(4);
      await new Promise((done) => {
        this.wake = done;
      });
    }
  }

  /** Name, status and payload of the next response. */
  async answer() {
    const body = await this.next(7);
    return [body.readUInt32BE(0), body.readUInt8(4), body.subarray(9).toString()];
  }

  async push() {
    const body = await this.next(9);
    return [Number(body.readBigUInt64BE(0)), body.subarray(8).toString()];
  }
}

const [url] = process.argv.slice(2);
const talk = new Talk(url);
await talk.opened;
assert.equal(talk.socket.protocol, "ringhold.v1");
talk.send(Buffer.from("01000006524801010000", "hex"));
const ack = await talk.next(2);
assert.equal(ack.readUInt8(0), 1);

talk.send(asking(11, 1));
assert.deepEqual(await talk.answer(), [1, 0, ""]);
assert.deepEqual(await talk.push(), [1, "hello"]);
talk.send(asking(6, 2, "push one"), asking(6, 3, "events"), asking(8, 4, "push two"));
assert.deepEqual(await talk.answer(), [2, 0, "0"]);
assert.deepEqual(await talk.answer(), [3, 0, "BOUND"]);
assert.deepEqual(await talk.push(), [2, "one"]);
assert.deepEqual(await talk.push(), [3, "two"]);

talk.send(packet(3, "616263"));
assert.equal((await talk.next(4)).toString(), "abc");
const ponged = new Promise((done) => {
  talk.socket.once("pong", done);
});
talk.socket.ping("of WebSocket");
assert.equal((await ponged).toString(), "of WebSocket");

talk.send(packet(99));
assert.equal((await talk.next(5)).readUInt32BE(0), 100);
assert.equal(await talk.closed, 1000);

const wrong = new Talk(url);
await wrong.opened;
wrong.socket.send("text");
assert.equal(await wrong.closed, 1003);

const bye = new Talk(url);
await bye.opened;
bye.socket.close(1000, "bye");
assert.equal(await bye.closed, 1000);
console.log("all right");
