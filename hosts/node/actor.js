// SPDX-License-Identifier: Apache-2.0

/* Actors and their turns. An actor has one turn at a time; what it does in it is gathered and said as a step. */

import { BUSY, COLD, CallError, OverError, ReplyError, Status, errorText, errorValue, valueOf } from "./kinds.js";
import {
  EMPTY, Effects, Reader, Tells, allOf, bool, copied, data, fieldsOf, message, toBytes, toName, uint, whole,
} from "./wire.js";

const CALL_MS = 5000;
const STEP_ROOM = 64; // of a frame: what is around a step
const Result = Object.freeze({ OK: 0, FAILED: 1, BUSY: 2, COLD: 3 });

function alarmOf(f, [name, payload, dueMs, everyMs]) {
  return Object.freeze({
    name: toName(f.data(name)),
    payload: copied(f.data(payload)),
    dueMs: Number(f.uint(dueMs)),
    everyMs: Number(f.uint(everyMs)),
  });
}

/* ---- what an actor keeps ---- */

/** The named values of a durable actor, as a Map: a text is saved as UTF-8. Iteration is in order of the keys. */
export class Values {
  #map;
  #book;

  constructor(map, book) {
    this.#map = map;
    this.#book = book;
  }

  get size() {
    return this.#map.size;
  }

  get(key) {
    return this.#map.get(key);
  }

  has(key) {
    return this.#map.has(key);
  }

  set(key, value) {
    const bytes = copied(toBytes(value));
    this.#open().effect(Effects.PUT, data(1, key), data(2, bytes));
    this.#book.change(this.#map, key, bytes);
    return this;
  }

  delete(key) {
    const had = this.#map.has(key);
    this.#open().effect(Effects.DELETE, data(1, key));
    this.#book.change(this.#map, key, undefined);
    return had;
  }

