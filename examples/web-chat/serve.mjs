/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the chat's page to browsers: the files beside this one, and the client that the repository has.
 *
 *     node serve.mjs [--listen HOST:PORT] [--gateways URL,URL] [--keys FILE [--cluster NAME]]
 *
 * With --keys, the file that the gateways have as --auth-keys, it gives out tokens, good for an hour: to anybody, for
 * any name. A game's login server asks who comes first.
 */
import { createHmac } from "node:crypto";
import { readFile, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

const TOKEN_S = 3600;
const PLAYER = 1;
const FILES = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/chat.css": ["chat.css", "text/css; charset=utf-8"],
  "/chat.js": ["chat.js", "text/javascript; charset=utf-8"],
  "/ringhold.js": ["../../clients/js/ringhold.js", "text/javascript; charset=utf-8"],
};
const HEADERS = {
  "Cache-Control": "no-cache",
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' ws: wss:; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

const { values: options } = parseArgs({
  options: {
    listen: { type: "string", default: "127.0.0.1:8080" },
    gateways: { type: "string", default: "ws://127.0.0.1:7001/,ws://127.0.0.1:7002/" },
    keys: { type: "string" },
    cluster: { type: "string", default: "ringhold" },
  },
});

/** The first key of the file: it signs. */
function readKey(path) {
  const line = readFileSync(path, "utf8").split("\n").find((l) => l.trim() !== "" && !l.startsWith("#")) ?? "";
  const [, name, kind, secret] = line.trim().match(/^([\w-]{1,32}) (hex|base64):(\S+)$/) ?? [];
  if (!name) throw new Error(`${path}: its first line is no key`);
  return { name, secret: Buffer.from(secret, kind) };
}

/** docs/protocol-client.md has the bytes. */
function tokenFor(id, key) {
  const head = Buffer.alloc(11);
  head.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000) + TOKEN_S));
  head.writeUInt16BE(PLAYER, 8);
  head.writeUInt8(options.cluster.length, 10);
  const payload = Buffer.concat([head, Buffer.from(options.cluster), Buffer.from(id)]);
  const said = `rh1.${key.name}.${payload.toString("base64url")}`;
  return `${said}.${createHmac("sha256", key.secret).update(said).digest("base64url")}`;
}

const key = options.keys ? readKey(options.keys) : null;

function answer(response, status, type, body) {
  response.writeHead(status, { ...HEADERS, "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

function giveToken(request, response) {
  let name = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    name += chunk;
    if (name.length > 100) request.destroy();
  });
  request.on("end", () => {
    if (key !== null && /^[\w-]{1,24}$/.test(name)) answer(response, 200, "text/plain", tokenFor(name, key));
    else answer(response, 400, "text/plain", "no such name, or no tokens here");
  });
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://here");
  if (request.method === "POST" && pathname === "/token") {
    giveToken(request, response);
  } else if (request.method !== "GET") {
    answer(response, 405, "text/plain", "GET only");
  } else if (pathname === "/config.json") {
    const config = { gateways: options.gateways.split(","), tokens: key !== null };
    answer(response, 200, "application/json", JSON.stringify(config));
  } else if (Object.hasOwn(FILES, pathname)) {
    const [file, type] = FILES[pathname];
    readFile(new URL(file, import.meta.url), (error, body) => {
      if (error) answer(response, 500, "text/plain", error.message);
      else answer(response, 200, type, body);
    });
  } else {
    answer(response, 404, "text/plain", "there is nothing here");
  }
});

const at = options.listen.lastIndexOf(":");
server.listen(Number(options.listen.slice(at + 1)), options.listen.slice(0, at), () => {
  const { address, port } = server.address();
  console.log(`ready http=${address}:${port}`);
});
