/* SPDX-License-Identifier: Apache-2.0 */

/**
 * Numbers of 64 bits that the node makes are BigInt: fences and sessions. Those of your own (timers, milliseconds) are
 * safe integers; an answer that is a number may be either.
 */

/** What ids, keys and payloads may be: a text is sent as UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView;

/** Names an actor: its kind's number (`Turn.named`, `Host.kind`) and its id of 1 to 255 bytes. */
export interface Ref {
  readonly kind: number;
  readonly id: string;
}

/** Why an actor saves or ends. FENCED: keep nothing, write nothing, for the id lives elsewhere. */
export declare const Why: Readonly<{ MOVED: 0; STOPS: 1; FENCED: 2; IDLE: 3; BROKEN: 4; PERIODIC: 5 }>;
export type Why = (typeof Why)[keyof typeof Why];

/** What became of a client. */
export declare const SessionEvent: Readonly<{ BOUND: 1; REPLACED: 2; RESUMED: 3; LOST: 4 }>;
export type SessionEvent = (typeof SessionEvent)[keyof typeof SessionEvent];

/** How a call ended, if it was not answered. */
export declare const Status: Readonly<{
  OK: 0; INVALID: 1; TOO_BIG: 3; FAILED: 4; UNKNOWN: 8; TIMEOUT: 9; REJECTED: 10; NO_KIND: 11; OVERLOADED: 12;
  QUARANTINED: 13; DEADLOCK: 16;
}>;

/** What handoff() may return: not now; there is no state. */
export interface Unmoved {
  readonly unmoved: "busy" | "cold";
}
export declare const BUSY: Unmoved;
export declare const COLD: Unmoved;

/**
 * An answer that is an error, thrown: the first word of its text is a code in capitals, or ERR is put before it. It
 * undoes nothing: `turn.undo()` does.
 */
export declare class ReplyError extends Error {
  constructor(text: string);
}

/** A call that was not answered, or answered by an error. If nobody catches it, it is the answer of who called. */
export declare class CallError extends ReplyError {
  constructor(status: number, text: string);
  /** Of `Status`. */
  readonly status: number;
  /** False: it did not run, and won't. */
  readonly mayHaveRun: boolean;
}

/** This life of the actor, or the turn, is over: nothing can be said any more. */
export declare class OverError extends Error {
  constructor(text: string);
}

/** The node ended the connection: docs/host-protocol.md has the reasons. */
export declare class RefusedError extends Error {
  constructor(reason: number, text: string);
  readonly reason: number;
  /** No later try would change it. */
  readonly final: boolean;
}

/** An answer of one line. */
export declare class Line {
  private constructor();
  readonly text: string;
}

/** An answer of one line, such as "OK". */
export declare function line(text: string): Line;

/** The text that bytes are, in UTF-8. */
export declare function text(bytes: Uint8Array): string;

/** An answer: bytes, a text as bytes, a line, a number, nothing. */
export type Answer = Payload | Line | number | bigint | null | undefined | void;

/** One request. Its bytes are the receiver's own. */
export interface Message {
  /** Empty if there are arguments. */
  readonly payload: Uint8Array;
  /** The payload in UTF-8. */
  readonly text: string;
  /** Of a command: its name in upper case, the key, the rest. */
  readonly args: readonly Uint8Array[];
  /** Nobody waits for an answer. */
  readonly noReply: boolean;
  /** Its sender allows it to run again after a crash. */
  readonly idempotent: boolean;
  /** The actor that sent it; undefined: a client. */
  readonly from: Ref | undefined;
}

/** A timer that is in the store, by its name. */
export interface Alarm {
  /** 1 to 255 bytes. */
  readonly name: string;
  /** Up to 64 KiB. */
  readonly payload: Uint8Array;
  /** Since 1970. */
  readonly dueMs: number;
  /** 0: once. */
  readonly everyMs: number;
}

/** An event of a client that is bound to the actor. */
export interface Session {
  readonly event: SessionEvent;
  /** Of LOST: 1 closed, 2 kicked, 3 too slow, 4 its gateway is gone, 5 rebound. Of RESUMED: 0 the actor was started afresh, 1 the client is back. */
  readonly why: number;
  /** For `push`, `kick` and `rebind`. */
  readonly number: bigint;
  /** Of REPLACED: the session that is over. */
  readonly former: bigint;
}

/** The named values of a durable actor, for reading. The bytes belong to the actor: don't change them. */
export interface ReadonlyValues extends Iterable<[string, Uint8Array]> {
  readonly size: number;
  get(key: string): Uint8Array | undefined;
  has(key: string): boolean;
  /** In order; with `prefix`, those that begin so. */
  keys(prefix?: string): IterableIterator<string>;
  values(): IterableIterator<Uint8Array>;
  entries(): IterableIterator<[string, Uint8Array]>;
  forEach(call: (value: Uint8Array, key: string, values: this) => void, self?: unknown): void;
}

/** The same, to change in a turn: what changes is saved with its step. */
export interface Values extends ReadonlyValues {
  /** A key of 1 to 255 bytes, a value of up to 1 MiB, of which it keeps a copy. */
  set(key: string, value: Payload): this;
  /** Whether there was one. */
  delete(key: string): boolean;
}

/** One life of an actor. */
export interface Actor {
  readonly id: string;
  /** The number of its kind, and its name. */
  readonly kind: number;
  readonly kindName: string;
  readonly ref: Ref;
  /** Grows from owner to owner: for a store of your own. */
  readonly fence: bigint;
  readonly values: ReadonlyValues;
  /** An alarm as it was set; a periodic one has the time of its first. */
  alarm(name: string): Alarm | undefined;
}