  /** The keys that begin so. */
  *keys(prefix = "") {
    yield* [...this.#map.keys()].filter((key) => key.startsWith(prefix)).sort();
  }

  *entries() {
    for (const key of this.keys()) yield [key, this.#map.get(key)];
  }

  *values() {
    for (const [, value] of this.entries()) yield value;
  }

  forEach(call, self) {
    for (const [key, value] of this.entries()) call.call(self, value, key, this);
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  #open() {
    if (this.#book === undefined) throw new TypeError("values are changed in a turn: by turn.values");
    return this.#book;
  }
}

/** One life of an actor, as its code sees it. */
export class Actor {
  #life;

  constructor(life) {
    this.#life = life;
    this.id = life.id;
    this.kind = life.number;
    this.kindName = life.kind.name;
    this.fence = life.fence;
    /** For reading, at any time; a turn's own `values` change them. */
    this.values = new Values(life.values);
  }

  /** The actor's name, for others. */
  get ref() {
    return { kind: this.kind, id: this.id };
  }

  /** An alarm that is set, or undefined. */
  alarm(name) {
    return this.#life.alarms.get(name);
  }
}

/* ---- turns ---- */

/** What a turn has done and not said yet. */
class Book {
  effects = [];
  over = false;
  #changes = [];
  #toCommit = false;

  constructor(life, number) {
    this.life = life;
    this.number = number;
  }

  effect(field, ...parts) {
    if (this.life.ended) throw new OverError("this life of the actor is over");
    if (this.over) throw new OverError("the turn is over");
    this.effects.push(message(3, message(field, ...parts)));
  }

  /** Keeps how it was, for undo(). */
  change(map, key, value) {
    this.#changes.push([map, key, map.get(key)]);
    if (value === undefined) map.delete(key);
    else map.set(key, value);
  }

  get changed() {
    return this.#changes.length > 0;
  }

  undo() {
    for (const [map, key, before] of this.#changes.splice(0).reverse()) {
      if (before === undefined) map.delete(key);
      else map.set(key, before);
    }
  }

  /** Says a step: what there is, and how the turn ended if it did. */
  say(done) {
    let end = done;
    let step = this.#packed(end);
    if (step.length > this.life.link.frameMax - STEP_ROOM) {
      end = { result: Result.FAILED, fail: "ERR the actor's step is larger than the node takes" };
      this.effects = [];
      step = this.#packed(end);
    }
    this.effects = [];
    this.#changes = [];
    if (end !== undefined) this.over = true;
    this.life.link.say(step);
  }

  commit() {
    if (this.effects.length > 0 && !this.over && !this.life.ended) this.say();
  }

  /** Says what there is when the code that runs waits. */
  commitSoon() {
    if (this.#toCommit) return;
    this.#toCommit = true;
    queueMicrotask(() => {
      this.#toCommit = false;
      this.commit();
    });
  }

  #packed(done) {
    const end = done === undefined ? EMPTY : message(4,
      uint(1, done.result ?? Result.OK),
      done.reply === undefined ? EMPTY : whole(2, done.reply),
      data(3, done.state),
      data(4, done.fail));
    return message(Tells.STEP, uint(1, this.life.activation), uint(2, this.number), ...this.effects, end);
  }
}

/** What an actor does for one message, timer, alarm or the like. */
export class Turn {
  #book;

  constructor(book) {
    this.#book = book;
    this.actor = book.life.actor;
    this.values = new Values(book.life.values, book);
  }

  /** Aborts when this life of the actor is over. */
  get signal() {
    return this.#book.life.signal;
  }

  /** Says what the turn has done so far: of a durable actor it is saved, and stays though the turn fails later. */
  commit() {
    this.#book.commit();
  }

  /** The name of an actor of a kind that this host serves. */
  named(kind, id) {
    const number = this.#book.life.link.host.kind(kind);
    if (number === undefined) throw new TypeError(`this host has no kind ${kind}`);
    return { kind: number, id };
  }

  /**
   * Asks another actor. All that the turn has done is said when the code waits next; calls that were begun before that
   * go on side by side.
   */
  call(to, payload, { timeoutMs = CALL_MS, idempotent = false } = {}) {
    const { life } = this.#book;
    const number = ++life.lastCall;
    this.#book.effect(Effects.CALL, uint(1, number), uint(2, to.kind), data(3, to.id), data(4, payload),
      uint(5, timeoutMs), bool(6, idempotent));
    const answer = new Promise((resolve, reject) => life.calls.set(number, { resolve, reject }));
    answer.catch(() => {}); // who awaits it hears of it; who doesn't need not
    this.#book.commitSoon();
    return answer;
  }

  send(to, payload) {
    this.#book.effect(Effects.SEND, uint(1, to.kind), data(2, to.id), data(3, payload));
  }

  sendOnce(to, payload) {
    this.#book.effect(Effects.SEND_ONCE, uint(1, to.kind), data(2, to.id), data(3, payload));
  }

  push(payload, session = 0n) {
    this.#book.effect(Effects.PUSH, uint(1, session), data(2, payload));
  }

  pushIds(kind, ids, payload) {
    const packed = [...ids].map((id) => whole(2, id));
    if (packed.length > 0) this.#book.effect(Effects.PUSH_IDS, uint(1, kind), ...packed, data(3, payload));
  }

  kick(code, why = "", session = 0n) {
    this.#book.effect(Effects.KICK, uint(1, session), uint(2, code), data(3, why));
  }

  rebind(to, session = 0n) {
    this.#book.effect(Effects.REBIND, uint(1, session), uint(2, to.kind), data(3, to.id));
  }

  /** Takes back what was changed of values and alarms since the turn began, or waited. */
  undo() {
    if (!this.#book.changed) return;
    this.#book.effect(Effects.UNDO);
    this.#book.undo();
  }

  setAlarm({ name, dueMs, everyMs = 0, payload }) {
    const alarm = Object.freeze({ name, dueMs: Math.round(dueMs), everyMs, payload: copied(toBytes(payload)) });
    this.#book.effect(Effects.SET_ALARM, data(1, name), uint(2, alarm.dueMs), uint(3, everyMs), data(4, alarm.payload));
    this.#book.change(this.#book.life.alarms, name, alarm);
  }

  cancelAlarm(name) {
    this.#book.effect(Effects.CANCEL_ALARM, data(1, name));
    this.#book.change(this.#book.life.alarms, name, undefined);
  }

  startTimer(number, ms, everyMs = 0) {
    this.#book.effect(Effects.START_TIMER, uint(1, number), uint(2, ms), uint(3, everyMs));
  }

  stopTimer(number) {
    this.#book.effect(Effects.STOP_TIMER, uint(1, number));
  }

  flushSoon() {
    this.#book.effect(Effects.FLUSH_SOON);
  }

  /** Ends the actor when this turn is done. */
  passivate() {
    this.#book.effect(Effects.PASSIVATE);
  }
}

/* ---- lives ---- */

const decoder = new TextDecoder();

function messageOf(f) {
  const args = f.has(4) ? allOf(f.bytes, 4).map(copied) : [];
  const payload = copied(f.data(3));
  const from = f.data(8);
  return {
    payload,
    args,
    noReply: f.uint(5) !== 0,
    idempotent: f.uint(6) !== 0,
    from: from.length === 0 ? undefined : { kind: f.uint(7), id: toName(from) },
    get text() {
      return decoder.decode(payload);
    },
  };
}

/** One life of an actor at this host: what its code need not see. */
export class Life {
  values = new Map();
  alarms = new Map();
  calls = new Map();
  lastCall = 0;
  ended = false;
  #code;
  #state;
  #controller;
  #open; // the book of the turn that runs
  #why; // it ended so while that ran

  /** Of an Activate. */
  constructor(link, f) {
    this.link = link;
    this.activation = f.uint(1);
    this.number = f.uint(3);
    this.kind = link.kinds.get(this.number);
    this.id = toName(f.data(4));
    this.fence = BigInt(f.uint(5));
    this.#state = f.uint(6) === 0 ? undefined : copied(f.data(7));
    for (const r = new Reader(f.bytes); r.next();) {
      if (r.field === 9) {
        const pair = fieldsOf(r.data);
        this.values.set(toName(pair.data(1)), copied(pair.data(2)));
      } else if (r.field === 10) {
        const alarm = alarmOf(fieldsOf(r.data), [1, 4, 2, 3]);
        this.alarms.set(alarm.name, alarm);
      }
    }
  }

  get signal() {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.ended) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /* Turns: what runs, how it ends, and how if a ReplyError is thrown. Whatever else is thrown breaks the actor. */

  activate(f) {
    this.actor = new Actor(this);
    const state = this.#state;
    this.#state = undefined;
    this.#run(f, (turn) => {
      this.#code = new this.kind.Code(this.actor);
      return this.#code.activate?.(turn, state);
    }, () => ({}), { no: () => ({ result: Result.FAILED }) });
  }

  message(f) {
    const m = messageOf(f);
    this.#run(f, (turn) => this.#code.message(turn, m), (answer) => ({ reply: valueOf(answer) }),
      { no: (error) => ({ reply: errorValue(error) }) });
  }

