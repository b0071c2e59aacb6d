// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Frames, framesOf } from "./host.js";
import { BUSY, CallError, Host, OverError, RefusedError, ReplyError, Status, Why, line, text } from "./index.js";
import {
  EMPTY, Effects, Malformed, Reader, Says, allOf, data, fieldsOf, message, sint, toBytes, toName, uint, whole,
} from "./wire.js";

/* ---- a node, played by the test ---- */

/** What comes, for who waits for it. */
class Inbox {
  #come = [];
  #waits = [];

  put(one) {
    const wait = this.#waits.shift();
    if (wait === undefined) this.#come.push(one);
    else wait(one);
  }

  get() {
    return this.#come.length > 0 ? Promise.resolve(this.#come.shift()) : new Promise((got) => this.#waits.push(got));
  }
}

const says = (body, ...parts) => message(1, message(body, ...parts));

class Node {
  hosts = new Inbox();
  log = [];
  #server = createServer((socket) => this.hosts.put(new Peer(socket)));
  #stop = new AbortController();

  static async with(t, options, ...kinds) {
    const node = new Node();
    const folder = await mkdtemp(join(tmpdir(), "ringhold-host-"));
    node.#server.listen(join(folder, "sock"));
    await once(node.#server, "listening");
    node.host = new Host({ address: `unix:${join(folder, "sock")}`, log: (one) => node.log.push(one), ...options });
    for (const [name, Code, more] of kinds) node.host.register(name, Code, more);
    node.ended = node.host.run({ signal: node.#stop.signal });
    node.ended.catch(() => {});
    t.after(async () => {
      node.#stop.abort();
      await node.ended.catch(() => {});
      node.#server.close();
      await rm(folder, { recursive: true });
    });
    return node;
  }

  /** The next connection of the host, which has one kind, number 3. */
  async welcome(name, { frameMax = 0 } = {}, ...behind) {
    const peer = await this.hosts.get();
    await peer.read();
    const kind = message(3, data(1, name), uint(2, 3));
    peer.write(framesOf([says(Says.WELCOME, uint(1, 1), kind, uint(5, frameMax)), ...behind]));
    return peer;
  }
}

/** The node's end of a connection. */
class Peer {
  closed;
  #frames = new Frames();
  #inbox = new Inbox();

  constructor(socket) {
    this.socket = socket;
    this.closed = new Promise((over) => socket.on("close", over));
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (const frame of this.#frames.take(chunk)) this.#inbox.put(frame);
    });
  }

  write(bytes) {
    this.socket.write(bytes);
  }

  say(body, ...parts) {
    this.write(framesOf([says(body, ...parts)]));
  }

  read() {
    return this.#inbox.get();
  }

  activate(activation, ...more) {
    this.say(Says.ACTIVATE, uint(1, activation), uint(2, 1), uint(3, 3), data(4, "ann"), ...more);
  }

  ask(activation, turn, payload) {
    this.say(Says.MESSAGE, uint(1, activation), uint(2, turn), data(3, payload));
  }

  answer(activation, call, payload, status = 0) {
    this.say(Says.ANSWER, uint(1, activation), uint(2, call), uint(3, status), data(4, payload));
  }

  /** The next frame, which is one step. */
  async step() {
    const [told, ...more] = allOf(await this.read(), 1);
    assert.equal(more.length, 0);
    const [step] = allOf(told, 3);
    assert.ok(step, "it is no step");
    const f = fieldsOf(step);
    const done = f.has(4) ? fieldsOf(f.data(4)) : undefined;
    return {
      activation: f.uint(1),
      turn: f.uint(2),
      effects: allOf(step, 3).map(fieldOf),
      done: done !== undefined,
      result: done?.uint(1),
      reply: done?.has(2) ? replyOf(done.data(2)) : undefined,
      state: text(done?.data(3) ?? EMPTY),
      fail: text(done?.data(4) ?? EMPTY),
    };
  }
}

function fieldOf(bytes) {
  const r = new Reader(bytes);
  r.next();
  return r.field;
}

function replyOf(bytes) {
  const r = new Reader(bytes);
  r.next();
  return r.field === 3 ? r.value : text(r.data);
}

/* ---- the page's conversation ---- */

async function pageFrames() {
  const page = await readFile(new URL("../../docs/host-protocol.md", import.meta.url), "utf8");
  const [, told] = page.split("## A conversation\n");
  const hex = told.split("\n## ")[0].split("\n").filter((one) => /^ {4}[0-9a-f]{2} /.test(one));
  let all = Buffer.from(hex.join("").replaceAll(" ", ""), "hex");
  const frames = [];
  while (all.length > 0) {
    const size = 4 + all.readUInt32BE(0);
    frames.push(all.subarray(0, size));
    all = all.subarray(size);
  }
  return frames;
}

test("the conversation of the page", async (t) => {
  const frames = await pageFrames();
  assert.equal(frames.length, 11);
  let ended;
  class Teller {
    async message(turn) {
      const said = await turn.call(turn.named("player", "bob"), "hello", { timeoutMs: 1000 });
      turn.push(`bob says ${text(said)}`);
      return "done";
    }

    deactivate(why) {
      ended(why);
    }
  }
  const over = new Promise((resolve) => {
    ended = resolve;
  });
  const node = await Node.with(t, { name: "game" }, ["player", Teller]);
  const peer = await node.hosts.get();
  for (const [i, frame] of frames.entries()) {
    if ([0, 3, 5, 7, 9].includes(i)) assert.deepEqual(await peer.read(), frame.subarray(4), `frame ${i}`);
    else peer.write(frame);
  }
  assert.equal(await over, Why.IDLE);
});

/* ---- turns ---- */

/** Does what its payload says. */
class Keeper {
  state = "";

  constructor(actor) {
    this.actor = actor;
  }

  activate(turn, state) {
    if (state !== undefined) this.state = text(state);
    if (this.state === "bad") throw new Error("bad state");
  }

  handoff() {
    return this.state === "busy" ? BUSY : this.state;
  }

  alarm(turn, alarm) {
    turn.values.set("rang", alarm.payload);
    if (text(alarm.payload) === "fail") throw new ReplyError("not now");
  }

  async message(turn, { text: word, from, args }) {
    const { values } = turn;
    switch (word) {
      case "throw":
        throw new TypeError("on\npurpose");
      case "error":
        throw new ReplyError("no\nsuch thing");
      case "code":
        throw new ReplyError("BUSY in a trade");
      case "number":
        return -(2n ** 63n);
      case "line":
        return line("OK");
      case "half":
        return 0.5;
      case "put":
        values.set("a", "1");
        values.delete("b");
        return undefined;
      case "undo":
        values.set("a", "2").set("c", "");
        values.delete("a");
        turn.undo();
        return undefined;
      case "values":
        return [...values].map(([key, value]) => `${key}=${text(value)}`).join(" ");
      case "outside":
        this.actor.values.set("a", "1");
        return undefined;
      case "alarm":
        return String(this.actor.alarm("tea")?.dueMs);
      case "setalarm":
        turn.setAlarm({ name: "tea", dueMs: 5, payload: "x" });
        return undefined;
      case "many": {
        const first = turn.call({ kind: 3, id: "one" });
        const second = turn.call({ kind: 3, id: "two" });
        const b = text(await second);
        return text(await first) + b;
      }
      case "wait":
        await turn.call({ kind: 3, id: "one" });
        return undefined;
      case "leave":
        this.left = turn;
        this.answer = turn.call({ kind: 3, id: "one" });
        return undefined;
      case "late":
        await assert.rejects(this.answer, OverError);
        this.left.push("too late");
        return undefined;
      case "who":
        return `${from?.kind} ${from?.id} ${args.length}`;
      case "big":
        turn.push(Buffer.alloc(2048));
        return undefined;
      default:
        turn.send({ kind: 4, id: "room" }, word);
        turn.sendOnce({ kind: 4, id: "room" }, word);
        turn.pushIds(3, [], word);
        turn.pushIds(3, ["a", "b"], word);
        turn.kick(1000, "bye");
        turn.rebind({ kind: 3, id: "bob" });
        turn.startTimer(1, 1000);
        turn.stopTimer(1);
        turn.cancelAlarm("x");
        turn.flushSoon();
        turn.passivate();
        return null;
    }
  }
}

async function started(t, options, ...more) {
  const node = await Node.with(t, {}, ["keeper", Keeper, { durable: true }]);
  const peer = await node.welcome("keeper", options);
  peer.activate(1, ...more);
  const step = await peer.step();
  assert.deepEqual([step.turn, step.done, step.result], [1, true, 0]);
  return [peer, node];
}

test("answers", async (t) => {
  const [peer, node] = await started(t);
  const cases = [
    ["error", "ERR no such thing", ""],
    ["code", "BUSY in a trade", ""],
    ["number", 2 ** 64 - 1, ""],
    ["line", "OK", ""],
    ["put", undefined, ""],
    ["who", "undefined undefined 0", ""],
    ["half", undefined, "ERR the actor threw: 0.5 is no safe integer"],
    ["outside", undefined, "ERR the actor threw: values are changed in a turn: by turn.values"],
    ["throw", undefined, "ERR the actor threw: on purpose"],
  ];
  for (const [i, [payload, reply, fail]] of cases.entries()) {
    peer.ask(1, i + 2, payload);
    const step = await peer.step();
    assert.deepEqual([payload, Number(step.reply) || step.reply, step.fail, step.done], [payload, reply, fail, true]);
  }
  assert.equal(node.log.filter((one) => one.includes("keeper ann: it broke")).length, 3);
});

test("effects are in order", async (t) => {
  const [peer] = await started(t);
  peer.ask(1, 2, "all of them");
  const { effects } = await peer.step();
  assert.deepEqual(effects, [Effects.SEND, Effects.SEND_ONCE, Effects.PUSH_IDS, Effects.KICK, Effects.REBIND,
    Effects.START_TIMER, Effects.STOP_TIMER, Effects.CANCEL_ALARM, Effects.FLUSH_SOON, Effects.PASSIVATE]);
});

test("values are kept, and undone", async (t) => {
  const [peer] = await started(t, {}, message(9, data(1, "b"), data(2, "old")), message(9, data(1, "a"), data(2, "0")));
  const cases = [["values", "a=0 b=old"], ["put"], ["values", "a=1"], ["undo"], ["values", "a=1"]];
  for (const [i, [payload, reply]] of cases.entries()) {
    peer.ask(1, i + 2, payload);
    assert.equal((await peer.step()).reply, reply);
  }
});

test("an alarm that fails is undone, and one that went off is gone", async (t) => {
  const [peer] = await started(t);
  let turn = 2;
  const alarm = async (payload) => {
    peer.say(Says.ALARM, uint(1, 1), uint(2, turn++), data(3, "tea"), data(4, payload), uint(5, 5));
    return (await peer.step()).result;
  };
  const ask = async (payload) => {
    peer.ask(1, turn++, payload);
    return (await peer.step()).reply;
  };
  await ask("setalarm");
  assert.equal(await alarm("fail"), 1);
  assert.equal(await ask("values"), "");
  assert.equal(await ask("alarm"), "5");
  assert.equal(await alarm("ok"), 0);
  assert.equal(await ask("values"), "rang=ok");
  assert.equal(await ask("alarm"), "undefined");
});

test("calls go side by side", async (t) => {
  const [peer] = await started(t);
  peer.ask(1, 2, "many");
  const step = await peer.step();
  assert.deepEqual([step.done, step.effects], [false, [Effects.CALL, Effects.CALL]]);
  peer.answer(1, 1, "a");
  peer.answer(1, 2, "b");
  assert.equal((await peer.step()).reply, "ab");
  peer.ask(1, 3, "many"); // one that is refused while another is awaited harms nobody
  await peer.step();
  peer.answer(1, 3, "QUARANTINED it", Status.QUARANTINED);
  peer.answer(1, 4, "b");
  assert.equal((await peer.step()).reply, "QUARANTINED it");
  peer.ask(1, 4, "wait");
  await peer.step();
  peer.answer(1, 5, "no answer came", Status.TIMEOUT);
  assert.equal((await peer.step()).reply, "ERR no answer came");
  assert.equal(new CallError(Status.TIMEOUT, "").mayHaveRun, true);
});

test("a turn that is over says nothing", async (t) => {
  const [peer] = await started(t);
  peer.ask(1, 2, "leave");
  const told = allOf(await peer.read(), 1).map((one) => fieldsOf(fieldsOf(one).data(3)));
  assert.deepEqual(told.map((step) => [step.has(3), step.has(4)]), [[true, false], [false, true]]);
  peer.answer(1, 1, "nobody waits");
  peer.ask(1, 3, "late");
  assert.equal((await peer.step()).fail, "ERR the actor threw: the turn is over");
});

test("a step that is too large breaks its actor, and not the connection", async (t) => {
  const [peer] = await started(t, { frameMax: 1024 });
  peer.ask(1, 2, "big");
  const step = await peer.step();
  assert.deepEqual([step.effects, step.fail], [[], "ERR the actor's step is larger than the node takes"]);
});

test("a state moves", async (t) => {
  const [peer] = await started(t, {}, uint(6, 1), data(7, "moved"));
  peer.say(Says.HANDOFF, uint(1, 1), uint(2, 2));
  assert.equal((await peer.step()).state, "moved");
  peer.activate(2, uint(6, 1), data(7, "bad"));
  let step = await peer.step();
  assert.deepEqual([step.activation, step.result], [2, 1]);
  peer.activate(3, uint(6, 1), data(7, "busy"));
  await peer.step();
  peer.say(Says.HANDOFF, uint(1, 3), uint(2, 2));
  step = await peer.step();
  assert.deepEqual([step.result, step.state], [2, ""]);
});

test("a turn ends with its life", async (t) => {
  let heard;
  const ended = new Promise((resolve) => {
    heard = resolve;
  });
  class Waiter {
    async message(turn) {
      this.signal = turn.signal;
      await turn.call({ kind: 3, id: "one" });
    }

    deactivate(why) {
      heard([why, this.signal.aborted]);
    }
  }
  const node = await Node.with(t, {}, ["waiter", Waiter]);
  const peer = await node.welcome("waiter");
  peer.activate(1);
  await peer.step();
  peer.ask(1, 2, "wait");
  await peer.step();
  peer.say(Says.DEACTIVATE, uint(1, 1), uint(2, Why.FENCED));
  peer.activate(2); // the same id, at once
  assert.equal((await peer.step()).activation, 2); // and nothing of the first one
  assert.deepEqual(await ended, [Why.FENCED, true]);
  assert.deepEqual(node.log, []);
});

test("what fails to be saved is asked again", async (t) => {
  class Saver {
    message() {}

    flush() {
      throw new TypeError("the database is away");
    }
  }
  const node = await Node.with(t, {}, ["saver", Saver]);
  const peer = await node.welcome("saver");
  peer.activate(1);
  await peer.step();
  peer.say(Says.FLUSH, uint(1, 1), uint(2, 2), uint(3, Why.PERIODIC));
  const step = await peer.step();
  assert.deepEqual([step.result, step.fail], [1, ""]);
});

test("numbers of 64 bits, and names of any bytes, come back as they were", async (t) => {
  const seen = [];
  class Seen {
    activate(turn) {
      seen.push(turn.actor.fence, turn.actor.id);
    }

    message(turn) {
      turn.send(turn.actor.ref);
    }

    session(turn, session) {
      seen.push(session.number);
      turn.push("hi", session.number);
    }
  }
  const large = 2n ** 64n - 1n;
  const id = Buffer.from("ff61c3a4", "hex");
  const node = await Node.with(t, {}, ["seen", Seen]);
  const peer = await node.welcome("seen");
  peer.say(Says.ACTIVATE, uint(1, large), uint(2, 1), uint(3, 3), data(4, id), uint(5, large));
  assert.equal((await peer.step()).activation, large);
  peer.say(Says.SESSION, uint(1, large), uint(2, 2), uint(3, 1), uint(5, 7));
  await peer.step();
  peer.ask(large, 3, "");
  const [told] = allOf(await peer.read(), 1);
  const send = fieldsOf(fieldsOf(fieldsOf(fieldsOf(told).data(3)).data(3)).data(2));
  assert.deepEqual(send.data(2), id);
  assert.deepEqual(seen, [large, "\udcffa\udcc3\udca4", 7n]);
});

/* ---- the connection ---- */

test("what waited comes with the welcome", async (t) => {
  const node = await Node.with(t, {}, ["keeper", Keeper, { durable: true }]);
  const ann = says(Says.ACTIVATE, uint(1, 1), uint(2, 1), uint(3, 3), data(4, "ann"));
  const peer = await node.welcome("keeper", {}, ann);
  assert.deepEqual([(await peer.step()).activation, node.host.kind("keeper")], [1, 3]);
});

test("the window is said, also later", async (t) => {
  const node = await Node.with(t, { window: { turns: 5 } }, ["keeper", Keeper, { durable: true }]);
  const peer = await node.hosts.get();
  const hello = fieldsOf(fieldsOf(fieldsOf(await peer.read()).data(1)).data(1));
  assert.deepEqual([5, 7, 0].map((_, i) => fieldsOf(hello.data(7)).uint(i + 1)), [5, 16 << 20, 0]);
  node.host.setWindow({ bytes: 9 }); // amidst the greeting
  peer.write(framesOf([says(Says.WELCOME, uint(1, 1), message(3, data(1, "keeper"), uint(2, 3)))]));
  const window = fieldsOf(fieldsOf(fieldsOf(await peer.read()).data(1)).data(4));
  assert.deepEqual([window.uint(1), window.uint(2)], [4096, 9]);
});

test("who is refused for good ends, others come again", async (t) => {
  const node = await Node.with(t, { token: "secret" }, ["keeper", Keeper, { durable: true }]);
  let peer = await node.hosts.get();
  assert.ok((await peer.read()).includes("secret"));
  peer.say(Says.GOODBYE, uint(1, 6), data(2, "another serves it"));
  peer = await node.hosts.get();
  await peer.read();
  peer.say(Says.GOODBYE, uint(1, 3), data(2, "the token is not the node's"));
  await assert.rejects(node.ended, (error) => error instanceof RefusedError && error.reason === 3 && error.final);
});

test("garbage of the node ends the connection", async (t) => {
  for (const [garbage, why] of [
    ["ffffffff", "a frame of the node does not decode"],
    ["00000003ffffff", "a frame of the node does not decode"],
    ["000000020a00", "a frame of the node does not decode"],
    ["000000040a022205", "a frame of the node does not decode"],
    ["000000040a020a00", "a frame of the node does not decode"], // a second welcome
    ["000000040a021200", "the node says goodbye: "],
  ]) {
    const [peer, node] = await started(t);
    peer.write(Buffer.from(garbage, "hex"));
    await peer.closed;
    assert.deepEqual(node.log, [`ringhold: ${why}`], garbage);
  }
});

/* ---- bytes ---- */

test("varints", () => {
  for (const value of [1, 127, 128, 2 ** 32, 2 ** 49 - 1, 2 ** 49, Number.MAX_SAFE_INTEGER, 2n ** 53n, 2n ** 64n - 1n]) {
    const r = new Reader(uint(1, value));
    assert.ok(r.next());
    assert.equal(r.value, value);
  }
  assert.equal(uint(1, 0n).length, 0);
  for (const bad of [-1, 0.5, NaN, 2 ** 53, -1n, 2n ** 64n]) assert.throws(() => uint(1, bad), RangeError);
  assert.throws(() => sint(1, 2n ** 63n), RangeError);
  for (const bad of ["08", "08ff", `08${"ff".repeat(10)}01`, `08${"ff".repeat(9)}02`, "0a05", "0b", "09"]) {
    assert.throws(() => {
      for (const r = new Reader(Buffer.from(bad, "hex")); r.next(););
    }, Malformed, bad);
  }
});

test("frames in pieces", () => {
  const whole3 = framesOf([whole(1, "a"), whole(1, Buffer.alloc(300 << 10)), whole(1, "b")]);
  for (const size of [1, 3, 1000, whole3.length]) {
    const frames = new Frames();
    const found = [];
    for (let at = 0; at < whole3.length; at += size) found.push(...frames.take(whole3.subarray(at, at + size)));
    assert.deepEqual(found.map((one) => one.length), [3 + 4 + (300 << 10), 3]);
  }
});

test("texts", () => {
  for (const hex of ["", "616263", "f09f9982", "efbbbf61", "ff", "eda080", "61c3", "80fe7f"]) {
    assert.equal(toBytes(toName(Buffer.from(hex, "hex"))).toString("hex"), hex);
  }
  assert.throws(() => toBytes(5), TypeError);
});

test("what a class has must fit its kind", () => {
  const host = new Host({ address: "127.0.0.1:7" });
  assert.throws(() => host.register("a", class {}), /has no method message/);
  assert.throws(() => host.register("a", class { message() {} alarm() {} }), /must be durable/);
  assert.throws(() => host.register("a", class { message() {} flush() {} }, { durable: true }), /no flush/);
  for (const address of ["nowhere", undefined]) assert.throws(() => new Host({ address }), /is not unix:PATH/);
});