export interface CallOptions {
  /** 1 to 60000 (5000). */
  timeoutMs?: number;
  /** It may run again after a crash. */
  idempotent?: boolean;
}

/**
 * What an actor does for one message, timer, alarm or the like. It is said to the node when the turn ends, or when it
 * waits for a call: of a durable actor all until then is one commit. Once the turn is over, its methods throw OverError.
 */
export interface Turn {
  readonly actor: Actor;
  readonly values: Values;
  /** Aborts when this life of the actor is over. */
  readonly signal: AbortSignal;

  /** The name of an actor of a kind that this host serves. */
  named(kind: string, id: string): Ref;
  /** Asks another actor. Calls that are begun before the code waits go on side by side. Rejects with CallError, OverError. */
  call(to: Ref, payload?: Payload, options?: CallOptions): Promise<Uint8Array>;
  /** A message that nobody answers: at most once, in order with the calls to the same actor. */
  send(to: Ref, payload?: Payload): void;
  /** A message of a durable actor that arrives exactly once, whatever dies. */
  sendOnce(to: Ref, payload?: Payload): void;

  /** Up to 256 KiB, to all clients of the actor, or to one, by `Session.number`. */
  push(payload: Payload, session?: bigint): void;
  /** The same bytes to the clients of other actors of one kind: a room's. */
  pushIds(kind: number, ids: Iterable<string>, payload: Payload): void;
  /** Ends the connections of all clients, or of one, with a code of 1000 or more. */
  kick(code: number, why?: string, session?: bigint): void;
  /** Lets all clients, or one, go on as another actor. */
  rebind(to: Ref, session?: bigint): void;

  /** Says what the turn has done so far: of a durable actor it is saved, and stays though the turn fails later. */
  commit(): void;
  /** Takes back what was changed of values and alarms since the turn began, or waited. */
  undo(): void;
  /** Sets an alarm, instead of the one that has its name. `dueMs` is since 1970; `everyMs` 0 or 100 and up. */
  setAlarm(alarm: { name: string; dueMs: number; everyMs?: number; payload?: Payload }): void;
  cancelAlarm(name: string): void;
  /** Has timer() called after `ms`, and then every `everyMs` unless that is 0, instead of the timer with that number. */
  startTimer(number: number, ms: number, everyMs?: number): void;
  stopTimer(number: number): void;
  /** Asks for flush(). */
  flushSoon(): void;
  /** Ends the actor when this turn is done. */
  passivate(): void;
}

/**
 * The code of one actor: a class that is made anew for each life. Its methods run one at a time, and may wait. Anything
 * else than a ReplyError that one throws breaks the actor: the next request starts it afresh.
 */
export interface Code {
  /** It comes to life. `state` is what handoff() returned at the former owner; undefined: it starts afresh. What it throws: it is tried again later. */
  activate?(turn: Turn, state: Uint8Array | undefined): void | Promise<void>;
  /** Answers a request. A ReplyError is answered as an error. */
  message(turn: Turn, message: Message): Answer | Promise<Answer>;
  /** What Turn.startTimer started. */
  timer?(turn: Turn, number: number): void | Promise<void>;
  /** Of a durable kind. A ReplyError: what changed since the last step is undone, and the alarm comes again. */
  alarm?(turn: Turn, alarm: Alarm): void | Promise<void>;
  /** A client. A ReplyError turns it away. */
  session?(turn: Turn, session: Session): void | Promise<void>;
  /** Saves what the actor has, by writes that are conditional on the fence. If it throws anything, it is asked again. */
  flush?(turn: Turn, why: Why): void | Promise<void>;
  /** The state for the next owner; BUSY: not now; COLD or nothing: there is none. */
  handoff?(turn: Turn): Payload | Unmoved | void | Promise<Payload | Unmoved | void>;
  /** The actor stays after all. */
  resume?(): void | Promise<void>;
  /** This life is over; nothing can be said any more. */
  deactivate?(why: Why): void | Promise<void>;
}

/** How much of its work the node may give at a time. */
export interface Window {
  /** Turns that are not done (4096). */
  turns?: number;
  /** Bytes that came with them (16 MiB). */
  bytes?: number;
}

export interface Options {
  /** Of the node's --host: "unix:PATH" or "HOST:PORT". */
  address: string;
  /** For the node's log: 1 to 63 plain characters ("node"). */
  name?: string;
  /** What the node's --host-token has, which TCP needs. */
  token?: string;
  window?: Window;
  /** Gets a text for each connection that ends or can't be made, and each error that breaks an actor (console.error). */
  log?: (text: string) => void;
}

/** The actors of a node whose code is here. */
export declare class Host {
  constructor(options: Options);
  /** Adds a kind, before run(). Which of alarm, session and flush its class has is what the node's --kind must say. */
  register(name: string, Code: new (actor: Actor) => Code, options?: { durable?: boolean }): this;
  /** The node's number of a kind of this host; undefined before it is connected, and if there is none. */
  kind(name: string): number | undefined;
  /** Says how much the node may give at a time from now on. */
  setWindow(window: Window): void;
  /**
   * Serves the node until `signal` aborts. When the connection is lost, all actors end, and it connects again. Rejects
   * with RefusedError: the node does not want this host, and no later try would help.
   */
  run(options?: { signal?: AbortSignal }): Promise<void>;
}