  timer(f) {
    const number = f.uint(3);
    this.#run(f, (turn) => this.#code.timer?.(turn, number), () => ({}), {
      no: (error) => {
        this.#log("a timer", error);
        return {};
      },
    });
  }

  alarm(f) {
    const alarm = alarmOf(f, [3, 4, 5, 6]);
    const held = this.alarms.get(alarm.name);
    this.#run(f, (turn) => this.#code.alarm(turn, alarm), () => {
      if (alarm.everyMs === 0 && this.alarms.get(alarm.name) === held) this.alarms.delete(alarm.name); // not set anew
      return {};
    }, {
      no: (_, book) => {
        book.undo();
        return { result: Result.FAILED };
      },
    });
  }

  session(f) {
    const session = { event: f.uint(3), why: f.uint(4), number: BigInt(f.uint(5)), former: BigInt(f.uint(6)) };
    this.#run(f, (turn) => this.#code.session(turn, session), () => ({}),
      { no: () => ({ result: Result.FAILED }) });
  }

  /** What can't be saved is asked for again, whatever was thrown. */
  flush(f) {
    const why = f.uint(3);
    this.#run(f, (turn) => this.#code.flush(turn, why), () => ({}), {
      all: true,
      no: (error) => {
        this.#log("flush", error);
        return { result: Result.FAILED };
      },
    });
  }

  handoff(f) {
    const run = (turn) => (this.#code.handoff === undefined ? COLD : this.#code.handoff(turn));
    this.#run(f, run, (state) => {
      if (state === BUSY) return { result: Result.BUSY };
      if (state === COLD || state === undefined || state === null) return { result: Result.COLD };
      return { state: toBytes(state) };
    }, { no: () => ({ result: Result.COLD }) });
  }

  /* Beside turns. */

  answer(f) {
    const call = this.calls.get(f.uint(2));
    this.calls.delete(f.uint(2));
    if (f.uint(3) === Status.OK) call?.resolve(copied(f.data(4)));
    else call?.reject(new CallError(f.uint(3), decoder.decode(f.data(4))));
  }

  resume() {
    this.#beside("resume", () => this.#code.resume?.());
  }

  /** This life is over: a turn that runs is told, and the code when that is through. */
  end(why) {
    this.ended = true;
    this.#why = why;
    this.#controller?.abort();
    this.#reject("this life of the actor is over");
    if (this.#open === undefined) this.#through();
  }

  #run(f, run, end, { no, all = false }) {
    const book = new Book(this, f.uint(2));
    const bad = (error) => this.#finish(book, () => {
      if (all || error instanceof ReplyError) return no(error, book);
      if (!this.ended) this.#log("it broke", error);
      return { result: Result.FAILED, fail: errorText(`ERR the actor threw: ${String(error?.message ?? error)}`) };
    });
    const good = (value) => {
      let done;
      try {
        done = end(value);
      } catch (error) {
        bad(error);
        return;
      }
      this.#finish(book, () => done);
    };
    this.#open = book;
    let ran;
    try {
      ran = run(new Turn(book));
    } catch (error) {
      bad(error);
      return;
    }
    if (typeof ran?.then === "function") ran.then(good, bad);
    else good(ran);
  }

  #finish(book, done) {
    this.#open = undefined;
    if (this.ended) {
      this.#through();
      return;
    }
    this.#reject("the turn is over");
    if (book.over) return; // its step was too large
    const end = done();
    book.say(end);
    if (book.number === 1 && end.result === Result.FAILED) {
      this.ended = true; // the node says no more of it
      this.#controller?.abort();
      this.link.lives.delete(this.activation);
    }
  }

  #through() {
    this.#beside("deactivate", () => this.#code?.deactivate?.(this.#why));
  }

  #reject(text) {
    for (const call of this.calls.values()) call.reject(new OverError(text));
    this.calls.clear();
  }

  #beside(what, run) {
    try {
      Promise.resolve(run()).catch((error) => this.#log(what, error));
    } catch (error) {
      this.#log(what, error);
    }
  }

  #log(what, error) {
    this.link.host.log(`${this.kind.name} ${this.id}: ${what}: ${String(error?.stack ?? error)}`);
  }
}
