/* SPDX-License-Identifier: Apache-2.0
 *
 * One tab of Chromium for operator_page.py: a line of JSON in, { do, … }; a line of JSON out, { ok } or { error }.
 *
 * playwright-core and axe-core are found from the current folder: `make browser` runs it in the one that has them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.cwd()}/`);
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
];
const WAIT_MS = 60000;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
let page, errors;

const commands = {
  async open({ url, colours, width, height, answer }) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: colours });
    page = await context.newPage();
    errors = [];
    page.setDefaultTimeout(WAIT_MS);
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (said) => {
      if (said.type() === "error") errors.push(said.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(url)) errors.push(`it asks ${request.url()}`);
    });
    if (answer) await page.route("**/fleet?*", (route) => route.fulfill({ path: answer, contentType: "application/json" }));
    await page.goto(url);
    await page.waitForSelector("#nodes tbody tr");
  },

  /** The page's own mistakes since it was opened. */
  errors: () => errors,

  press: ({ keys }) => page.keyboard.press(keys),
  type: ({ text }) => page.keyboard.type(text),

  /** What the keyboard is at: its id. */
  focused: () => page.evaluate(() => document.activeElement.id),

  /** Tab until the keyboard is at the element of that id, as somebody without a mouse does. */
  async reach({ id }) {
    for (let i = 0; i < 100; i++) {
      if ((await commands.focused()) === id) return i;
      await page.keyboard.press("Tab");
    }
    throw new Error(`${id} can't be reached by Tab`);
  },

  text: ({ id }) => page.evaluate((id) => document.getElementById(id).innerText, id),
  value: ({ expression }) => page.evaluate(expression),

  /** Until it is so; asked by the debugger, as the page's policy forbids it eval. */
  async wait({ expression }) {
    const end = Date.now() + WAIT_MS;
    while (!(await page.evaluate(expression))) {
      if (Date.now() > end) throw new Error(`never: ${expression}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  },

  colours: ({ colours }) => page.emulateMedia({ colorScheme: colours }),
  pick: ({ id, value }) => page.selectOption(`#${id}`, value).then(() => null),

  async shot({ path, quality }) {
    const session = await page.context().newCDPSession(page);
    const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality });
    writeFileSync(path, Buffer.from(data, "base64"));
  },

  /** What axe-core finds: [impact, rule, where]. */
  async axe() {
    await page.evaluate(AXE);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    return found.violations.flatMap((v) => v.nodes.map((n) => [v.impact, v.id, n.target.join(" "), n.failureSummary]));
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
