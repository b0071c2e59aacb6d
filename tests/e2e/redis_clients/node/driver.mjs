// Drives a Redis client of Node.js as ../README.md says.
import { createInterface } from "node:readline";

const [name, settings, host, portText] = process.argv.slice(2);
const port = Number(portText);
const recommended = settings === "recommended";

const makers = {
  async redis() {
    const { createClient } = await import("redis");
    const make = async () => {
      const c = createClient({ socket: { host, port } });
      c.on("error", () => {}); // else a lost connection ends the process
      await c.connect();
      return c;
    };
    const c = await make();
    return {
      set: (k, v) => c.set(k, v),
      get: (k) => c.get(k),
      incr: (k) => c.incr(k),
      async pipeline(k, n) {
        return (await Promise.all(Array.from({ length: n }, () => c.incr(k)))).at(-1);
      },
      multi: (k) => c.multi().incr(k).incr(k).exec(),
      async once(k) {
        const other = await make();
        const value = await other.incr(k);
        await other.close();
        return value;
      },
    };
  },
  async ioredis() {
    const { Redis } = await import("ioredis");
    const make = () => {
      const c = new Redis({ host, port, ...(recommended ? { maxRetriesPerRequest: 0 } : {}) });
      c.on("error", () => {});
      return c;
    };
    const c = make();
    return {
      set: (k, v) => c.set(k, v),
      get: (k) => c.get(k),
      incr: (k) => c.incr(k),
      async pipeline(k, n) {
        const p = c.pipeline();
        for (let i = 0; i < n; i++) p.incr(k);
        const [error, value] = (await p.exec()).at(-1);
        if (error) throw error;
        return value;
      },
      multi: (k) => c.multi().incr(k).incr(k).exec(),
      async once(k) {
        const other = make();
        const value = await other.incr(k);
        await other.quit();
        return value;
      },
    };
  },
  async glide() {
    const { GlideClient, Batch } = await import("@valkey/valkey-glide");
    const make = () =>
      GlideClient.createClient({ addresses: [{ host, port }], ...(recommended ? { requestTimeout: 15000 } : {}) });
    const c = await make();
    const batch = async (atomic, k, n) => {
      const b = new Batch(atomic);
      for (let i = 0; i < n; i++) b.incr(k);
      return c.exec(b, true);
    };
    return {
      set: (k, v) => c.set(k, v),
      get: (k) => c.get(k),
      incr: (k) => c.incr(k),
      pipeline: async (k, n) => (await batch(false, k, n)).at(-1),
      multi: (k) => batch(true, k, 2),
      async once(k) {
        const other = await make();
        const value = await other.incr(k);
        other.close();
        return value;
      },
    };
  },
};

let client;
let count;

function counting(key, workers) {
  const state = { answered: 0, refused: 0, unknown: 0, texts: new Set(), over: false };
  const work = async () => {
    while (!state.over) {
      try {
        await client.incr(key);
        state.answered++;
      } catch (e) {
        const text = `${e.name}: ${e.message}`;
        state[/MOVING|OVERLOADED|NOKIND|QUARANTINED/.test(text) ? "refused" : "unknown"]++;
        if (state.texts.size < 4) state.texts.add(text.slice(0, 80));
      }
      await new Promise((done) => setTimeout(done, 2));
    }
  };
  state.all = Promise.all(Array.from({ length: workers }, work));
  return state;
}

async function run(words) {
  switch (words[0]) {
    case "start": {
      client = await makers[name]();
      await client.set("start", "1");
      const value = String(await client.get("start"));
      if (value !== "1") throw new Error(`GET said ${value}`);
      return client.incr("start");
    }
    case "pipeline":
      return client.pipeline(words[1], Number(words[2]));
    case "churn": {
      let last;
      for (let i = 0; i < Number(words[2]); i++) last = await client.once(words[1]);
      return last;
    }
    case "multi":
      return JSON.stringify(await client.multi(words[1]));
    case "count":
      count = counting(words[1], Number(words[2]));
      return "counting";
    default:
      count.over = true;
      await count.all;
      return `answered=${count.answered} refused=${count.refused} unknown=${count.unknown} ${[...count.texts].join(" | ")}`;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = `ok ${await run(line.split(" "))}`;
  } catch (e) {
    const causes = (e.errors ?? e.replies ?? []).map((c) => c.message).join("; ");
    answer = `error ${e.name}: ${e.message} ${causes}`;
  }
  console.log(answer.replaceAll(/\s+/g, " ").trim());
}
process.exit(0);
