/* SPDX-License-Identifier: Apache-2.0 */

/** Types of packets. */
export declare const Type: Readonly<Record<
  | "HELLO" | "HELLO_ACK" | "PING" | "PONG" | "KICK" | "REQUEST" | "RESPONSE" | "NOTIFY" | "PUSH" | "GOAWAY" | "BIND"
  | "UNBIND" | "AUTH" | "RESUME" | "AUTH_OK" | "BEGUN" | "ACK" | "REBOUND",
  number
>>;

/** Names of how a request ended. */
export type StatusName =
  | "OK" | "ACTOR_FAILED" | "UNKNOWN" | "TIMEOUT" | "MOVING" | "OVERLOADED" | "NO_OWNER" | "QUARANTINED" | "REJECTED"
  | "BAD_REQUEST" | "UNAUTHORIZED" | "RATE_LIMITED";

/** How a request ended. A number that isn't here is to be taken as UNKNOWN. */
export declare const Status: Readonly<Record<StatusName, number>>;

/** What ids and payloads may be: a text is sent as UTF-8. */
export type Payload = string | ArrayBuffer | ArrayBufferView;

/** Bytes of a text, or the bytes themselves. */
export declare function bytes(value: Payload | null | undefined): Uint8Array;

/** The text that bytes are, in UTF-8. */
export declare function text(value: Uint8Array): string;

/** A request that has no good answer. */
export declare class RingholdError extends Error {
  constructor(status: number, payload?: Uint8Array, retryMs?: number);
  /** Of `Status`. */
  readonly status: number;
  /** Its name. */
  readonly code: StatusName;
  /** What the gateway or the actor says about it. */
  readonly payload: Uint8Array;
  /** When asking again may do better; 0 = now or never. */
  readonly retryMs: number;
  /** False: it did not run and never will. */
  readonly mayHaveRun: boolean;
}

/** The gateway sent the client away for good (docs/protocol-client.md has the codes), or it was closed (code 0). */
export declare class KickedError extends Error {
  constructor(code: number, why: string);
  readonly code: number;
}

export interface Options {
  /** Shown to gateways that ask: a token, or what the game's login takes, up to 1024 bytes. */
  token?: string | Uint8Array;
  /** Requests and notifies without an answer at a time (1024). */
  requestsMax?: number;
  /** Bytes of all these (1 MiB). */
  outMax?: number;
  /** Bytes of the largest packet that is taken (1 MiB + 64). */
  maxPacket?: number;
  /** After which a request ends, answered or not (15000). */
  answerMs?: number;
  /** For a connection to be made and greeted (10000). */
  greetMs?: number;
  /** Of the first try after a failure, then doubled (200). */
  backOffMinMs?: number;
  /** (10000) */
  backOffMaxMs?: number;
  /** Of jitter (Math.random). */
  random?: () => number;
  /** What makes WebSockets (the global one; Node before 22 has none: that of the package `ws`, for instance). */
  WebSocket?: new (url: string) => unknown;
}

export interface RequestOptions {
  /** Kind of the entity (0). */
  kind?: number;
  /** It may run more than once: it is sent again after anything. */
  idempotent?: boolean;
  /** For the gateway to answer in; 0 = its own. */
  deadlineMs?: number;
}

export type State = "idle" | "waiting" | "dialling" | "greeting" | "ready" | "leaving" | "ended";

export declare class Client {
  /**
   * @param gateways ws://, wss:// (one packet a message), in Node also tcp://HOST:PORT, tls://HOST:PORT or HOST:PORT;
   *   tried in turn from one that is drawn
   */
  constructor(gateways: string | Iterable<string>, options?: Options);

  readonly state: State;
  /** The gateway that it is at, or goes to. */
  readonly gateway: string;
  /** Requests without an answer. */
  readonly pending: number;
  /** Shown from the next connection on. */
  set token(token: string | Uint8Array);

  /** Go and stay connected. Settles at the first that takes us; rejects with KickedError if none ever will. */
  connect(): Promise<void>;

  /**
   * Ask an entity. Requests to one entity run in the order of these calls. Rejects with RingholdError: BAD_REQUEST if it
   * is larger than the gateway takes, which did not run.
   */
  request(id: Payload, payload?: Payload | null, options?: RequestOptions): Promise<Uint8Array>;

  /** Tell an entity something, in order with its requests; nobody says what became of it. */
  notify(id: Payload, payload?: Payload | null, options?: RequestOptions): void;

  /** Be bound to this entity, in this connection and the next ones. Best before connect(). */
  bind(id: Payload, options?: { kind?: number }): Promise<void>;

  /** End that. */
  unbind(): Promise<void>;

  /** Hang up; what has no answer ends as UNKNOWN (sent) or MOVING (never ran). */
  close(): void;

  onPush: (payload: Uint8Array, push: { sequence: number; lost: number }) => void;
  /** Who the gateway says that we are; only where it asks. */
  onKnown: (who: { id: string; kind: number; expires: Date }) => void;
  /** Our actor lets us go on as another entity, to which it binds itself: ask that one from here on. */
  onRebound: (who: { id: string; kind: number; expires: Date }) => void;
  onReady: () => void;
  onBound: (bound: { fresh: boolean }) => void;
  onBegun: () => void;
  onLost: (why: string) => void;
  onGoaway: (goaway: { retryMs: number; text: string }) => void;
  onKicked: (error: KickedError) => void;
  onRefused: (error: RingholdError) => void;
}

/** A packet of these parts: numbers as [size, value], or bytes. */
export declare function packet(type: number, ...parts: (Uint8Array | [1 | 2 | 4 | 8, number | bigint])[]): Uint8Array;

/** A request, notify, bind or resume. */
export declare function asking(
  type: number, name: number, id: Uint8Array, options?: { kind?: number; flags?: number; deadlineMs?: number },
  payload?: Uint8Array,
): Uint8Array;

/** Cuts a stream of bytes, as it comes, into packets. */
export declare class Packets {
  constructor(max?: number);
  take(chunk: Uint8Array): IterableIterator<{ type: number; body: Uint8Array }>;
}
