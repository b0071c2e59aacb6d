/* SPDX-License-Identifier: Apache-2.0
 *
 * Chromium's tabs for chat.py: a line of JSON in, { do, … }; a line of JSON out, { ok } or { error }.
 *
 * playwright-core is found from the current folder: `make browser` runs it in the one that it has it in.
 */
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { chromium } = createRequire(`${process.cwd()}/`)("playwright-core");
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--ignore-certificate-errors", "--disable-dev-shm-usage",
];
const WAIT_MS = 60000;

const tabs = new Map(); // name -> { page, said, errors, talking }
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

/** A tab of this name: lines that the page writes about its own mistakes are kept. */
async function opened(name, width, height) {
  const context = await browser.newContext({ viewport: { width, height }, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (said) => {
    if (said.type() === "error" && !said.text().includes("WebSocket")) errors.push(said.text());
  });
  page.setDefaultTimeout(WAIT_MS);
  tabs.set(name, { page, said: 0, errors, talking: null });
  return page;
}

async function talk(name, tab, everyMs) {
  while (tab.talking) {
    tab.said++;
    await tab.page.fill("#text", `${name} says ${tab.said}`);
    await tab.page.press("#text", "Enter");
    await new Promise((done) => setTimeout(done, everyMs));
  }
}

const commands = {
  async open({ tab, url, width, height }) {
    const page = await opened(tab, width, height);
    await page.goto(url);
    await page.waitForSelector("#state[data-state=ready]");
  },

  /** By hand, as a newcomer does. */
  async join({ tab, url, name, room, width, height }) {
    const page = await opened(tab, width, height);
    await page.goto(url);
    await page.getByLabel("Your name").fill(name);
    await page.getByLabel("Room").fill(room);
    await page.getByRole("button", { name: "Come in" }).click();
    await page.waitForSelector("#state[data-state=ready]");
  },

  start({ tab, everyMs }) {
    const it = tabs.get(tab);
    it.talking = {};
    it.talking = talk(tab, it, everyMs);
  },

  async stop({ tab }) {
    const it = tabs.get(tab);
    const talking = it.talking;
    it.talking = null;
    await talking;
    return it.said;
  },

  async state({ tab }) {
    const { page, said, errors } = tabs.get(tab);
    const seen = await page.evaluate(() => ({
      state: document.getElementById("state").dataset.state,
      words: document.getElementById("state").textContent,
      gateway: document.getElementById("gateway").textContent,
      session: document.getElementById("session").textContent,
      lost: document.getElementById("lost").textContent,
      unsaid: document.getElementById("unsaid").childElementCount,
      lines: document.getElementById("lines").childElementCount,
      atEnd: (({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight < 1)(
        document.getElementById("lines"),
      ),
    }));
    return { ...seen, said, errors };
  },

  /** What the tab shows: [number, who, count, words]. */
  lines({ tab }) {
    return tabs.get(tab).page.evaluate(() =>
      [...document.querySelectorAll("#lines li")].map((li) => [
        Number(li.dataset.number), li.dataset.from, Number(li.dataset.count), li.querySelector("span").textContent,
      ]),
    );
  },

  async shot({ tab, path }) {
    await tabs.get(tab).page.screenshot({ path });
  },

  async reload({ tab }) {
    const { page } = tabs.get(tab);
    await page.reload();
    await page.waitForSelector("#state[data-state=ready]");
  },

  async close() {
    await browser.close();
    process.exit(0);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...rest } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ ok: (await commands[name](rest)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
await browser.close();
process.exit(0);
