/* SPDX-License-Identifier: Apache-2.0
 *
 * A game's client at the gateways of a Ringhold fleet: browsers (WebSocket) and Node 18 or later (TCP, or
 * WebSocket where there is a global one, or one is given). It speaks docs/protocol-client.md and needs nothing else.
 *
 *     import { Client } from "ringhold";
 *
 *     const client = new Client(["wss://eu1.example/", "wss://eu2.example/"], { token });
 *     client.onPush = (bytes, push) => show(text(bytes));
 *     await client.connect();
 *     await client.bind("player-42", { kind: 7 });
 *     const answer = await client.request("player-42", "buy sword", { kind: 7 });
 *
 * Lines drop, gateways stop and die: it dials again with jittered back-off, resumes its session where the
 * gateway keeps one, and sends again what has no answer. A request settles once: with the answer's bytes, or
 * with a RingholdError that says whether it may have run.
 */

const VERSION = 1;
const HEAD = 4;
const SESSION_SIZE = 24;
const BEGUN_SIZE = SESSION_SIZE + 8 + 4;
const NAME_BIND = 0x7fffffff;
const NAME_UNBIND = 0x7ffffffe;
const NAME_MAX = 0x7fffff00; // of a request
const ACK_MS = 500;
const ACK_COUNT = 16;
const ACK_SIZE = 16 * 1024;
const AGAIN_MS = 200;
const LEAVE_MS = 10000;
const OWED_QUIET_MS = 10000;
const BODY_MAX = 0xffffff;
const HEARTBEAT_LEAST_MS = 1000; // less is no gateway's
const BODY_LEAST = 512; // less is no gateway's largest body
const PING_MAX = 64;
const RETRY_MAX_MS = 3600 * 1000; // nobody is sent away for longer
const UNREAD_MAX = 64 * 1024; // of a gateway that doesn't read: it gets no more pongs and acks
const KICK_TOO_LARGE = 101;
const CLOSE_TOO_LARGE = 1009; // the same, of a WebSocket

/** Types of packets. */
export const Type = Object.freeze({
  HELLO: 1, HELLO_ACK: 2, PING: 3, PONG: 4, KICK: 5, REQUEST: 6, RESPONSE: 7, NOTIFY: 8, PUSH: 9, GOAWAY: 10,
  BIND: 11, UNBIND: 12, AUTH: 13, RESUME: 14, AUTH_OK: 15, BEGUN: 16, ACK: 17, REBOUND: 18,
});

/** How a request ended. One that isn't here is to be taken as UNKNOWN. */
export const Status = Object.freeze({
  OK: 0, ACTOR_FAILED: 1, UNKNOWN: 2, TIMEOUT: 3, MOVING: 4, OVERLOADED: 5, NO_OWNER: 6, QUARANTINED: 7,
  REJECTED: 8, BAD_REQUEST: 9, UNAUTHORIZED: 10, RATE_LIMITED: 11,
});

const Flag = Object.freeze({ IDEMPOTENT: 1, DEADLINE: 2, KEEP: 4, AGAIN: 8 });
const STATUS_NAMES = Object.freeze(Object.keys(Status));
const MAY_HAVE_RUN = new Set([Status.ACTOR_FAILED, Status.UNKNOWN, Status.TIMEOUT]);
// After these kicks it comes again: the way there took too long, or the gateway had no memory.
const PASSING_KICKS = new Set([102, 104, 105, 106]);
// What it showed to say who it is was no good.
const LOGIN_KICKS = new Set([107, 108, 109, 110, 111, 112, 113]);
const AUTH_OK_HEADER = 11;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes of a text, or the bytes themselves. */
export function bytes(value) {
  if (value === undefined || value === null) return new Uint8Array(0);
  if (typeof value === "string") return encoder.encode(value);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError("a payload is a text, an ArrayBuffer or a view of one");
}

/** The text that bytes are, in UTF-8. */
export function text(value) {
  return decoder.decode(value);
}

/** A request that has no good answer. */
export class RingholdError extends Error {
  /**
   * @param {number} status of `Status`
   * @param {Uint8Array} payload what the gateway or the actor says about it
   * @param {number} retryMs when asking again may do better; 0 = now or never
   */
  constructor(status, payload = new Uint8Array(0), retryMs = 0) {
    const said = text(payload);
    super((STATUS_NAMES[status] ?? `status ${status}`) + (said ? `: ${said}` : ""));
    this.name = "RingholdError";
    this.status = status;
    this.code = STATUS_NAMES[status] ?? "UNKNOWN";
    this.payload = payload;
    this.retryMs = retryMs;
    /** False: it did not run and never will. */
    this.mayHaveRun = MAY_HAVE_RUN.has(status) || status > Status.RATE_LIMITED;
  }
}

