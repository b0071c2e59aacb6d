/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the JavaScript client waits, with a clock and a line of this test: nothing that a gateway says makes it
 * come back at once again and again, or never. And that nothing a game does wrong disturbs it.
 */
import assert from "node:assert/strict";
import { Client, Type, packet } from "../../clients/js/ringhold.js";

let now = 1000;
const timers = new Map();
let drawn = 0;
globalThis.performance.now = () => now;
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

// A heartbeat of no gateway is a second.
dials();
const hasty = sockets.at(-1);
hasty.onopen({});
hasty.hears(Type.HELLO_ACK, [1, 1], [1, 0], [2, 0], [4, 1], [4, 65536], [4, 1024], [8, 1]);
const met = now;
while (hasty.sent.length < 2) pass();
assert.ok(now - met >= 1000 && hasty.sent[1][0] === Type.PING && !hasty.closed, `${now - met} ms`);
client.close();

// Who is connected is connected at once.
const thrown = [];
process.on("uncaughtException", (error) => thrown.push(error.message));
const other = new Client("ws://a/", { WebSocket: Line, random: () => 0.999 });
other.connect();
dials();
const line = sockets.at(-1);
line.greets();
await other.connect();

// No other kind than the one that is meant, and no other time.
for (const wrong of [{ kind: 65536 }, { kind: -1 }, { kind: 1.5 }, { deadlineMs: -1 }, { deadlineMs: 2 ** 32 }, { deadlineMs: NaN }]) {
  await assert.rejects(other.request("me", "", wrong), TypeError);
}

// What a callback throws is told, and what came with that packet counts all the same.
const pushed = [];
other.onPush = (payload, { sequence }) => {
  pushed.push(sequence);
  throw new RangeError(`push ${sequence}`);
};
const session = new Uint8Array(36);
const answer = (name, status, payload = new Uint8Array(0)) => packet(Type.RESPONSE, [4, name], [1, status], [4, 0], payload);
const bound = other.bind("me");
line.hears(Type.RESPONSE, [4, 0x7fffffff], [1, 0], [4, 0], session);
await bound;
const first = other.request("me", "a");
const both = [packet(Type.PUSH, [8, 1n]), packet(Type.PUSH, [8, 2n]), answer(1, 0, session)];
line.onmessage({ data: await new Blob(both).arrayBuffer() });
assert.equal((await first).length, 36);
assert.deepEqual([pushed, thrown, other.state], [[1, 2], ["push 1", "push 2"], "ready"]);

// What a line was given is never changed: it may still have it.
const again = other.request("me", "b");
line.onclose({ code: 1006 });
dials();
const next = sockets.at(-1);
next.greets();
next.hears(Type.RESPONSE, [4, 0x7fffffff], [1, 0], [4, 0], session);
const asked = next.sent.at(-1);
assert.equal(asked[8], 8);
next.hears(Type.BEGUN, session);
assert.equal(asked[8], 8);

// A bind that nobody awaits ends nothing but itself.
again.catch(() => {});
other.close();
const unbound = new Client("ws://a/", { WebSocket: Line });
unbound.bind("me");
unbound.close();
await new Promise((resolve) => setImmediate(resolve));
assert.equal(thrown.length, 2, `${thrown}`);
