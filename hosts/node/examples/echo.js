// SPDX-License-Identifier: Apache-2.0

/*
 * The least host: actors that answer what they are asked.
 *
 *     ringhold node --name n1 --host unix:/tmp/host.sock --kind 0:host=echo
 *     node examples/echo.js unix:/tmp/host.sock
 */

import { Host } from "../index.js";

class Echo {
  message(turn, { payload }) {
    return payload;
  }
}

const host = new Host({ address: process.argv[2], name: "echo" });
host.register("echo", Echo);
await host.run();