/** The gateway sent the client away for good, or the client was closed. */
export class KickedError extends Error {
  /**
   * @param {number} code docs/protocol-client.md has them; 0 = closed by close()
   * @param {string} why
   */
  constructor(code, why) {
    super(code === 0 ? why : `kicked with ${code}: ${why}`);
    this.name = "KickedError";
    this.code = code;
  }
}

/* ---- packets ---- */

/** A packet of these parts: numbers as [size, value], or bytes. */
export function packet(type, ...parts) {
  const size = parts.reduce((sum, part) => sum + (Array.isArray(part) ? part[0] : part.length), 0);
  const out = new Uint8Array(HEAD + size);
  const view = new DataView(out.buffer);
  view.setUint32(0, type * 0x1000000 + size);
  let at = HEAD;
  for (const part of parts) {
    if (!Array.isArray(part)) {
      out.set(part, at);
      at += part.length;
      continue;
    }
    const [width, value] = part;
    if (width === 1) view.setUint8(at, value);
    else if (width === 2) view.setUint16(at, value);
    else if (width === 4) view.setUint32(at, value);
    else view.setBigUint64(at, BigInt(value));
    at += width;
  }
  return out;
}

/** A request, notify, bind or resume. */
export function asking(type, name, id, { kind = 0, flags = 0, deadlineMs = 0 } = {}, payload = new Uint8Array(0)) {
  const deadline = deadlineMs > 0 ? [[4, deadlineMs]] : [];
  const all = flags | (deadlineMs > 0 ? Flag.DEADLINE : 0);
  return packet(type, [4, name], [1, all], [1, id.length], [2, kind], ...deadline, id, payload);
}

/** Cuts a stream of bytes, as it comes, into packets. */
export class Packets {
  #rest = new Uint8Array(0);
  #max;

  constructor(max = 0xffffff) {
    this.#max = max;
  }

