// SPDX-License-Identifier: Apache-2.0
// Draws the fleet from /fleet, every two seconds. No more than the page itself is loaded.
"use strict";

const PERIOD_MS = 2000;
const STUCK_MS = 5000; // a transaction that is pending for longer is shown in red
const AGAIN_MS = 60000; // and so is one that was tried before, and aborted, within this
const RADIUS = 100, WIDTH = 26, GAP = 4;

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const counted = new Map(); // counter -> {value, at}: for rates
let ring = { version: "", vnodes: [] };

// ---- small things

function element(name, attributes, text) {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

// Colours far apart for neighbours in the list; set by property, as the policy forbids style attributes.
const hue = (index) => `hsl(${(index * 137.5 + 210) % 360} 60% ${index % 2 ? 45 : 58}%)`;

function rate(key, value) {
  const at = performance.now(), before = counted.get(key);
  counted.set(key, { value, at });
  if (!before || value < before.value || at - before.at < 100) return "";
  const perSecond = ((value - before.value) * 1000) / (at - before.at);
  return perSecond >= 10 || perSecond === 0 ? Math.round(perSecond).toLocaleString() : perSecond.toFixed(1);
}

const age = (ms) => (ms < 1000 ? `${Math.max(0, ms)} ms` : ms < 120000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60000)} min`);

// Rows of [text | {text, class, colour, wide}]; a wide cell is a row of its own.
function fill(id, rows) {
  const body = $(id).tBodies[0];
  body.replaceChildren(...rows.map((cells) => {
    const tr = document.createElement("tr");
    cells.forEach((cell, i) => {
      const td = document.createElement("td"), c = typeof cell === "object" ? cell : { text: cell };
      if (c.wide) {
        td.colSpan = $(id).tHead.rows[0].cells.length;
        tr.className = "wide";
      }
      if (c.colour) {
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.background = c.colour;
        td.append(swatch);
      } else if (c.wide) {
        const words = document.createElement("span"); // as wide as the screen, not as the table
        words.textContent = c.text;
        td.append(words);
      } else td.textContent = c.text;
      td.className = [c.class, $(id).tHead.rows[0].cells[i].className].filter(Boolean).join(" ");
      tr.append(td);
    });
    return tr;
  }));
}

// ---- the ring

function arc(from, to, inner, outer) {
  if (to - from >= 1) to = from + 0.99999;
  const at = (turn, r) => {
    const a = turn * 2 * Math.PI - Math.PI / 2;
    return `${(Math.cos(a) * r).toFixed(2)} ${(Math.sin(a) * r).toFixed(2)}`;
  };
  const large = to - from > 0.5 ? 1 : 0;
  return `M${at(from, outer)}A${outer} ${outer} 0 ${large} 1 ${at(to, outer)}L${at(to, inner)}A${inner} ${inner} 0 ${large} 0 ${at(from, inner)}Z`;
}

// One path for each owner, so that a thousand nodes are a thousand shapes. Roles are rings within each other.
function draw(fleet) {
  const colours = new Map(fleet.nodes.map((n, i) => [n.name, hue(i)]));
  const roles = [...new Set(ring.vnodes.map((v) => v[4]))];
  const width = roles.length > 1 ? Math.min(WIDTH, (RADIUS - 35) / roles.length - GAP) : WIDTH;
  const shapes = [];
  roles.forEach((role, depth) => {
    const mine = ring.vnodes.filter((v) => v[4] === role);
    const first = Math.min(...mine.map((v) => v[0])), cells = Math.max(...mine.map((v) => v[1])) - first;
    const outer = RADIUS - depth * (width + GAP), paths = new Map();
    const add = (key, d) => paths.set(key, (paths.get(key) || "") + d);
    for (const [from, to, owner, target] of mine) {
      const a = (from - first) / cells, b = (to - first) / cells;
      add(owner, arc(a, b, outer - width, outer));
      if (target) add(`>${target}`, arc(a, b, outer + 1, outer + 6)); // where it goes: a band outside
    }
    for (const [key, d] of paths) {
      const name = key.replace(/^>/, ""), shape = element("path", { d, class: name === "" ? "nobody" : "outline" });
      if (name !== "") shape.style.fill = colours.get(name) || "gray";
      shape.append(element("title", {}, `${key.startsWith(">") ? "moving to " : ""}${name || "nobody"}${roles.length > 1 ? `, role ${role}` : ""}`));
      shapes.push(shape);
    }
  });
  shapes.push(element("text", { y: -2 }, `${fleet.nodes.length} node${fleet.nodes.length === 1 ? "" : "s"}`));
  shapes.push(element("text", { y: 12, class: "faint" }, `${ring.vnodes.length} vnodes`));
  $("drawing").replaceChildren(...shapes);
  const moving = ring.vnodes.filter((v) => v[3]).length;
  $("ring-words").textContent = moving ? `${moving} vnodes are moving: the band outside has the colour of where they go` : "nothing moves";
}

// ---- the tables

function tables(fleet) {
  const cells = fleet.nodes.reduce((sum, n) => sum + Number(n.cells), 0) || 1;
  fill("nodes", fleet.nodes.map((n, i) => [
    { colour: hue(i) },
    n.name,
    { text: n.state, class: n.state === "live" ? "good" : n.state === "leaving" ? "moving" : "bad" },
    `${((100 * Number(n.cells)) / cells).toFixed(1)} %`,
    Number(n.actors).toLocaleString(),
    rate(`n ${n.name}`, Number(n.requests)),
    { text: Number(n.held).toLocaleString(), class: Number(n.held) > 0 ? "moving" : "" },
    n.role,
    { text: n.address, class: "faint" },
  ]));
  fill("gateways", fleet.gateways.map((g) => [
    g.name,
    rate(`g ${g.name}`, Number(g.requests)),
    g.in_flight,
    { text: g.unknown, class: Number(g.unknown) > 0 ? "moving" : "" },
    g.behind ? { text: "behind", class: "moving" } : { text: "current", class: "good" },
  ]));
  fill("coordinators", fleet.coordinators.map((c) => [
    c.id,
    { text: c.role, class: c.role === "leader" ? "good" : c.role === "unreachable" ? "bad" : "" },
    { text: c.address, class: "faint" },
  ]));
}

function isStuck(t, list, now) {
  const again = (a) => a.state === "aborted" && a.why === t.why && a.from === t.from && now - a.decided_ms < AGAIN_MS;
  return t.state === "pending" && (now - t.created_ms > STUCK_MS || list.some(again));
}

function transactions(list) {
  const now = Date.now(), rank = (t) => (t.state === "pending" ? 0 : 1);
  const shown = list.slice().sort((a, b) => rank(a) - rank(b)).slice(0, 12);
  fill("transactions", shown.flatMap((t) => {
    const old = now - t.created_ms, stuck = isStuck(t, list, now);
    const words = t.state === "pending" ? `waits for ${t.waiting_for || "votes"}` : t.outcome;
    const look = stuck ? "bad" : t.state === "pending" ? "moving" : t.state === "aborted" ? "faint" : "";
    const row = [
      { text: t.number, class: look },
      { text: stuck ? "stuck" : t.state, class: look },
      { text: t.why, class: look },
      t.vnodes, t.from, t.to,
      age(t.state === "pending" ? old : t.decided_ms - t.created_ms),
    ];
    return words ? [row, [{ text: words, class: `words ${look}`, wide: true }]] : [row];
  }));
  return list.filter((t) => isStuck(t, list, now)).length;
}

function headline(fleet, stuck) {
  const bad = fleet.nodes.filter((n) => !["live", "leaving"].includes(n.state)).length;
  const words = [`leader ${fleet.leader || "none"}, term ${fleet.term}`, `ring ${fleet.version}`];
  words.push(fleet.pending ? `${fleet.pending} transaction${fleet.pending === 1 ? "" : "s"} under way` : "nothing under way");
  if (fleet.planned) words.push(`${fleet.planned} planned`);
  else if (fleet.planning) words.push("a plan to come");
  if (stuck) words.unshift(`${stuck} STUCK`);
  if (bad) words.unshift(`${bad} of ${fleet.nodes.length} nodes not live`);
  $("state").textContent = words.join(" · ");
  $("state").className = stuck || bad || !fleet.leader ? "bad" : "";
  document.title = `${stuck || bad ? "! " : ""}Ringhold ${fleet.cluster}`;
}

// ---- asking

function trouble(words) {
  $("state").textContent = words;
  $("state").className = "bad";
  document.title = "! Ringhold";
}

async function look() {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(`/fleet?ring=${encodeURIComponent(ring.version)}`, { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" });
  $("ask").hidden = answer.status !== 401;
  if (answer.status === 401) return trouble("a token is wanted");
  const fleet = await answer.json();
  if (fleet.error) return trouble(fleet.error);
  if (fleet.vnodes) ring = { version: fleet.version, vnodes: fleet.vnodes };
  $("cluster").textContent = fleet.cluster;
  draw(fleet);
  tables(fleet);
  headline(fleet, transactions(fleet.transactions || []));
  $("fleet").hidden = false;
}

async function turn() {
  try {
    await look();
  } catch {
    trouble("this coordinator does not answer");
  }
  setTimeout(turn, document.hidden ? 5 * PERIOD_MS : PERIOD_MS);
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value);
  look().catch(() => trouble("this coordinator does not answer"));
});
turn();
