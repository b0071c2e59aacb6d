// SPDX-License-Identifier: Apache-2.0

/**
 * Actors of a Ringhold node whose code is a Node.js program: it speaks docs/host-protocol.md to the node beside it.
 *
 *     import { Host } from "@ringhold/host";
 *
 *     class Counter {
 *       count = 0;
 *       message(turn, message) {
 *         return ++this.count;
 *       }
 *     }
 *
 *     const host = new Host({ address: "unix:/run/ringhold/host.sock", name: "game" });
 *     host.register("counter", Counter);
 *     await host.run();
 */

export { Host } from "./host.js";
export {
  BUSY, COLD, CallError, OverError, RefusedError, ReplyError, SessionEvent, Status, Why, line, text,
} from "./kinds.js";
