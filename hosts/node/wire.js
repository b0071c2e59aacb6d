// SPDX-License-Identifier: Apache-2.0

/* The messages of wire/host.proto, written and read by hand: they are few and flat. */

const VARINT = 0;
const WIRE64 = 1;
const BYTES = 2;
const WIRE32 = 5;

const UINT64_MAX = (1n << 64n) - 1n;
const EASY_BYTES = 7; // of a varint, whose 49 bits a number holds
const VARINT_MAX = 10;

export const EMPTY = Buffer.alloc(0);

/** A frame of the node that does not decode. */
export class Malformed extends Error {
  constructor() {
    super("a frame of the node does not decode");
    this.name = "Malformed";
  }
}

/* ---- texts ----
 *
 * Names on the wire are bytes, here texts. One that isn't UTF-8 has each byte above 127 as the lone surrogate U+DC00
 * plus the byte, which no UTF-8 decodes to, so that it goes back as it came.
 */

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LONE = /\p{Surrogate}/u;

/** Bytes of a text, or the bytes themselves, borrowed. */
export function toBytes(value) {
  if (typeof value === "string") {
    if (!LONE.test(value)) return Buffer.from(value);
    return Buffer.concat([...value].map((c) => {
      const code = c.codePointAt(0);
      return code >= 0xdc80 && code <= 0xdcff ? Buffer.of(code - 0xdc00) : Buffer.from(c);
    }));
  }
  if (value === undefined || value === null) return EMPTY;
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  throw new TypeError("bytes are a text, an ArrayBuffer or a view of one");
}

/** The text of a name. */
export function toName(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return Array.from(bytes, (b) => String.fromCharCode(b < 0x80 ? b : 0xdc00 + b)).join("");
  }
}

/** Bytes of one's own. */
export function copied(bytes) {
  return new Uint8Array(bytes);
}

/* ---- writing ---- */

/* Of one byte: nearly all are. */
const SHORT = Array.from({ length: 0x80 }, (_, value) => Buffer.of(value));

function varint(value) {
  if (value < 0x80) return SHORT[Number(value)];
  const out = [];
  let rest = value;
  if (typeof rest === "bigint") {
    for (; rest >= 0x80n; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80);
    rest = Number(rest);
  }
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.push((rest % 0x80) | 0x80);
  out.push(rest);
  return Buffer.from(out);
}

/** A number from 0, a safe integer or a BigInt; 0 is left out, as proto3 does. */
export function uint(field, value) {
  if (typeof value === "bigint" ? value < 0n || value > UINT64_MAX : !Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`${value} is no number from 0 that is a safe integer, or a BigInt of 64 bits`);
  }
  return value === 0 || value === 0n ? EMPTY : always(field, value);
}

/** A number that may be 0: of a oneof. */
function always(field, value) {
  return Buffer.concat([varint(field * 8 + VARINT), varint(value)]);
}

/** A number of 64 bits that may be negative (sint64), also 0. */
export function sint(field, value) {
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new RangeError(`${value} is no safe integer`);
  const v = BigInt(value);
  if (BigInt.asIntN(64, v) !== v) throw new RangeError(`${value} has more than 64 bits`);
  return always(field, BigInt.asUintN(64, (v << 1n) ^ (v >> 63n)));
}

export function bool(field, value) {
  return value ? always(field, 1) : EMPTY;
}

/** Bytes, or a text; empty ones are left out. */
export function data(field, value) {
  const bytes = toBytes(value);
  return bytes.length === 0 ? EMPTY : whole(field, bytes);
}

/** Bytes, or a text, also empty ones: of a oneof, of a repeated field. */
export function whole(field, value) {
  const bytes = toBytes(value);
  return Buffer.concat([varint(field * 8 + BYTES), varint(bytes.length), bytes]);
}

/** A message in a field, of these parts. */
export function message(field, ...parts) {
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([varint(field * 8 + BYTES), varint(size), ...parts]);
}

/* ---- reading ---- */

/**
 * Goes through the fields of one message: `while (r.next())`, then `field`, and `value` or `data`, which is borrowed.
 * Throws Malformed.
 */
export class Reader {
  field = 0;
  /** Of a varint: a safe integer, or a BigInt where that is too small. */
  value = 0;
  /** Of bytes. */
  data = EMPTY;
  #all;
  #at = 0;

  constructor(bytes) {
    this.#all = bytes;
  }

  next() {
    if (this.#at >= this.#all.length) return false;
    const tag = Number(this.#varint());
    this.field = Math.floor(tag / 8);
    this.value = 0;
    this.data = EMPTY;
    switch (tag % 8) {
      case VARINT:
        this.value = this.#varint();
        break;
      case BYTES:
        this.data = this.#take(Number(this.#varint()));
        break;
      case WIRE64:
        this.#take(8);
        break;
      case WIRE32:
        this.#take(4);
        break;
      default:
        throw new Malformed();
    }
    return true;
  }

  #take(size) {
    const end = this.#at + size;
    if (end > this.#all.length) throw new Malformed();
    const taken = this.#all.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  #varint() {
    let low = 0;
    let high = 0n;
    for (let i = 0, scale = 1; i < VARINT_MAX; i++, scale *= 0x80) {
      if (this.#at >= this.#all.length) break;
      const byte = this.#all[this.#at++];
      if (i < EASY_BYTES) low += (byte & 0x7f) * scale;
      else high |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte >= 0x80) continue;
      if (high === 0n) return low;
      const value = high + BigInt(low);
      if (value > UINT64_MAX) break;
      return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
    }
    throw new Malformed();
  }
}

const FIELD_MAX = 31; // of those that are known

class Fields {
  #values = [];
  #data = [];

  constructor(bytes) {
    this.bytes = bytes;
    for (const r = new Reader(bytes); r.next();) {
      if (r.field > FIELD_MAX) continue;
      this.#values[r.field] = r.value;
      this.#data[r.field] = r.data;
    }
  }

  uint(field) {
    return this.#values[field] ?? 0;
  }

  data(field) {
    return this.#data[field] ?? EMPTY;
  }

  has(field) {
    return this.#values[field] !== undefined;
  }
}

/** The fields of a message, by number: of one that comes again, the last. What is missing is 0, or empty. */
export function fieldsOf(bytes) {
  return new Fields(bytes);
}

/** All that a field that may be repeated has. */
export function allOf(bytes, field) {
  const found = [];
  for (const r = new Reader(bytes); r.next();) {
    if (r.field === field) found.push(r.data);
  }
  return found;
}

/** What a node says: the fields of NodeSays.body. */
export const Says = Object.freeze({
  WELCOME: 1, GOODBYE: 2, PING: 3, ACTIVATE: 4, MESSAGE: 5, TIMER: 6, ALARM: 7, SESSION: 8, FLUSH: 9, HANDOFF: 10,
  ANSWER: 11, RESUME: 12, DEACTIVATE: 13,
});

/** What a host says: the fields of HostSays.body. */
export const Tells = Object.freeze({ HELLO: 1, PONG: 2, STEP: 3, WINDOW: 4 });

/** The fields of Effect.type. */
export const Effects = Object.freeze({
  CALL: 1, SEND: 2, SEND_ONCE: 3, PUSH: 4, PUSH_IDS: 5, KICK: 6, REBIND: 7, PUT: 8, DELETE: 9, UNDO: 10, SET_ALARM: 11,
  CANCEL_ALARM: 12, START_TIMER: 13, STOP_TIMER: 14, FLUSH_SOON: 15, PASSIVATE: 16,
});
