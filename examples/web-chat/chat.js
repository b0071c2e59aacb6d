/* SPDX-License-Identifier: Apache-2.0
 *
 * A tab of the chat. chat.lua has what it says to its player's actor, and what that pushes.
 *
 * A line that was typed is a request, one at a time, with this player's count in the room: it is sent until it is
 * answered, and the room says it once. Lines of the room have numbers: each is shown once, in their order.
 */
import { Client, RingholdError, text } from "./ringhold.js";

const PLAYER = { kind: 1 };
const AGAIN_MS = 500;
const SHOWN_MAX = 2000;
const LATER = new Set(["TIMEOUT", "UNKNOWN", "MOVING", "OVERLOADED", "NO_OWNER", "RATE_LIMITED"]);

const at = (id) => document.getElementById(id);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** What the server of this page says: { gateways, tokens }. */
async function config() {
  const answer = await fetch("config.json");
  if (!answer.ok) throw new Error(`config.json: ${answer.status}`);
  return answer.json();
}

async function tokenFor(name) {
  const answer = await fetch("token", { method: "POST", body: name });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.text();
}

/** What goes wrong for now only, also what the actor says of the room that it asked. */
function passes(error) {
  if (!(error instanceof RingholdError)) return false;
  const word = error.code === "ACTOR_FAILED" ? text(error.payload).split(" ")[0] : error.code;
  return LATER.has(word);
}

/* ---- what is seen ---- */

function put(list, from, count, words, mine) {
  const item = document.createElement("li");
  for (const [name, value] of [["b", from], ["small", `#${count}`], ["span", words]]) {
    if (from === "*" && name !== "span") continue;
    const part = document.createElement(name);
    part.textContent = value;
    item.append(part);
  }
  item.className = from === "*" ? "note" : mine ? "mine" : "";
  item.dataset.from = from;
  item.dataset.count = count;
  list.append(item);
  return item;
}

function showState(state, words) {
  at("state").dataset.state = state;
  at("state").textContent = words;
}

let following = true; // the last line is to be seen, until the user scrolls up

function follow() {
  if (following) at("lines").scrollTop = at("lines").scrollHeight;
}

function showLine({ number, from, count, words }, mine) {
  const lines = at("lines");
  put(lines, from, count, words, mine).dataset.number = number;
  if (lines.childElementCount > SHOWN_MAX) lines.firstElementChild.remove();
  follow();
}

/* ---- the chat ---- */

class Chat {
  constructor(name, room, gateways, token) {
    this.name = name;
    this.room = room;
    this.born = "0"; // of the room that we know
    this.last = 0; // line that is shown
    this.said = 0; // lines of ours that the room has
    this.early = null; // lines that came before the answer to "enter"; null = we are in
    this.entering = null;
    this.unsaid = []; // { words, item }, the oldest first
    this.saying = false;
    this.resumed = 0;
    this.lost = 0;
    this.client = new Client(gateways, { token });
    this.listen();
  }

  listen() {
    const { client } = this;
    client.onPush = (payload, push) => this.hear(text(payload), push.lost);
    client.onReady = () => this.showReady();
    client.onLost = (why) => showState("waiting", `the line is gone (${why}): it comes back by itself`);
    client.onGoaway = () => showState("waiting", "this gateway stops: going to another one");
    client.onBegun = () => this.enter();
    client.onBound = ({ fresh }) => {
      if (fresh) this.enter();
      else this.resumed++;
      at("session").textContent = fresh ? "new" : `resumed, ${this.resumed} times`;
    };
    client.onKicked = (error) => this.end(error);
    client.onRefused = (error) => this.end(error);
  }

  start() {
    this.client.bind(this.name, PLAYER).catch((error) => {
      if (error instanceof RingholdError) this.end(error);
    });
    this.client.connect().catch(() => {}); // onKicked says why
  }

  stop() {
    this.over = true;
    this.client.close();
  }

  end(error) {
    this.over = true;
    showState("ended", error.code === 1 ? "you are here in another tab" : error.message);
    at("trouble").hidden = false;
    for (const part of at("say").elements) part.disabled = true;
    at("trouble").firstElementChild.textContent = "This tab is not in the room any more.";
    this.client.close();
  }

  showReady() {
    at("gateway").textContent = this.client.gateway;
    showState("ready", "connected");
    this.say();
  }

  /** Ask the player's actor until it answers. */
  async ask(words) {
    for (;;) {
      try {
        return text(await this.client.request(this.name, words, { ...PLAYER, idempotent: true }));
      } catch (error) {
        if (this.over || !passes(error)) throw error;
        await sleep(error.retryMs || AGAIN_MS);
      }
    }
  }

