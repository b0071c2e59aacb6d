/* SPDX-License-Identifier: Apache-2.0
 *
 * examples/player.c in JavaScript, for the same tests: what is typed goes to an actor, what it pushes is shown.
 *
 *     player.mjs GATEWAY,GATEWAY KIND ID [TOKEN]
 *
 * WS_FROM=FOLDER: WebSockets are those of the package ws that is installed there; else Node's, or ours.
 */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Client, RingholdError, text } from "../../clients/js/ringhold.js";

const [gateways, kind, first, token = ""] = process.argv.slice(2);
let id = first;
const { WS_FROM } = process.env;
const ours = async () => globalThis.WebSocket ?? (await import("./websocket.mjs")).WebSocket;
const WebSocket = WS_FROM ? createRequire(`${WS_FROM}/`)("ws") : await ours();
const client = new Client(gateways, { token, WebSocket });
const options = { kind: Number(kind) };
let waiting = 0;
let leaving = false;

function leaveIfDone() {
  if (leaving && waiting === 0) client.close();
}

client.onKnown = (who) => console.log(`known ${who.kind}  ${who.id}`);
client.onRebound = (who) => {
  console.log(`rebound ${who.kind}  ${who.id}`);
  id = who.id; // what is typed goes to that one from here on
  options.kind = who.kind;
};
client.onReady = () => console.log("ready");
client.onBound = ({ fresh }) => console.log(`bound ${fresh ? "afresh" : "again"}`);
client.onPush = (payload, { sequence, lost }) => console.log(`push ${sequence} lost ${lost}  ${text(payload)}`);
client.onGoaway = (goaway) => console.log(`goaway ${goaway.text}`);
client.onLost = (why) => console.log(`lost ${why}`);
client.onBegun = () => console.log("begun");
client.onRefused = (error) => console.log(`refused ${text(error.payload)}`);
client.onKicked = (error) => {
  console.log(`kicked ${error.code}  ${error.message}`);
  setImmediate(() => process.exit(0)); // when what has no answer has ended
};

async function ask(line) {
  waiting++;
  try {
    console.log(`answer OK  ${text(await client.request(id, line, options))}`);
  } catch (error) {
    if (!(error instanceof RingholdError)) throw error;
    console.log(`answer ${error.code}  ${text(error.payload)}`);
  }
  waiting--;
  leaveIfDone();
}

client.bind(id, options).catch((error) => {
  if (error instanceof RingholdError) console.log(`refused ${text(error.payload)}`);
});
client.connect().catch(() => {});
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  if (line.startsWith("!")) client.notify(id, line.slice(1), options);
  else ask(line);
});
lines.on("close", () => {
  leaving = true;
  leaveIfDone();
});
