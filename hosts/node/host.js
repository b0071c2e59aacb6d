// SPDX-License-Identifier: Apache-2.0

/* A host, and its connection to the node, which it makes again. */

import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { Life } from "./actor.js";
import { Kind, RefusedError, Why } from "./kinds.js";
import { EMPTY, Malformed, Reader, Says, Tells, allOf, data, fieldsOf, message, toName, uint } from "./wire.js";

const VERSION = 1;
const FRAME_MAX = 256 << 20;
const FRAME_FULL = 256 << 10; // what is behind comes in the next one
const SIZE = 4;
const BACK_OFF_MIN_MS = 100;
const BACK_OFF_MAX_MS = 2000;
const GREET_MS = 10000;
const WINDOW_TURNS = 4096;
const WINDOW_BYTES = 16 << 20;

/** Cuts a stream of bytes, as it comes, into frames. */
export class Frames {
  #chunks = [];
  #size = 0;
  #need = SIZE;

  /** The frames that these bytes make whole, without their sizes. Throws Malformed: one is too large. */
  *take(chunk) {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    while (this.#size >= this.#need) {
      const all = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
      const end = SIZE + all.readUInt32BE(0);
      if (end > SIZE + FRAME_MAX) throw new Malformed();
      const whole = all.length >= end;
      const rest = whole ? all.subarray(end) : all;
      this.#chunks = [rest];
      this.#size = rest.length;
      this.#need = whole ? SIZE : end;
      if (whole) yield all.subarray(SIZE, end);
    }
  }
}

/** Frames of these messages, each packed, one behind the other. */
export function framesOf(messages) {
  const parts = [];
  let frame = [];
  let size = 0;
  const close = () => {
    const head = Buffer.alloc(SIZE);
    head.writeUInt32BE(size);
    parts.push(head, ...frame);
    frame = [];
    size = 0;
  };
  for (const one of messages) {
    frame.push(one);
    size += one.length;
    if (size >= FRAME_FULL) close();
  }
  if (frame.length > 0) close();
  return Buffer.concat(parts);
}

/** The actors of a node whose code is here. */
export class Host {
  #address;
  #name;
  #token;
  #window;
  #kinds = [];
  #numbers = new Map();
  #link;
  #runs = false;

  constructor({ address, name = "node", token = "", window, log = console.error }) {
    this.#address = whereIs(address);
    this.#name = name;
    this.#token = token;
    this.#window = window === undefined ? EMPTY : packedWindow(window);
    this.log = log;
  }