  /** Say which lines we have: those behind them are pushed. Also what puts all right that went wrong. */
  enter() {
    this.early ??= [];
    this.entering ??= this.enterOnce().finally(() => {
      this.entering = null;
    });
    return this.entering;
  }

  async enterOnce() {
    let answer;
    try {
      answer = await this.ask(`enter ${this.room} ${this.born} ${this.last}`);
    } catch (error) {
      if (!this.over) this.end(error);
      return;
    }
    const [born, last, said] = answer.split(" ");
    if (born !== this.born) this.said = 0;
    if (born !== this.born || Number(last) > this.last) this.last = Number(last);
    while (this.said < Number(said) && this.unsaid.length > 0 && this.unsaid[0].sent) this.wasSaid();
    this.said = Number(said);
    this.born = born;
    const early = this.early;
    this.early = null;
    for (const words of early) this.hear(words, 0);
    this.say();
  }

  /** A line of the room: "BORN N FROM COUNT TEXT". */
  hear(words, lost) {
    if (lost > 0) {
      this.lost += lost;
      at("lost").textContent = this.lost;
      this.enter();
    }
    if (this.early !== null) {
      this.early.push(words);
      return;
    }
    const [, born, number, from, count, what] = words.match(/^(\d+) (\d+) (\S+) (\d+) (.*)$/s);
    if (born === this.born && Number(number) <= this.last) return; // we have it
    if (born !== this.born || Number(number) !== this.last + 1) {
      this.enter();
      return;
    }
    this.last++;
    showLine({ number, from, count, words: what }, from === this.name);
  }

  /** Said by the user: it waits for its turn. */
  add(words) {
    const item = put(at("unsaid"), this.name, "…", words, true);
    this.unsaid.push({ words, item, sent: false });
    this.say();
  }

  wasSaid() {
    this.unsaid.shift().item.remove();
    this.said++;
  }

  async say() {
    if (this.saying) return;
    this.saying = true;
    try {
      while (this.unsaid.length > 0 && this.early === null && !this.over) await this.sayOne(this.unsaid[0]);
    } finally {
      this.saying = false;
    }
  }

  async sayOne(line) {
    line.sent = true;
    try {
      await this.ask(`say ${this.said + 1} ${line.words}`);
      if (this.unsaid[0] === line) this.wasSaid();
    } catch (error) {
      if (this.over) return;
      const failed = error instanceof RingholdError && error.code === "ACTOR_FAILED" ? text(error.payload) : "";
      if (/^(NOTHERE|GAP) /.test(failed)) await this.enter();
      else this.end(error);
    }
  }
}

/* ---- the page ---- */

let chat = null;

async function join(name, room) {
  const { gateways, tokens } = await config();
  const token = tokens ? await tokenFor(name) : "";
  at("join").hidden = true;
  at("chat").hidden = false;
  at("trouble").hidden = true;
  for (const part of at("say").elements) part.disabled = false;
  following = true;
  at("lines").replaceChildren();
  at("unsaid").replaceChildren();
  at("where").textContent = `${room}, as ${name}`;
  document.title = `${room} – Ringhold chat`;
  showState("waiting", "connecting");
  chat?.stop();
  chat = new Chat(name, room, gateways, token);
  chat.start();
  at("text").focus();
}

function tryJoin(name, room) {
  join(name, room).catch((error) => showState("ended", error.message));
}

at("join").addEventListener("submit", (event) => {
  event.preventDefault();
  const { name, room } = event.target.elements;
  history.replaceState(null, "", `?${new URLSearchParams({ name: name.value, room: room.value })}`);
  tryJoin(name.value, room.value);
});

at("say").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = at("text");
  const words = field.value.trim();
  if (words !== "") chat.add(words);
  field.value = "";
});

let scrolledTo = 0;

// Only who scrolls up wants to: the list may also have become smaller.
at("lines").addEventListener("scroll", () => {
  const { scrollHeight, scrollTop, clientHeight } = at("lines");
  if (scrollHeight - scrollTop - clientHeight < 40) following = true;
  else if (scrollTop < scrolledTo) following = false;
  scrolledTo = scrollTop;
});
new ResizeObserver(follow).observe(at("lines"));

at("trouble").querySelector("button").addEventListener("click", () => tryJoin(chat.name, chat.room));

const asked = new URLSearchParams(location.search);
if (/^[\w-]{1,24}$/.test(asked.get("name") ?? "")) {
  tryJoin(asked.get("name"), /^[\w-]{1,24}$/.test(asked.get("room") ?? "") ? asked.get("room") : "lobby");
}