  /** Yields what these bytes make whole: { type, body }. Throws RangeError behind these: one is larger than it may be. */
  *take(chunk) {
    let all = chunk;
    if (this.#rest.length > 0) {
      all = new Uint8Array(this.#rest.length + chunk.length);
      all.set(this.#rest);
      all.set(chunk, this.#rest.length);
    }
    let at = 0;
    try {
      while (all.length - at >= HEAD) {
        const size = (all[at + 1] << 16) | (all[at + 2] << 8) | all[at + 3];
        if (size > this.#max) throw new RangeError("a packet is larger than maxPacket");
        if (all.length - at < HEAD + size) break;
        const found = { type: all[at], body: all.slice(at + HEAD, at + HEAD + size) };
        at += HEAD + size;
        yield found;
      }
    } finally {
      this.#rest = all.slice(at);
    }
  }
}

function viewOf(body) {
  return new DataView(body.buffer, body.byteOffset, body.byteLength);
}

/* ---- lines: how bytes get there ----
 *
 * A line has send(bytes), close() and unread(), the bytes that wait to go out; and calls on.open(), on.bytes(bytes)
 * and on.close(why, code), the last once; the code is a WebSocket's.
 */

function webSocketLine(WebSocket, url, on) {
  const socket = new WebSocket(url);
  let open = true;
  let why = "the gateway closed the connection";
  const end = (code) => {
    if (open) {
      open = false;
      on.close(why, code);
    }
  };
  socket.binaryType = "arraybuffer";
  socket.onopen = () => open && on.open();
  socket.onmessage = (event) => {
    if (!open) return;
    if (typeof event.data === "string") {
      socket.close();
      why = "the gateway sent text";
      end();
    } else {
      on.bytes(new Uint8Array(event.data));
    }
  };
  socket.onclose = (event) => end(event?.code);
  socket.onerror = () => {
    why = "the connection failed"; // its close follows, and has the code
  };
  return {
    send: (data) => socket.send(data), // one packet a message
    unread: () => socket.bufferedAmount ?? 0,
    close: () => {
      open = false;
      socket.close();
    },
  };
}

function tcpLine(url, on) {
  let socket = null;
  let open = true;
  const end = (why) => {
    if (open) {
      open = false;
      on.close(why);
    }
  };
  // A name that no bundler for browsers follows.
  const module = url.protocol === "tls:" ? "node:tls" : "node:net";
  import(/* webpackIgnore: true */ /* @vite-ignore */ module).then(
    (net) => {
      if (!open) return;
      const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
      const named = module === "node:tls" && !/^[\d.]+$|:/.test(host); // an address has no SNI
      socket = net.connect({ host, port: Number(url.port), ...(named ? { servername: host } : {}) });
      socket.setNoDelay(true);
      socket.on(module === "node:tls" ? "secureConnect" : "connect", () => open && on.open());
      socket.on("data", (data) => open && on.bytes(new Uint8Array(data)));
      socket.on("error", (error) => end(error.message));
      socket.on("close", () => end("the gateway closed the connection"));
    },
    () => end("there is no TCP here: use ws:// or wss://"),
  );
  return {
    send: (data) => socket.write(data),
    unread: () => socket.writableLength,
    close: () => {
      open = false;
      socket?.destroy();
    },
  };
}

function dial(address, on, WebSocket) {
  const url = new URL(address.includes("://") ? address : `tcp://${address}`);
  if (url.protocol === "ws:" || url.protocol === "wss:") {
    if (typeof WebSocket !== "function") throw new TypeError("there is no WebSocket here: give one, or use tcp://");
    return webSocketLine(WebSocket, address, on);
  }
  if (url.protocol === "tcp:" || url.protocol === "tls:") return tcpLine(url, on);
  throw new TypeError(`${address}: it takes ws, wss, tcp or tls`);
}

/* ---- the client ---- */

const DEFAULTS = Object.freeze({
  token: "", requestsMax: 1024, outMax: 1024 * 1024, maxPacket: 1024 * 1024 + 64, answerMs: 15000, greetMs: 10000,
  backOffMinMs: 200, backOffMaxMs: 10000, random: Math.random, WebSocket: undefined,
});

const nothing = () => {};

/**
 *     idle -connect-> waiting -its time has come-> dialling -> greeting -hello-ack, auth-ok, bound-> ready
 *     ready -goaway-> leaving -all is answered-> waiting, for another gateway
 *     any -the line drops-> waiting        any -kicked for good, close()-> ended
 */
export class Client {
  #gateways;
  #options;
  #state = "idle";
  #line = null;
  #packets = null;
  #turn; // which gateway
  #failures = 0;
  #readyAt = 0;
  #bodyMax = BODY_MAX; // of a packet, as the gateway said last
  #toldMax = 0; // bytes of the largest notify that went out on this line
  #timers = new Map();
  #retryMs = 0;
  #greeted = false;
  #known = false;
  #heartbeatMs = 0;
  #heardAt = 0;
  #pinged = false;
  #asked = new Map(); // name -> entry, in the order they were asked
  #size = 0; // bytes of these
  #lastName = 0;
  #home = null; // what we were bound to before we were rebound: { id, kind }
  #session = null; // what we are bound to, or want to be
  #attempts = 0; // resumes that were sent, of all sessions
  #given = null; // a token, by the gateway that knew us last: shown instead of the option
  #showedGiven = false;
  #connecting = null; // { promise, resolve, reject } of connect()

  /** A push came: `(bytes, { sequence, lost })`. */
  onPush = nothing;
  /** The gateway says who we are: `({ id, kind, expires })`. In each connection that asks for a token. */
  onKnown = nothing;
  /** Our actor lets us go on as another entity, and bound follows: `({ id, kind, expires })`. Ask that one from here on. */
  onRebound = nothing;
  /** Ready to ask: also each time that it is back. */
  onReady = nothing;
  /** Bound: `({ fresh })`. Fresh: the actor begins a session with us; else ours goes on unharmed. */
  onBound = nothing;
  /** The actor was lost and begun afresh: what it knew of us is gone. */
  onBegun = nothing;
  /** The line is gone, it dials again: `(why)`. */
  onLost = nothing;
  /** The gateway stops, it goes to another one: `({ retryMs, text })`. */
  onGoaway = nothing;
  /** Sent away for good: `(KickedError)`. */
  onKicked = nothing;
  /** The bind of an earlier connection was refused in this one: `(RingholdError)`. */
  onRefused = nothing;

  constructor(gateways, options = {}) {
    this.#gateways = (typeof gateways === "string" ? gateways.split(",") : [...gateways]).map((g) => g.trim());
    this.#options = { ...DEFAULTS, ...options };
    if (this.#gateways.length === 0 || this.#gateways.some((g) => g === "")) {
      throw new TypeError("a client has gateways to go to");
    }
    this.#turn = Math.floor(this.#options.random() * this.#gateways.length);
  }

  get state() {
    return this.#state;
  }

  /** The gateway that it is at, or goes to. */
  get gateway() {
    return this.#gateways[this.#turn % this.#gateways.length];
  }

  /** Requests without an answer. */
  get pending() {
    return this.#asked.size;
  }

  set token(token) {
    this.#options.token = token;
    this.#given = null;
  }

  connect() {
    if (this.#state === "ready" || this.#state === "leaving") return Promise.resolve();
    if (this.#connecting === null) {
      const c = {};
      c.promise = new Promise((resolve, reject) => Object.assign(c, { resolve, reject }));
      c.promise.catch(nothing);
      this.#connecting = c;
    }
    const { promise } = this.#connecting;
    if (this.#state === "idle" || this.#state === "ended") {
      if (this.#state === "ended") this.#lastName = 0;
      this.#failures = 0;
      this.#dialIn(0);
    }
    return promise;
  }

  request(id, payload, options = {}) {
    return new Promise((resolve, reject) => {
      this.#ask(Type.REQUEST, id, payload, options, { resolve, reject });
    });
  }

  notify(id, payload, options = {}) {
    this.#ask(Type.NOTIFY, id, payload, options, null);
  }

  bind(id, { kind = 0 } = {}) {
    if (this.#session !== null) return Promise.reject(new TypeError("it is bound already"));
    const raw = this.#idOf(id);
    kindOf(kind);
    const bound = new Promise((resolve, reject) => {
      this.#session = {
        id: raw, kind, state: "wanted", plain: false, name: null, pushed: 0n, wasHeld: false, unacked: 0, unackedSize: 0,
        settle: { resolve, reject }, left: null,
      };
      if (this.#state === "ready") this.#askSession();
    });
    bound.catch(nothing); // nobody need await it
    return bound;
  }

  unbind() {
    const s = this.#session;
    if (s === null || s.left !== null) return Promise.reject(new TypeError("it is not bound"));
    return new Promise((resolve) => {
      s.left = resolve;
      if (s.state === "held") {
        s.state = "leaving";
        this.#send(packet(Type.UNBIND, [4, NAME_UNBIND]));
      } else if (s.state === "wanted") {
        this.#unbound();
      } // else when its answer is here
    });
  }

  close() {
    if (this.#state !== "ended") this.#end(new KickedError(0, "the client was closed"), false);
  }

  /* ---- asking ---- */

  #idOf(id) {
    const raw = bytes(id);
    if (raw.length < 1 || raw.length > 255) throw new TypeError("an id has 1 to 255 bytes");
    return raw;
  }

  #ask(type, id, payload, { kind = 0, idempotent = false, deadlineMs = 0 }, settle) {
    if (this.#state === "ended") throw new KickedError(0, "the client was closed");
    if (!(deadlineMs >= 0 && deadlineMs <= 0xffffffff)) throw new TypeError("a deadline is below 50 days");
    const body = bytes(payload);
    const flags = idempotent ? Flag.IDEMPOTENT : 0;
    if (this.#lastName === NAME_MAX) {
      throw new RingholdError(Status.OVERLOADED, encoder.encode("all names are used: close, and connect"));
    }
    const how = { kind: kindOf(kind), flags, deadlineMs: Math.ceil(deadlineMs) };
    const out = asking(type, this.#lastName + 1, this.#idOf(id), how, body);
    if (this.#asked.size >= this.#options.requestsMax || this.#size + out.length > this.#options.outMax) {
      throw new RingholdError(Status.OVERLOADED, encoder.encode("too much is under way"), AGAIN_MS);
    }
    if (out.length > HEAD + this.#bodyMax) throw this.#tooLarge();
    const name = ++this.#lastName;
    const entry = { name, out, settle, idempotent, sent: false, former: false, kept: false, timer: null };
    this.#asked.set(name, entry);
    this.#size += out.length;
    entry.timer = setTimeout(() => {
      this.#settle(entry, entry.sent ? Status.TIMEOUT : Status.MOVING);
      this.#bindIfItWaits();
      this.#leaveIfDone();
    }, this.#options.answerMs);
    this.#flush();
  }

  #tooLarge() {
    return new RingholdError(Status.BAD_REQUEST, encoder.encode(`the gateway takes ${this.#bodyMax} bytes`));
  }

  #forget(entry) {
    clearTimeout(entry.timer);
    if (this.#asked.delete(entry.name)) this.#size -= entry.out.length;
  }

  #settle(entry, status, payload = new Uint8Array(0), retryMs = 0) {
    this.#forget(entry);
    if (entry.settle === null) return;
    if (status === Status.OK) entry.settle.resolve(payload);
    else entry.settle.reject(new RingholdError(status, payload, retryMs));
  }

  /** Behind a bind that isn't answered yet nothing is sent: it would run even if that is refused. */
  #mayAsk() {
    const s = this.#session;
    return this.#state === "ready" && (s === null || s.state === "held" || s.state === "leaving");
  }

  #flush() {
    if (!this.#mayAsk()) return;
    const kept = this.#session !== null && this.#session.name !== null;
    for (const entry of [...this.#asked.values()]) {
      if (entry.out === null || entry.here) continue;
      entry.here = true; // sent on this line
      this.#send(entry.out);
      entry.sent = true;
      entry.kept = kept;
      if (entry.settle !== null) continue;
      this.#toldMax = Math.max(this.#toldMax, entry.out.length);
      this.#forget(entry);
    }
  }

  #least() {
    for (const entry of this.#asked.values()) if (entry.settle !== null) return entry.name;
    return this.#lastName + 1;
  }

  #owes() {
    for (const entry of this.#asked.values()) if (entry.here) return true;
    return false;
  }

  #send(data) {
    this.#line?.send(data);
  }

  /** What a callback throws is the page's or the process's to hear of, and stops nothing here. */
  #tell(name, ...told) {
    try {
      this[name](...told);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  /** Does the gateway read? Who floods us and doesn't must not fill our memory. */
  #isRead() {
    return this.#line !== null && this.#line.unread() < UNREAD_MAX;
  }

  /* ---- timers ---- */

  #after(name, ms, run) {
    this.#stop(name);
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      run();
    }, ms);
    this.#timers.set(name, timer);
  }

  #stop(name) {
    clearTimeout(this.#timers.get(name));
    this.#timers.delete(name);
  }

  #stopAll() {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #jittered(least) {
    return least + this.#options.random() * least;
  }

  #backOff() {
    const { backOffMinMs, backOffMaxMs, random } = this.#options;
    return random() * Math.min(backOffMaxMs, backOffMinMs * 2 ** Math.min(this.#failures, 16));
  }

  /* ---- the line ---- */

  #dialIn(ms) {
    this.#state = "waiting";
    this.#after("dial", ms, () => this.#dial());
  }

  #dial() {
    const packets = new Packets(this.#options.maxPacket);
    this.#state = "dialling";
    this.#after("greet", this.#options.greetMs, () => this.#giveUp("the gateway did not greet in time"));
    const on = {
      open: () => {
        this.#state = "greeting";
        this.#heardAt = performance.now();
        this.#send(packet(Type.HELLO, [2, 0x5248], [1, VERSION], [1, VERSION], [2, 0]));
      },
      bytes: (data) => {
        this.#heardAt = performance.now();
        this.#pinged = false;
        try {
          for (const { type, body } of packets.take(data)) {
            if (this.#packets !== packets) return; // gave up meanwhile
            this.#hear(type, body);
          }
        } catch (error) {
          if (!(error instanceof RangeError)) throw error;
          if (this.#packets === packets) this.#giveUp("the gateway sent an invalid packet");
        }
      },
      close: (why, code) => {
        if (this.#packets !== packets) return;
        if (code === CLOSE_TOO_LARGE) this.#onKick(KICK_TOO_LARGE, why);
        else this.#lost(why);
      },
    };
    this.#packets = packets;
    try {
      this.#line = dial(this.gateway, on, this.#options.WebSocket ?? globalThis.WebSocket);
    } catch (error) {
      this.#end(new KickedError(0, error.message), true);
    }
  }

  #dropLine() {
    this.#stopAll();
    this.#packets = null;
    this.#line?.close();
    this.#line = null;
    this.#greeted = false;
    this.#known = false;
    this.#pinged = false;
  }

  #giveUp(why) {
    this.#lost(why);
  }

  #lost(why) {
    // A gateway that greets and hangs up is as good as none: only one that lasted ends a row.
    const ready = this.#state === "ready" || this.#state === "leaving";
    if (ready && performance.now() - this.#readyAt >= this.#options.backOffMaxMs) this.#failures = 0;
    this.#dropLine();
    const s = this.#session;
    if (s !== null) {
      s.plain = false; // the next gateway may be a newer one
      if (s.state === "leaving" || s.left !== null) this.#unbound();
      else s.state = "wanted";
    }
    this.#rewind(this.#session !== null && this.#session.name !== null);
    const wait = this.#retryMs > 0 ? this.#jittered(this.#retryMs) : this.#backOff();
    this.#retryMs = 0;
    this.#failures++;
    this.#turn++;
    this.#dialIn(wait);
    this.#tell("onLost", why);
  }

  /** From the oldest on, again: what never ran, what the session runs once, what may run twice. */
  #rewind(keeps) {
    this.#toldMax = 0;
    for (const entry of [...this.#asked.values()]) {
      entry.here = false;
      entry.former = entry.sent;
      const again = !entry.sent || (keeps && entry.kept) || entry.idempotent;
      if (!again) this.#settle(entry, Status.UNKNOWN);
    }
  }

  /** The gateway says what it takes: what is larger doesn't go out. */
  #limit(bodyMax) {
    this.#bodyMax = Math.min(bodyMax, BODY_MAX);
    for (const entry of [...this.#asked.values()]) {
      if (entry.out.length <= HEAD + this.#bodyMax) continue;
      const { status, payload } = this.#tooLarge();
      this.#settle(entry, entry.sent ? Status.UNKNOWN : status, payload);
    }
  }

  /**
   * Something that went out on this line was too large: it is not sent again. False: nothing went out. A gateway reads
   * in order and stops at the first that is too large: what is as large as any that went out was that one, or came
   * behind it. If a notify was as large it isn't sure; nor is it of what an earlier line sent.
   */
  #blame() {
    const out = [...this.#asked.values()].filter((entry) => entry.here);
    const most = Math.max(0, ...out.map((entry) => entry.out.length));
    for (const entry of out.filter((e) => e.out.length === most)) {
      const unsure = entry.former || most <= this.#toldMax;
      this.#settle(entry, unsure ? Status.UNKNOWN : Status.BAD_REQUEST, encoder.encode("the gateway calls it too large"));
    }
    return most > 0 || this.#toldMax > 0;
  }

  #mark(again) {
    for (const entry of this.#asked.values()) {
      const flags = (entry.out[HEAD + 4] & ~Flag.AGAIN) | (again && entry.sent && entry.kept ? Flag.AGAIN : 0);
      if (flags === entry.out[HEAD + 4]) continue;
      entry.out = entry.out.slice(); // what a line was given is never changed
      entry.out[HEAD + 4] = flags;
    }
  }

  #forgetSession() {
    for (const entry of this.#asked.values()) entry.kept = false;
    this.#mark(false);
  }

  #end(error, tell) {
    this.#dropLine();
    this.#state = "ended";
    for (const entry of [...this.#asked.values()]) this.#settle(entry, entry.sent ? Status.UNKNOWN : Status.MOVING);
    const s = this.#session;
    if (s !== null) {
      s.state = "wanted";
      s.name = null;
      s.settle?.reject(error);
      s.left?.();
      this.#session = null;
    }
    this.#connecting?.reject(error);
    this.#connecting = null;
    if (tell) this.#tell("onKicked", error);
  }

  /* ---- greeting ---- */

  #hear(type, body) {
    const view = viewOf(body);
    switch (type) {
      case Type.HELLO_ACK: return this.#onHelloAck(view);
      case Type.AUTH_OK: return this.#onAuthOk(body);
      case Type.PING: return this.#onPing(body);
      case Type.PONG: return undefined;
      case Type.KICK: return this.#onKick(view.getUint32(0), text(body.subarray(4)));
      case Type.GOAWAY: return this.#onGoaway(view.getUint32(0), text(body.subarray(4)));
      case Type.RESPONSE: return this.#ifKnown(() => this.#onResponse(view, body));
      case Type.PUSH: return this.#ifKnown(() => this.#onPush(view.getBigUint64(0), body.subarray(8)));
      case Type.REBOUND: return this.#ifKnown(() => this.#onRebound(body));
      case Type.BEGUN: return this.#ifKnown(() => this.#onBegun(body));
      default:
        if (type < 128) throw new RangeError("no such packet");
        return undefined;
    }
  }

  #ifKnown(run) {
    if (!this.#known) throw new RangeError("not greeted yet");
    run();
  }

  #onHelloAck(view) {
    if (this.#greeted || view.byteLength < 24 || view.getUint8(0) !== VERSION) throw new RangeError("no hello-ack");
    if (view.getUint32(8) < BODY_LEAST) throw new RangeError("no largest body");
    this.#greeted = true;
    this.#heartbeatMs = view.getUint32(4);
    if (this.#heartbeatMs > 0) this.#heartbeatMs = Math.max(this.#heartbeatMs, HEARTBEAT_LEAST_MS);
    this.#limit(view.getUint32(8));
    this.#listen();
    if ((view.getUint16(2) & 1) === 0) this.#goOn();
    else if (this.#given !== null || this.#options.token) this.#showWho();
    else this.#end(new KickedError(106, "the gateway asks for a token"), true);
  }

  #showWho() {
    this.#showedGiven = this.#given !== null;
    if (!this.#showedGiven && this.#home !== null && this.#session !== null) {
      Object.assign(this.#session, this.#home, { name: null }); // who shows what it had at first is who it was then
      this.#home = null;
    }
    this.#send(packet(Type.AUTH, this.#given ?? bytes(this.#options.token)));
  }

  /** An entity, and perhaps a token of it. */
  #takeEntity(body) {
    const view = viewOf(body);
    const end = AUTH_OK_HEADER + view.getUint8(10);
    if (end === AUTH_OK_HEADER || end > body.length) throw new RangeError("no entity");
    const size = body.length < end + 2 ? 0 : view.getUint16(end);
    if (size > 0 && size > body.length - end - 2) throw new RangeError("no whole token");
    if (size > 0) this.#given = body.slice(end + 2, end + 2 + size);
    const expires = new Date(Number(view.getBigUint64(0)) * 1000);
    return { id: text(body.subarray(AUTH_OK_HEADER, end)), kind: view.getUint16(8), expires };
  }

  #onRebound(body) {
    this.#given = null;
    const who = this.#takeEntity(body);
    const s = this.#session;
    if (s?.state === "held") {
      const size = body[AUTH_OK_HEADER - 1];
      this.#stop("ack");
      this.#forgetSession();
      this.#home ??= { id: s.id, kind: s.kind };
      const id = body.slice(AUTH_OK_HEADER, AUTH_OK_HEADER + size);
      Object.assign(s, { id, kind: who.kind, state: "wanted", plain: false, name: null, pushed: 0n, unacked: 0 });
      Object.assign(s, { unackedSize: 0, wasHeld: false, waits: true });
    }
    const packets = this.#packets;
    this.#tell("onRebound", who);
    if (this.#packets === packets) this.#bindIfItWaits();
  }

  /** Behind a bind, nothing of before is answered. */
  #bindIfItWaits() {
    const s = this.#session;
    if (s?.waits && this.#state === "ready" && !this.#owes()) this.#askSession();
  }

  #onAuthOk(body) {
    if (!this.#greeted || this.#known) throw new RangeError("no auth was asked");
    const packets = this.#packets;
    this.#tell("onKnown", this.#takeEntity(body));
    if (this.#packets === packets) this.#goOn(); // else it was closed meanwhile
  }

  #goOn() {
    this.#known = true;
    if (this.#session === null) this.#beReady();
    else this.#askSession();
  }

  #beReady() {
    this.#stop("greet");
    this.#state = "ready";
    this.#readyAt = performance.now();
    this.#connecting?.resolve();
    this.#connecting = null;
    this.#flush();
    this.#tell("onReady");
  }

  /** Pings when nothing comes, and leaves who doesn't answer. */
  #listen() {
    if (this.#heartbeatMs === 0) return;
    const quiet = this.#owes() ? Math.min(this.#heartbeatMs, OWED_QUIET_MS) : this.#heartbeatMs;
    const silent = performance.now() - this.#heardAt;
    if (silent >= 2 * quiet) {
      this.#giveUp("the gateway sends nothing");
      return;
    }
    if (silent >= quiet && !this.#pinged) {
      this.#pinged = true;
      this.#send(packet(Type.PING));
    }
    this.#after("listen", Math.min(quiet, OWED_QUIET_MS) / 2, () => this.#listen());
  }

  /* ---- sessions ---- */

  #askSession() {
    const s = this.#session;
    s.waits = false;
    if (s.name === null) {
      s.state = "asked";
      this.#send(asking(Type.BIND, NAME_BIND, s.id, { kind: s.kind, flags: s.plain ? 0 : Flag.KEEP }));
    } else {
      const attempt = ++this.#attempts > 0xffff ? 0 : this.#attempts;
      const shown = packet(0, s.name, [8, s.pushed], [4, this.#least()], [2, attempt]).subarray(HEAD);
      s.state = "resuming";
      this.#send(asking(Type.RESUME, NAME_BIND, s.id, { kind: s.kind }, shown));
    }
  }

  #takeSession(payload) {
    const s = this.#session;
    s.name = payload.length >= BEGUN_SIZE ? payload.slice(0, SESSION_SIZE) : null;
    s.pushed = 0n; // if the next one is a later one than 1, those between are lost
  }

  #onBindAnswer(status, retryMs, payload) {
    const s = this.#session;
    if (s === null || (s.state !== "asked" && s.state !== "resuming")) return;
    if (this.#timers.has("bind")) return; // a second answer: it is asked again later
    if (status === Status.OK) this.#bound(payload);
    else if (s.state === "resuming") this.#resumeRefused(status, retryMs, payload);
    else this.#bindRefused(status, retryMs, payload);
  }

  #bound(payload) {
    const s = this.#session;
    const fresh = s.state === "asked";
    if (fresh) {
      this.#takeSession(payload);
    } else {
      this.#mark(true);
      if (payload.length >= BEGUN_SIZE) s.name = payload.slice(0, SESSION_SIZE);
    }
    s.state = "held";
    s.wasHeld = true;
    s.settle?.resolve();
    s.settle = null;
    if (s.left !== null) {
      s.state = "leaving";
      this.#send(packet(Type.UNBIND, [4, NAME_UNBIND]));
    }
    this.#tell("onBound", { fresh });
    if (this.#state === "greeting") this.#beReady();
    else this.#flush();
  }

  #bindAgain(retryMs) {
    const wait = this.#jittered(retryMs > 0 ? Math.min(retryMs, RETRY_MAX_MS) : AGAIN_MS);
    this.#after("greet", wait + this.#options.greetMs, () => this.#giveUp("nobody binds it in time"));
    this.#after("bind", wait, () => this.#askSession());
  }

  #refused(status, payload) {
    const s = this.#session;
    const error = new RingholdError(status, payload);
    this.#session = null;
    this.#forgetSession();
    s.left?.();
    if (s.settle !== null) s.settle.reject(error);
    else this.#tell("onRefused", error);
    if (this.#state === "greeting") this.#beReady();
    else this.#flush();
  }

  #bindRefused(status, retryMs, payload) {
    const s = this.#session;
    if (status === Status.BAD_REQUEST && text(payload).startsWith("requests are in progress")) {
      this.#bindAgain(retryMs); // what was asked of the actor before
    } else if (status === Status.BAD_REQUEST && !s.plain) {
      s.plain = true; // a gateway that keeps no sessions yet
      this.#askSession();
    } else if (status === Status.MOVING || status === Status.OVERLOADED || status === Status.RATE_LIMITED) {
      this.#bindAgain(retryMs);
    } else if (status === Status.NO_OWNER && s.wasHeld) {
      this.#bindAgain(retryMs); // its nodes are being replaced
    } else if (status === Status.UNKNOWN || status === Status.TIMEOUT) {
      this.#giveUp("the bind got no answer"); // it may be bound: a new connection isn't
    } else {
      this.#refused(status, payload);
    }
  }

  #resumeRefused(status, retryMs, payload) {
    if (status === Status.UNAUTHORIZED) {
      this.#refused(status, payload);
    } else if (status === Status.REJECTED && text(payload).startsWith("REPLACED")) {
      this.#end(new KickedError(1, text(payload)), true);
    } else if (status === Status.REJECTED || status === Status.BAD_REQUEST) {
      this.#session.name = null;
      this.#forgetSession();
      this.#rewind(false);
      this.#askSession();
    } else {
      this.#bindAgain(retryMs);
    }
  }

  #unbound() {
    const { left } = this.#session;
    this.#session.settle?.reject(new KickedError(0, "it was unbound"));
    this.#session = null;
    this.#forgetSession();
    left?.();
  }

  #noteHeard(size) {
    const s = this.#session;
    if (s === null || s.state !== "held" || s.name === null) return;
    s.unacked++;
    s.unackedSize += size;
    if (s.unacked >= ACK_COUNT || s.unackedSize > ACK_SIZE) this.#ack();
    else if (!this.#timers.has("ack")) this.#after("ack", ACK_MS, () => this.#ack());
  }

  #ack() {
    const s = this.#session;
    this.#stop("ack");
    if (s === null || s.state !== "held" || s.name === null || !this.#isRead()) return;
    s.unacked = 0;
    s.unackedSize = 0;
    this.#send(packet(Type.ACK, [8, s.pushed], [4, this.#least()]));
  }

  /* ---- what comes ---- */

  #onResponse(view, body) {
    const name = view.getUint32(0);
    const status = view.getUint8(4);
    const retryMs = view.getUint32(5);
    const payload = body.subarray(9);
    if (name === NAME_BIND) {
      this.#onBindAnswer(status, retryMs, payload);
    } else if (name === NAME_UNBIND) {
      if (this.#session?.state === "leaving") this.#unbound();
    } else {
      this.#onAnswer(this.#asked.get(name), status, retryMs, payload);
      this.#bindIfItWaits();
      this.#leaveIfDone();
    }
  }

  #onAnswer(entry, status, retryMs, payload) {
    if (entry === undefined || entry.settle === null) return; // it has ended here, as nobody answered in time
    if (status === Status.MOVING && this.#state === "leaving") {
      // It never ran: it goes to the next gateway, in its place. Of what was sent by an earlier line this one can't know.
      if ((entry.out[HEAD + 4] & Flag.AGAIN) === 0) entry.sent = entry.kept = false;
      entry.here = false;
      return;
    }
    this.#settle(entry, status, payload, retryMs);
    this.#noteHeard(sizeOfBody(payload));
  }

