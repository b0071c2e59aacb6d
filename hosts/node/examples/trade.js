// SPDX-License-Identifier: Apache-2.0

/*
 * A small game at a host: players with a durable inventory who give each other things, and rooms that push what is said
 * to everybody in them.
 *
 *     ringhold node --name n1 --store sqlite:game.db --host unix:/tmp/host.sock \
 *         --kind 0:host=player,durable,alarms,sessions=kick --kind 4:host=room
 *     node examples/trade.js unix:/tmp/host.sock
 *
 * A client says to a player: "add sword 2", "bag", "give bob sword 1", "join lobby", "say lobby hello", "remind 5 tea".
 * What is pushed to it: "* bob gave you sword 1", "lobby ann: hello".
 */

import { Host, ReplyError, line, text } from "../index.js";

const ITEM = "item/";
const TICK_MS = 50;

/** It has an inventory: a value of the store for each thing, with its count. */
class Player {
  async message(turn, { text: said, from }) {
    const [word, ...words] = said.split(" ");
    if (word === "bag") return line(bag(turn.values));
    if (word === "add" && words.length === 2 && from === undefined) return add(turn, words[0], counted(words[1]));
    if (word === "give" && words.length === 3) return give(turn, words[0], words[1], counted(words[2]));
    if (word === "gift" && words.length === 2 && from !== undefined) return take(turn, words[0], counted(words[1]), from);
    if (word === "join" && words.length === 1) {
      await turn.call(turn.named("room", words[0]), "join");
      return line("joined");
    }
    if (word === "say" && words.length >= 2) {
      const [room, ...rest] = words;
      const heard = await turn.call(turn.named("room", room), `say ${rest.join(" ")}`);
      return line(`said to ${text(heard)}`);
    }
    if (word === "remind" && words.length === 2) {
      const [seconds, what] = words;
      turn.setAlarm({ name: `remind/${what}`, dueMs: Date.now() + Number(seconds) * 1000, payload: what });
      return line("OK");
    }
    if (word === "crash") process.exit(3);
    throw new ReplyError("ERR add, bag, give, join, say, remind");
  }

  /** Reminds the player of something. */
  alarm(turn, alarm) {
    const what = text(alarm.payload);
    turn.push(`* ${what}, ${add(turn, `reminded-${what}`, 1)}`);
  }

  /** Every client is let in. */
  session() {}
}

function counted(word) {
  const count = Number(word);
  if (!Number.isSafeInteger(count) || count < 1) throw new ReplyError("ERR a count is 1 or more");
  return count;
}

function has(values, thing) {
  const value = values.get(ITEM + thing);
  return value === undefined ? 0 : Number(text(value));
}

function add(turn, thing, by) {
  const count = has(turn.values, thing) + by;
  if (count === 0) turn.values.delete(ITEM + thing);
  else turn.values.set(ITEM + thing, String(count));
  return count;
}

function bag(values) {
  const things = [...values.keys(ITEM)].map((key) => key.slice(ITEM.length));
  return things.map((thing) => `${thing}=${has(values, thing)}`).join(" ");
}

/** The thing leaves one inventory by the commit that saves the gift, which arrives once. */
function give(turn, to, thing, count) {
  const { id, kind } = turn.actor;
  if (to === id) throw new ReplyError("ERR give PLAYER THING COUNT");
  const own = has(turn.values, thing);
  if (own < count) throw new ReplyError(`NOITEM you have only ${own}`);
  turn.sendOnce({ kind, id: to }, `gift ${thing} ${count}`);
  return add(turn, thing, -count);
}

function take(turn, thing, count, from) {
  add(turn, thing, count);
  turn.push(`* ${from.id} gave you ${thing} ${count}`);
}

/** It knows who is in it. Its memory moves with it; a crash forgets it. */
class Room {
  #kind = 0; // of its members
  #members = new Set();
  #said = 0;

  /** Takes what handoff() wrote. */
  activate(turn, state) {
    if (state === undefined) return;
    const { kind, members, said } = JSON.parse(text(state));
    this.#kind = kind;
    this.#members = new Set(members);
    this.#said = said;
  }

  handoff() {
    return JSON.stringify({ kind: this.#kind, members: [...this.#members], said: this.#said });
  }

  async message(turn, { text: all, from }) {
    const [word, ...rest] = all.split(" ");
    switch (word) {
      case "join":
        if (from === undefined) throw new ReplyError("ERR only players join");
        this.#kind = from.kind;
        this.#members.add(from.id);
        return this.#members.size;
      case "say":
        if (from === undefined || !this.#members.has(from.id)) throw new ReplyError("NOTHERE join first");
        this.#said++;
        turn.pushIds(this.#kind, this.#members, `${turn.actor.id} ${from.id}: ${rest.join(" ")}`);
        return this.#members.size;
      case "who":
        return line(`${[...this.#members].sort().join(" ")}, ${this.#said} said`);
      case "tick":
        turn.startTimer(1, TICK_MS);
        return line("OK");
      case "hang":
        return new Promise(() => {});
      default:
        throw new ReplyError("ERR join, say, who");
    }
  }

  /** Counts as if somebody had said something. */
  timer() {
    this.#said++;
  }
}

const [address] = process.argv.slice(2);
if (address === undefined) {
  console.error("usage: trade.js ADDRESS");
  process.exit(64);
}
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
const host = new Host({ address, name: "trade", token: process.env.RINGHOLD_HOST_TOKEN });
host.register("player", Player, { durable: true }).register("room", Room);
await host.run({ signal: stop.signal });
