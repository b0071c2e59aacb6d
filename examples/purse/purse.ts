// SPDX-License-Identifier: Apache-2.0

/*
 * A host of purses: durable actors who give others gold, by numbered requests. README.md says what they are asked and what
 * they keep.
 *
 *     ringhold node --name n1 --store sqlite:game.db --host unix:/tmp/host.sock --kind 0:host=purse,durable …
 *     node purse.js unix:/tmp/host.sock
 */

import { Host, ReplyError, text } from "@ringhold/host";
import type { Actor, Answer, Code, Message, Turn } from "@ringhold/host";

declare const process: { readonly argv: readonly string[] }; // as @types/node has it

/** It has no memory but its values. */
class Purse implements Code {
  readonly actor: Actor;

  constructor(actor: Actor) {
    this.actor = actor;
  }

  message(turn: Turn, { text: said, from }: Message): Answer {
    const words = said.split(" ");
    const [verb, seq, last] = [words[0], counted(words[1]), counted(words[words.length - 1])];
    if (said === "gold") return String(this.number("gold"));
    if (seq > 0 && last > 0) {
      if (from && verb === "take" && words.length === 3) return this.take(turn, from.id, seq, last);
      if (!from && verb === "earn" && words.length === 3) return this.request(turn, seq, () => this.add(turn, "gold", last));
      if (!from && verb === "give" && words.length === 4) return this.request(turn, seq, () => this.give(turn, seq, words[2]!, last));
    }
    throw new ReplyError("ERR earn N AMOUNT, give N WHOM AMOUNT, gold");
  }

  /** Each request is done once: who asks again hears the answer again. All that it changes is one commit. */
  private request(turn: Turn, seq: number, change: () => string): Answer {
    const done = this.number("done");
    if (seq < done) throw new ReplyError("ERR a later request is done");
    if (seq > done) turn.values.set("done", String(seq)).set("answer", change());
    return turn.values.get("answer");
  }

  private give(turn: Turn, seq: number, whom: string, amount: number): string {
    if (amount > this.number("gold")) return "POOR";
    turn.sendOnce({ kind: this.actor.kind, id: whom }, `take ${seq} ${amount}`);
    return this.add(turn, "gold", -amount);
  }

  /** What another purse gives arrives once. */
  private take(turn: Turn, giver: string, seq: number, amount: number): void {
    this.add(turn, `from/${giver}/${seq}`, amount);
    this.add(turn, "gold", amount);
  }

  private number(name: string): number {
    const value = this.actor.values.get(name);
    return value === undefined ? 0 : Number(text(value));
  }

  private add(turn: Turn, name: string, by: number): string {
    const now = String(this.number(name) + by);
    turn.values.set(name, now);
    return now;
  }
}

function counted(word: string | undefined): number {
  return word !== undefined && /^[0-9]{1,15}$/.test(word) ? Number(word) : 0;
}

const [, , address] = process.argv;
if (address === undefined) throw new Error("usage: node purse.js ADDRESS");
await new Host({ address, name: "purse" }).register("purse", Purse, { durable: true }).run();