  #onPush(sequence, payload) {
    const s = this.#session;
    if (s === null || s.state !== "held") return;
    if (s.name === null && sequence === 1n) s.pushed = 0n; // the actor, begun afresh
    if (sequence <= s.pushed) return;
    const lost = Number(sequence - s.pushed - 1n);
    s.pushed = sequence;
    this.#noteHeard(sizeOfBody(payload));
    this.#tell("onPush", payload, { sequence: Number(sequence), lost });
  }

  #onBegun(body) {
    if (body.length < BEGUN_SIZE) throw new RangeError("no begun");
    if (this.#session?.state !== "held") return;
    this.#takeSession(body);
    this.#forgetSession();
    this.#tell("onBegun");
  }

  #onGoaway(retryMs, said) {
    this.#retryMs = Math.min(retryMs, RETRY_MAX_MS);
    this.#tell("onGoaway", { retryMs, text: said });
    if (this.#state === "ready") {
      this.#state = "leaving";
      this.#after("leave", LEAVE_MS, () => this.#giveUp("the gateway is stopping"));
      this.#leaveIfDone();
    } else if (this.#state === "greeting" || this.#state === "dialling") {
      this.#giveUp("the gateway accepts no clients now");
    }
  }

  #leaveIfDone() {
    if (this.#state === "leaving" && !this.#owes()) this.#giveUp("the gateway is stopping");
  }

  #onPing(body) {
    if (body.length > PING_MAX) throw new RangeError("no ping");
    if (this.#isRead()) this.#send(packet(Type.PONG, body));
  }

  #onKick(code, why) {
    if (LOGIN_KICKS.has(code) && this.#showedGiven && !this.#known) {
      this.#given = null; // it is over: log in again
      this.#giveUp(`kicked with ${code}: ${why}`);
    } else if (PASSING_KICKS.has(code) || (code === KICK_TOO_LARGE && this.#blame())) {
      if (this.#session !== null) this.#session.name = null; // a kick ends it
      this.#giveUp(`kicked with ${code}: ${why}`);
    } else {
      this.#end(new KickedError(code, why), true);
    }
  }
}

/** Another number would be cut, and be that of another kind. */
function kindOf(kind) {
  if (!(Number.isInteger(kind) && kind >= 0 && kind <= 0xffff)) throw new TypeError("a kind is a number below 65536");
  return kind;
}

function sizeOfBody(payload) {
  return payload.length + 9;
}