  /** Adds a kind, before run(). Which of alarm, session and flush its class has is what the node's --kind must say. */
  register(name, Code, options = {}) {
    if (this.#runs) throw new TypeError("kinds are registered before run()");
    this.#kinds.push(new Kind(name, Code, options));
    return this;
  }

  /** The node's number of a kind of this host; undefined before it is connected, and if there is none. */
  kind(name) {
    return this.#numbers.get(name);
  }

  /** Says how much the node may give at a time from now on. */
  setWindow(window) {
    this.#window = packedWindow(window);
    this.#link?.say(message(Tells.WINDOW, this.#window));
  }

  /**
   * Serves the node until `signal` aborts. When the connection is lost, all actors end, and it connects again. Throws a
   * RefusedError: the node does not want this host, and no later try would help.
   */
  async run({ signal } = {}) {
    if (this.#runs) throw new TypeError("the host runs already");
    this.#runs = true;
    try {
      for (let backOff = BACK_OFF_MIN_MS; !signal?.aborted;) {
        const begun = performance.now();
        const error = await this.#serve(signal);
        if (signal?.aborted) break;
        if (error instanceof RefusedError && error.final) throw error;
        this.log(`ringhold: ${error.message}`);
        if (performance.now() - begun > BACK_OFF_MAX_MS) backOff = BACK_OFF_MIN_MS;
        await sleep(backOff, undefined, { signal }).catch(() => {}); // aborted
        backOff = Math.min(2 * backOff, BACK_OFF_MAX_MS);
      }
    } finally {
      this.#runs = false;
    }
  }

  /** One connection: why it ended. */
  async #serve(signal) {
    const link = new Link(this, this.#kinds, connect(this.#address));
    const abort = () => link.close(new Error("the host stops"));
    signal?.addEventListener("abort", abort);
    const window = this.#window;
    link.onWelcome = (numbers) => {
      this.#numbers = numbers;
      this.#link = link;
      if (this.#window !== window) link.say(message(Tells.WINDOW, this.#window)); // it is newer than the hello
    };
    link.greet(this.#hello());
    try {
      return await link.closed;
    } finally {
      this.#link = undefined;
      signal?.removeEventListener("abort", abort);
    }
  }

  #hello() {
    return message(Tells.HELLO, data(1, "ringhold"), uint(2, VERSION), uint(3, VERSION), data(4, this.#name),
      data(5, this.#token), ...this.#kinds.map((kind) => message(6, kind.packed())),
      this.#window.length === 0 ? EMPTY : message(7, this.#window));
  }
}

function whereIs(said) {
  const address = String(said);
  if (address.startsWith("unix:")) return { path: address.slice(5) };
  const [, host, port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(address) ?? [];
  if (host === undefined) throw new TypeError(`the address ${address} is not unix:PATH or HOST:PORT`);
  return { host, port: Number(port), noDelay: true };
}

function packedWindow({ turns = WINDOW_TURNS, bytes = WINDOW_BYTES }) {
  return Buffer.concat([uint(1, turns), uint(2, bytes)]);
}

/* ---- one connection ---- */

class Link {
  kinds = new Map();
  lives = new Map();
  frameMax = 0;
  /** Settles when the connection is over, with why. */
  closed;
  onWelcome;
  #registered;
  #socket;
  #frames = new Frames();
  #out = [];
  #toWrite = false;
  #greeted = false;
  #ended = false;
  #settle;

  constructor(host, registered, socket) {
    this.host = host;
    this.#registered = registered;
    this.#socket = socket;
    this.closed = new Promise((resolve) => {
      this.#settle = resolve;
    });
    socket.on("error", (error) => this.close(error));
    socket.on("close", () => this.close(new Error("the node closed the connection")));
    socket.on("timeout", () => this.close(new Error("the node is silent")));
    socket.on("drain", () => this.#write());
    socket.on("data", (chunk) => this.#take(chunk));
    socket.setTimeout(GREET_MS);
  }

  greet(hello) {
    this.#socket.write(framesOf([message(1, hello)]));
  }

  /** All actors end: the node has ended them as well. */
  close(why) {
    if (this.#ended) return;
    this.#ended = true;
    this.#socket.destroy();
    for (const life of this.lives.values()) life.end(Why.BROKEN);
    this.lives.clear();
    this.#settle(why);
  }

  /** Adds a HostSays to the next frame. All that is said in one turn of the loop goes out together. */
  say(says) {
    this.#out.push(message(1, says));
    if (this.#toWrite) return;
    this.#toWrite = true;
    setImmediate(() => {
      this.#toWrite = false;
      this.#write();
    });
  }

  #write() {
    if (this.#ended || this.#out.length === 0 || this.#socket.writableNeedDrain) return;
    this.#socket.write(framesOf(this.#out));
    this.#out = [];
  }

  #take(chunk) {
    try {
      for (const frame of this.#frames.take(chunk)) {
        for (const says of allOf(frame, 1)) {
          this.#do(says);
          if (this.#ended) return;
        }
      }
    } catch (error) {
      this.close(error);
    }
  }

  /** Does what the node says. */
  #do(says) {
    let body = 0;
    let bytes = EMPTY;
    for (const r = new Reader(says); r.next();) {
      if (r.field < Says.WELCOME || r.field > Says.DEACTIVATE) continue; // of a later version
      body = r.field;
      bytes = r.data;
    }
    if (body === Says.GOODBYE) {
      const f = fieldsOf(bytes);
      this.close(new RefusedError(f.uint(1), toName(f.data(2))));
    } else if (body === Says.WELCOME && !this.#greeted) {
      this.#welcome(bytes);
    } else if (body === Says.PING && this.#greeted) {
      this.say(message(Tells.PONG, uint(1, fieldsOf(bytes).uint(1))));
    } else if (body === Says.ACTIVATE && this.#greeted) {
      this.#activate(bytes);
    } else if (body > Says.ACTIVATE && this.#greeted) {
      this.#tell(body, bytes);
    } else {
      throw new Malformed();
    }
  }

  #welcome(bytes) {
    const f = fieldsOf(bytes);
    if (f.uint(1) !== VERSION) throw new Malformed();
    const numbers = new Map();
    for (const served of allOf(bytes, 3)) {
      const kind = fieldsOf(served);
      numbers.set(toName(kind.data(1)), kind.uint(2));
    }
    for (const kind of this.#registered) {
      if (!numbers.has(kind.name)) throw new Error(`the node's welcome lacks the kind ${kind.name}`);
      this.kinds.set(numbers.get(kind.name), kind);
    }
    this.frameMax = f.uint(5) || Infinity;
    this.#socket.setTimeout(2 * f.uint(4)); // 0: never
    this.#greeted = true;
    this.onWelcome(numbers);
  }

  #activate(bytes) {
    const f = fieldsOf(bytes);
    const life = new Life(this, f);
    if (life.kind === undefined) throw new Malformed();
    this.lives.set(life.activation, life);
    life.activate(f);
  }

  #tell(body, bytes) {
    const f = fieldsOf(bytes);
    const life = this.lives.get(f.uint(1));
    if (life === undefined) return; // it failed to come to life
    switch (body) {
      case Says.MESSAGE:
        life.message(f);
        break;
      case Says.TIMER:
        life.timer(f);
        break;
      case Says.ALARM:
        life.alarm(f);
        break;
      case Says.SESSION:
        life.session(f);
        break;
      case Says.FLUSH:
        life.flush(f);
        break;
      case Says.HANDOFF:
        life.handoff(f);
        break;
      case Says.ANSWER:
        life.answer(f);
        break;
      case Says.RESUME:
        life.resume();
        break;
      default:
        this.lives.delete(life.activation);
        life.end(f.uint(2));
    }
  }
}
