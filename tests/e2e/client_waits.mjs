/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the JavaScript client waits, with a clock and a line of this test: nothing that a gateway says makes it
 * come back at once again and again, or never.
 */
import assert from "node:assert/strict";
import { Client, Type, packet } from "../../clients/js/ringhold.js";

let now = 1000;
const timers = new Map();
let drawn = 0;
globalThis.Date.now = () => now;
globalThis.setTimeout = (run, ms) => {
  assert.ok(ms >= 0 && ms < 2 ** 31, `a timer of ${ms} ms`); // Node takes a longer one for 1 ms
  timers.set(++drawn, { run, at: now + ms });
  return drawn;
};
globalThis.clearTimeout = (timer) => timers.delete(timer);

/** The next timer, and how long it was waited for. */
function pass() {
  const [timer, { run, at }] = [...timers].reduce((a, b) => (b[1].at < a[1].at ? b : a));
  const waited = at - now;
  timers.delete(timer);
  now = at;
  run();
  return waited;
}

const sockets = [];
class Line {
  sent = [];
  bufferedAmount = 0;
  constructor() {
    sockets.push(this);
  }
  send(data) {
    this.sent.push(data);
  }
  close() {
    this.closed = true;
  }
  hears(...parts) {
    this.onmessage({ data: packet(...parts).buffer });
  }
  greets(largest = 65536) {
    this.onopen({});
    this.hears(Type.HELLO_ACK, [1, 1], [1, 0], [2, 0], [4, 0], [4, largest], [4, 1024], [8, 1]);
  }
}

/** Let time pass until it dials; how long that took. */
function dials() {
  const before = sockets.length;
  let waited = 0;
  while (sockets.length === before) waited += pass();
  return waited;
}

const client = new Client("ws://a/", { WebSocket: Line, random: () => 0.999 });
client.connect();
dials();

// A gateway that greets and hangs up is as good as none.
const waits = [];
for (let i = 0; i < 8; i++) {
  const line = sockets.at(-1);
  line.greets();
  assert.equal(client.state, "ready");
  line.onclose({ code: 1006 });
  waits.push(dials());
}
for (let i = 1; i < 6; i++) assert.ok(waits[i] > 1.9 * waits[i - 1], `${waits}`);
assert.ok(waits[7] > 9000 && waits[7] <= 10000, `${waits}`);

// One that lasted ends the row.
sockets.at(-1).greets();
now += 10000;
sockets.at(-1).onclose({ code: 1006 });
assert.ok(dials() <= 200);

// Nobody is sent away for longer than an hour, and the two that this may be drawn out to.
sockets.at(-1).greets();
sockets.at(-1).hears(Type.GOAWAY, [4, 0xffffffff]);
const away = dials();
assert.ok(away >= 3600e3 && away <= 7200e3, `${away}`);

// It answers no pings of one that doesn't read.
const deaf = sockets.at(-1);
deaf.greets();
const before = deaf.sent.length;
deaf.hears(Type.PING, new Uint8Array(64));
assert.equal(deaf.sent.length, before + 1);
deaf.bufferedAmount = 1 << 20;
for (let i = 0; i < 1000; i++) deaf.hears(Type.PING, new Uint8Array(64));
assert.equal(deaf.sent.length, before + 1);
deaf.hears(Type.PING, new Uint8Array(65));
assert.ok(deaf.closed, "a ping of 65 bytes makes no sense");
