/* SPDX-License-Identifier: Apache-2.0
 *
 * As much of a browser's WebSocket as the client uses, over TCP, for Node before 22: RFC 6455's client, without
 * fragments from the other side.
 */
import { randomBytes } from "node:crypto";
import net from "node:net";

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

export class WebSocket {
  #socket;
  #rest = Buffer.alloc(0);
  #greeted = false;
  #code = 1006;
  onopen = () => {};
  onmessage = () => {};
  onclose = () => {};
  onerror = () => {};

  constructor(address) {
    const url = new URL(address);
    this.#socket = net.connect(Number(url.port), url.hostname);
    this.#socket.on("connect", () => {
      const key = randomBytes(16).toString("base64");
      const lines = [`Host: ${url.host}`, "Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Key: ${key}`];
      this.#socket.write(`GET ${url.pathname} HTTP/1.1\r\n${lines.join("\r\n")}\r\nSec-WebSocket-Version: 13\r\n\r\n`);
    });
    this.#socket.on("data", (data) => this.#take(data));
    this.#socket.on("error", () => this.onerror({}));
    this.#socket.on("close", () => this.onclose({ code: this.#code }));
  }

  get bufferedAmount() {
    return this.#socket.writableLength;
  }

  send(data) {
    this.#frame(BINARY, Buffer.from(data));
  }

  close() {
    this.#frame(CLOSE, Buffer.from([0x03, 0xe8]));
    this.#socket.end();
  }

  #frame(opcode, body) {
    const head = Buffer.alloc(14);
    let at = 2;
    head[0] = 0x80 | opcode;
    if (body.length < 126) head[1] = 0x80 | body.length;
    else if (body.length < 65536) {
      head[1] = 0x80 | 126;
      at = head.writeUInt16BE(body.length, 2);
    } else {
      head[1] = 0x80 | 127;
      at = head.writeBigUInt64BE(BigInt(body.length), 2);
    }
    // A mask of zeros leaves the bytes as they are.
    this.#socket.write(Buffer.concat([head.subarray(0, at + 4), body]));
  }

  #take(data) {
    this.#rest = Buffer.concat([this.#rest, data]);
    if (!this.#greeted) {
      const end = this.#rest.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!this.#rest.toString("latin1").startsWith("HTTP/1.1 101")) {
        this.#socket.destroy();
        return;
      }
      this.#greeted = true;
      this.#rest = this.#rest.subarray(end + 4);
      this.onopen({});
    }
    while (this.#next());
  }

  /** One frame, if it is whole. */
  #next() {
    const all = this.#rest;
    if (all.length < 2) return false;
    const small = all[1] & 0x7f;
    const head = small === 126 ? 4 : small === 127 ? 10 : 2;
    if (all.length < head) return false;
    const size = small === 126 ? all.readUInt16BE(2) : small === 127 ? Number(all.readBigUInt64BE(2)) : small;
    if (all.length < head + size) return false;
    const body = all.subarray(head, head + size);
    this.#rest = all.subarray(head + size);
    const opcode = all[0] & 0xf;
    if (opcode === PING) this.#frame(PONG, body);
    else if (opcode === CLOSE) {
      this.#code = size >= 2 ? body.readUInt16BE(0) : 1005;
      this.#frame(CLOSE, body.subarray(0, 2));
      this.#socket.end();
    } else if (opcode === TEXT) this.onmessage({ data: body.toString() });
    else if (opcode === BINARY) this.onmessage({ data: new Uint8Array(body).buffer });
    return true;
  }
}
