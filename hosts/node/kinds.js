// SPDX-License-Identifier: Apache-2.0

/* What a kind's code and the host have in common: words, errors, answers. */

import { bool, data, sint, whole } from "./wire.js";

/** Why an actor saves or ends. FENCED: keep nothing, write nothing, for the id lives elsewhere. */
export const Why = Object.freeze({ MOVED: 0, STOPS: 1, FENCED: 2, IDLE: 3, BROKEN: 4, PERIODIC: 5 });

/** What became of a client. */
export const SessionEvent = Object.freeze({ BOUND: 1, REPLACED: 2, RESUMED: 3, LOST: 4 });

/** How a call ended, if it was not answered. After UNKNOWN and TIMEOUT it may have run, once; else it did not, and won't. */
export const Status = Object.freeze({
  OK: 0, INVALID: 1, TOO_BIG: 3, FAILED: 4, UNKNOWN: 8, TIMEOUT: 9, REJECTED: 10, NO_KIND: 11, OVERLOADED: 12,
  QUARANTINED: 13, DEADLOCK: 16,
});

/** What handoff() may return: not now; there is no state. */
export const BUSY = Object.freeze({ unmoved: "busy" });
export const COLD = Object.freeze({ unmoved: "cold" });

/** An answer that is an error, thrown: the first word of its text is a code in capitals, or ERR is put before it. */
export class ReplyError extends Error {
  constructor(text) {
    super(text);
    this.name = "ReplyError";
  }
}

/** A call that was not answered, or answered by an error. If nobody catches it, it is the answer of who called. */
export class CallError extends ReplyError {
  constructor(status, text) {
    super(text);
    this.name = "CallError";
    this.status = status;
    /** False: it did not run, and won't. */
    this.mayHaveRun = [Status.FAILED, Status.UNKNOWN, Status.TIMEOUT].includes(status);
  }
}

/** This life of the actor, or the turn, is over: nothing can be said any more. */
export class OverError extends Error {
  constructor(text) {
    super(text);
    this.name = "OverError";
  }
}

/** The node ended the connection: docs/host-protocol.md has the reasons. */
export class RefusedError extends Error {
  constructor(reason, text) {
    super(`the node says goodbye: ${text}`);
    this.name = "RefusedError";
    this.reason = reason;
    /** No later try would change it: a mistake of ours, or of the options. */
    this.final = [1, 2, 3, 5, 7, 8, 9].includes(reason);
  }
}

/** An answer of one line, such as "OK". */
export class Line {
  constructor(text) {
    if (/[\r\n\0]/.test(text)) throw new TypeError("a line has no line breaks and no NUL");
    this.text = text;
  }
}

/** An answer of one line. */
export function line(text) {
  return new Line(text);
}

const decoder = new TextDecoder();

/** The text that bytes are, in UTF-8. */
export function text(bytes) {
  return decoder.decode(bytes);
}

/** How an error is told. */
export function errorText(said) {
  const one = String(said).replace(/[\r\n\0]/g, " ");
  return /^[A-Z][A-Z0-9]*( |$)/.test(one) ? one : `ERR ${one}`;
}

/** A Value (wire/host.proto) of what message() returned, or undefined for nil. */
export function valueOf(answer) {
  if (answer === undefined || answer === null) return undefined;
  if (typeof answer === "number" || typeof answer === "bigint") return sint(3, answer);
  if (answer instanceof Line) return whole(2, answer.text);
  return whole(1, answer);
}

export function errorValue(error) {
  return whole(5, errorText(error.message));
}

/** A kind, as it was registered. */
export class Kind {
  constructor(name, Code, { durable = false } = {}) {
    this.name = name;
    this.Code = Code;
    this.durable = durable;
    this.alarms = typeof Code.prototype?.alarm === "function";
    this.sessions = typeof Code.prototype?.session === "function";
    this.flush = typeof Code.prototype?.flush === "function";
    if (typeof Code.prototype?.message !== "function") throw new TypeError(`the class of the kind ${name} has no method message()`);
    if (durable && this.flush) throw new TypeError(`the kind ${name} is durable, so it has no flush()`);
    if (this.alarms && !durable) throw new TypeError(`the kind ${name} has alarm(), so it must be durable`);
  }

  /** A HostedKind. */
  packed() {
    return Buffer.concat([
      data(1, this.name), bool(2, this.durable), bool(3, this.alarms), bool(4, this.sessions), bool(5, this.flush),
    ]);
  }
}
