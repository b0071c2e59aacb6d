/* SPDX-License-Identifier: Apache-2.0
 *
 * The arena's page: a player's client, bound to the player's actor, which says all there is to show.
 */
import { Client, RingholdError, text } from "./ringhold.js";

const $ = (id) => document.getElementById(id);
let client;
let me;

function note(line) {
  const item = document.createElement("li");
  item.textContent = line;
  $("log").append(item);
  item.scrollIntoView({ block: "nearest" });
}

function show(you) {
  const { gold, wins, room } = JSON.parse(you);
  $("gold").textContent = gold;
  $("wins").textContent = wins;
  $("choices").hidden = room === "";
  $("play").hidden = room !== "";
}

async function ask(words) {
  try {
    return text(await client.request(me, words));
  } catch (error) {
    if (!(error instanceof RingholdError)) throw error;
    note(error.mayHaveRun && error.code !== "ACTOR_FAILED" ? `${words}: perhaps` : error.message);
    return "";
  }
}

async function refresh() {
  const you = await ask("hello");
  if (you.startsWith("you ")) show(you.slice(4));
  const told = await ask("top");
  if (!told.startsWith("top ")) return;
  $("top").replaceChildren(
    ...JSON.parse(told.slice(4)).map(({ name, wins }) => {
      const item = document.createElement("li");
      item.textContent = `${name}, ${wins} ${wins === 1 ? "win" : "wins"}`;
      return item;
    }),
  );
}

function heard(push) {
  const [word, ...rest] = push.split(" ");
  if (word === "you") show(rest.join(" "));
  else if (word === "match") note(`You play against ${rest[0]}. Choose within 20 seconds.`);
  else if (word === "gift") note(`${rest[0]} gives you ${rest[1]} gold.`);
  else if (word === "over") {
    const [gold, mine, theirs] = rest;
    note(`${mine} against ${theirs}: ${{ 2: "you win", 1: "a draw", 0: "you lose" }[gold]}.`);
    refresh();
  }
}

$("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  me = new FormData(event.target).get("name");
  const gateways = await (await fetch("gateways")).text();
  client = new Client(gateways);
  client.onPush = (payload) => heard(text(payload));
  client.onReady = () => {
    $("state").textContent = `connected to ${client.gateway}`;
    refresh();
  };
  client.onLost = (why) => ($("state").textContent = `${why}: it comes back`);
  client.onKicked = (error) => ($("state").textContent = error.message);
  client.bind(me).catch((error) => note(error.message));
  client.connect().catch(() => {});
  $("enter").hidden = true;
  $("game").hidden = false;
  $("name").textContent = me;
});

$("play").addEventListener("click", async () => {
  if ((await ask("play")) === "wait") note("You wait for somebody.");
});

$("choices").addEventListener("click", (event) => {
  const { choice } = event.target.dataset;
  if (choice !== undefined) ask(`choose ${choice}`);
});

$("give").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData(event.target);
  const you = await ask(`give ${form.get("to")} ${form.get("gold")}`);
  if (you.startsWith("you ")) show(you.slice(4));
});
