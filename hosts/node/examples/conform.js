// SPDX-License-Identifier: Apache-2.0

/*
 * The host that `ringhold conform host ADDRESS` tries: docs/host-protocol.md, "Conformance", says what its actors do.
 */

import { Host, ReplyError, SessionEvent, line, text } from "../index.js";

const HOUR_MS = 3600 * 1000;
const TIMER_MS = 50;

class Conform {
  #actor;
  #note = "";

  constructor(actor) {
    this.#actor = actor;
  }

  activate(turn, state) {
    if (state !== undefined) this.#note = text(state);
  }

  handoff() {
    return this.#note;
  }

  async message(turn, message) {
    if (message.args.length > 0) return message.args.length;
    const { kind } = this.#actor;
    const [word, a = "", b = "", c = ""] = message.text.split(" ");
    switch (word) {
      case "echo":
        return a;
      case "text":
        return line("OK");
      case "integer":
        return -42;
      case "error":
        throw new ReplyError("ERR on purpose");
      case "fail":
        throw new Error("on purpose");
      case "call":
        return turn.call({ kind, id: a }, b);
      case "effects":
        turn.send({ kind, id: "bob" }, "one");
        turn.push("two");
        turn.pushIds(kind, ["a", "b"], "three");
        return null;
      case "put":
        turn.values.set(a, b);
        return null;
      case "delete":
        turn.values.delete(a);
        return null;
      case "get":
        return turn.values.get(a);
      case "undo":
        turn.values.set(a, b);
        turn.undo();
        return null;
      case "putcall":
        turn.values.set(a, b);
        turn.values.set(a, await turn.call({ kind, id: c }, a));
        return null;
      case "alarm":
        turn.setAlarm({ name: a, dueMs: Date.now() + HOUR_MS, payload: a });
        return null;
      case "timer":
        turn.startTimer(Number(a), TIMER_MS);
        return null;
      case "note":
        if (a === "") return this.#note;
        this.#note = a;
        return null;
      default:
        return null;
    }
  }

  alarm(turn, alarm) {
    turn.values.set("rang", alarm.name);
  }

  timer(turn, number) {
    turn.push(`tick ${number}`);
  }

  session(turn, session) {
    if (session.event === SessionEvent.BOUND) turn.push("welcome", session.number);
  }
}

const [address] = process.argv.slice(2);
if (address === undefined) {
  console.error("usage: conform.js ADDRESS");
  process.exit(64);
}
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const host = new Host({ address, name: "conform" });
host.register("conform", Conform, { durable: true });
await host.run({ signal: stop.signal });
