// SPDX-License-Identifier: Apache-2.0
// Draws the fleet from /fleet, every two seconds, and does what an operator wants. No more than the page itself is loaded.
"use strict";

const PERIOD_MS = 2000;
const STUCK_MS = 5000; // a transaction that is pending for longer is shown in red
const AGAIN_MS = 60000; // and so is one that was tried before, and aborted, within this
const RADIUS = 100, WIDTH = 26, GAP = 4;
const STEPS = 8192; // of the circle: finer is no pixel

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const counted = new Map(); // counter -> {value, at}: for rates
let ring = { version: "", vnodes: [] };
let drawn = null; // names of the nodes that the drawing has

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

const set = (e, text) => {
  if (e.textContent !== text) e.textContent = text; // what did not change is not touched: a reader's place stays
};

function cellOf(tr, i, heads) {
  const name = heads ? "TH" : "TD";
  let cell = tr.cells[i];
  if (!cell || cell.tagName !== name) {
    const made = document.createElement(name);
    if (heads) made.scope = "row";
    if (cell) cell.replaceWith(made);
    else tr.append(made);
    cell = made;
  }
  return cell;
}

function putCell(cell, c, head) {
  if (c.wide) cell.colSpan = head.cells.length;
  else cell.removeAttribute("colspan");
  const inner = c.colour || c.wide;
  if (inner && !cell.firstElementChild) cell.replaceChildren(document.createElement("span")); // of wide: as wide as the screen
  if (c.colour) {
    cell.firstElementChild.className = "swatch";
    cell.firstElementChild.style.background = c.colour;
  } else set(inner ? cell.firstElementChild : cell, String(c.text));
  cell.className = [c.class, c.wide ? "" : head.cells[cell.cellIndex].className].filter(Boolean).join(" ");
}

// Rows of [text | {text, class, colour, wide, heads}]; a wide cell is a row of its own. Rows that are there are used again.
function fill(id, rows) {
  const body = $(id).tBodies[0], head = $(id).tHead.rows[0];
  rows.forEach((cells, at) => {
    const tr = body.rows[at] || body.insertRow();
    const wide = cells.length === 1 && cells[0].wide === true;
    if (tr.classList.contains("wide") !== wide) {
      tr.replaceChildren();
      tr.classList.toggle("wide", wide);
    }
    cells.forEach((cell, i) => {
      const c = typeof cell === "object" ? cell : { text: cell };
      putCell(cellOf(tr, i, c.heads === true), c, head);
    });
  });
  while (body.rows.length > rows.length) body.deleteRow(-1);
}

// ---- the last hour

// Columns of a point, as the page shows them: of sums how many there were a second.
const aSecond = (value, point) => (value * 1000) / Math.max(1, point[1]);
const PLOTS = {
  requests: ["requests/s", aSecond], held: ["requests/s that waited for a move", aSecond], moves: ["vnodes moved in 10 s", (v) => v],
  p99_us: ["ms at the nodes for 99 of 100 requests", (v) => v / 1000],
};
const HOUR_MS = 3600000, LEAST_MS = 60000;
let trend = { term: 0, next: 1, columns: [], points: [] };

function take(fleet) {
  const told = fleet.trend;
  if (fleet.term !== trend.term) {
    const whole = trend.next === 1; // of this leader's points all are here
    trend = { term: fleet.term, next: 1, columns: [], points: [] };
    if (!whole) return; // the next answer has them
  }
  if (!told || told.next === 0) return;
  trend.columns = told.columns;
  trend.points = trend.points.concat(told.points).slice(-360);
  trend.next = told.next;
}

function figure(column) {
  const made = document.createElement("figure"), svg = element("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(element("path", { d: "" }));
  const words = document.createElement("figcaption"), now = document.createElement("b");
  words.append(now, document.createElement("span"));
  made.append(svg, words);
  made.dataset.column = column;
  $("plots").append(made);
  return made;
}

const brief = (n) => (n >= 100 || Number.isInteger(n) ? Math.round(n).toLocaleString() : n.toFixed(1));

function plot(column, at) {
  const [title, shown] = PLOTS[column] || [column, (v) => v];
  const made = [...$("plots").children].find((f) => f.dataset.column === column) || figure(column);
  const values = trend.points.map((p) => shown(Number(p[at]), p));
  const most = Math.max(...values), last = trend.points[trend.points.length - 1][0];
  const span = Math.min(HOUR_MS, Math.max(LEAST_MS, last - trend.points[0][0])); // a young history fills the plot, too
  const dots = values.map((v, i) => `${(100 - ((last - trend.points[i][0]) * 100) / span).toFixed(2)} ${(98 - (most > 0 ? (v * 94) / most : 0)).toFixed(1)}`);
  made.querySelector("path").setAttribute("d", `M${dots.join("L")}${dots.length === 1 ? "h.1" : ""}`);
  set(made.querySelector("b"), brief(values[values.length - 1]));
  set(made.querySelector("span"), ` ${title}; at most ${brief(most)}`);
}

function hour(fleet) {
  take(fleet);
  const clock = (ms) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (trend.points.length === 0) {
    set($("hour-words"), `coordinator ${fleet.leader} leads since a moment ago: the first point comes after 10 s`);
    $("plots").replaceChildren();
    return;
  }
  const first = trend.points[0], last = trend.points[trend.points.length - 1];
  set($("hour-words"), `${clock(first[0] - first[1])} to ${clock(last[0])}, as coordinator ${fleet.leader} saw it while it led; a point is 10 s`);
  trend.columns.forEach((column, at) => {
    if (at > 1) plot(column, at); // behind its end and how long it took
  });
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
  const names = fleet.nodes.map((n) => n.name).join(" ");
  if (!fleet.vnodes && names === drawn) return;
  drawn = names;
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
      const begin = Math.round(a * STEPS), end = Math.round(b * STEPS);
      if (begin < end) add(owner, arc(begin / STEPS, end / STEPS, outer - width, outer)); // a thinner one is not seen
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

const SHOWN = 100; // nodes, unless all are wanted
let all = false;

const isWell = (n) => n.state === "live";

function nodes(fleet) {
  const cells = fleet.nodes.reduce((sum, n) => sum + Number(n.cells), 0) || 1;
  const wanted = $("filter").value.trim();
  const found = fleet.nodes.map((n, i) => ({ ...n, at: i })).filter((n) => n.name.includes(wanted));
  const cut = !all && found.length > SHOWN;
  if (cut) found.sort((a, b) => isWell(a) - isWell(b) || a.at - b.at); // who is in trouble is shown
  const shown = cut ? found.slice(0, SHOWN) : found;
  fill("nodes", shown.map((n) => [
    { colour: hue(n.at) },
    { text: n.name, heads: true },
    { text: n.state, class: isWell(n) ? "good" : n.state === "leaving" ? "moving" : "bad" },
    `${((100 * Number(n.cells)) / cells).toFixed(1)} %`,
    Number(n.actors).toLocaleString(),
    rate(`n ${n.name}`, Number(n.requests)),
    Number(n.p99_us) > 0 ? `${brief(Number(n.p99_us) / 1000)} ms` : "",
    { text: Number(n.held).toLocaleString(), class: Number(n.held) > 0 ? "moving" : "" },
    n.role,
    { text: n.address, class: "faint" },
  ]));
  $("all").hidden = !cut;
  set($("nodes-words"), shown.length < fleet.nodes.length ? `${shown.length} of ${fleet.nodes.length}${cut ? ", those that are not live first" : ""}` : "");
  const names = fleet.nodes.map((n) => n.name);
  if (names.join(" ") !== $("node-names").dataset.names) {
    $("node-names").dataset.names = names.join(" ");
    $("node-names").replaceChildren(...names.map((name) => Object.assign(document.createElement("option"), { value: name })));
  }
}

function waits(list) {
  $("waits-part").hidden = list.length === 0;
  const words = list.map((w) => {
    const what = [w.drains ? `drain of ${w.drains}` : "", w.transactions ? `${w.transactions} planned` : ""].filter(Boolean).join(", ");
    return what ? `${what}: ${w.text}` : w.text;
  });
  while ($("waits").children.length > words.length) $("waits").lastChild.remove();
  words.forEach((text, i) => set($("waits").children[i] || $("waits").appendChild(document.createElement("li")), text));
}

function tables(fleet) {
  nodes(fleet);
  waits(fleet.waits || []);
  fill("gateways", fleet.gateways.map((g) => [
    { text: g.name, heads: true },
    rate(`g ${g.name}`, Number(g.requests)),
    g.in_flight,
    { text: g.unknown, class: Number(g.unknown) > 0 ? "moving" : "" },
    g.behind ? { text: "behind", class: "moving" } : { text: "current", class: "good" },
  ]));
  fill("coordinators", fleet.coordinators.map((c) => [
    { text: c.id, heads: true },
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
      { text: t.number, class: look, heads: true },
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
  set($("state"), words.join(" · "));
  const alarms = [];
  if (stuck) alarms.push(`${stuck} STUCK`);
  if (bad) alarms.push(`${bad} of ${fleet.nodes.length} nodes not live`);
  if (!fleet.leader) alarms.push("no leader");
  set($("alarm"), alarms.join(" · ")); // a screen reader tells this alone by itself
  document.title = `${alarms.length ? "! " : ""}Ringhold ${fleet.cluster}`;
}

// ---- asking

function trouble(words) {
  set($("alarm"), words);
  document.title = "! Ringhold";
}

const reading = () => {
  const token = sessionStorage.getItem("token");
  return { headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store" };
};

// What was told, as JSON: an error in `error`, also of an answer that is a line of text.
async function told(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text);
  } catch {
    return { error: text.trim() || `the answer is ${answer.status}` };
  }
}

async function look() {
  const answer = await fetch(`/fleet?ring=${encodeURIComponent(ring.version)}&trend=${encodeURIComponent(trend.next)}`, reading());
  $("ask").hidden = answer.status !== 401;
  if (answer.status === 401) return trouble("a token is wanted");
  const fleet = await told(answer);
  if (fleet.error) return trouble(fleet.error);
  if (fleet.vnodes) ring = { version: fleet.version, vnodes: fleet.vnodes };
  set($("cluster"), fleet.cluster);
  $("fleet").hidden = false;
  hour(fleet);
  draw(fleet);
  tables(fleet);
  mayOperate(fleet.changes);
  headline(fleet, transactions(fleet.transactions || []));
  last = fleet;
}

let last = null; // what was drawn

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
$("filter").addEventListener("input", () => last && nodes(last));
$("all").addEventListener("click", () => {
  all = true;
  nodes(last);
  $("filter").focus();
});

// ---- one actor

let found = "";

function show(pairs) {
  $("found").replaceChildren(...pairs.flatMap(([name, text]) => [
    Object.assign(document.createElement("dt"), { textContent: name }),
    Object.assign(document.createElement("dd"), { textContent: text }),
  ]));
}

const STATES = { none: "it does not live there now", unknown: "its node does not tell", arrived: "a move brought it; its next message starts it" };

function tellActor(w) {
  const since = w.here_ms ? `${new Date(Date.now() - w.here_ms).toLocaleString()} (${age(w.here_ms)} ago)${w.came === "start" ? ", when it was started" : w.came === "move" ? ", by a move" : ""}` : "";
  show([
    ["actor", `${w.kind}/${w.id}`],
    ["node", w.moving_to ? `${w.node}, moving to ${w.moving_to}` : w.node],
    ["state", STATES[w.state] || `${w.state}, unused for ${age(w.unused_ms)}`],
    ["there since", since],
    ["vnode", String(w.vnode)],
    ["fence", w.fence],
    ["role", w.role],
    ["lives with all that have the tag", w.tag],
    ["its vnode moved last", w.moved_why ? `${w.moved_from ? `from ${w.moved_from}, ` : ""}${age(w.moved_ms)} ago: ${w.moved_why}` : ""],
  ].filter(([, text]) => text !== ""));
}

$("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  const id = $("find-id").value.trim();
  $("values-part").hidden = $("values").hidden = true;
  const w = await fetch(`/where?id=${encodeURIComponent(id)}`, reading()).then(told).catch(() => ({ error: "this coordinator does not answer" }));
  if (w.error) return show([["error", w.error]]);
  tellActor(w);
  found = `${w.kind}/${w.id}`;
  $("values").hidden = $("operate").hidden;
  $("deed-id").value = found;
});

$("values").addEventListener("click", async () => {
  const v = await post("/values", { id: found });
  if (!v) return;
  if (v.error) return set($("done"), v.error);
  $("values-part").hidden = false;
  fill("shown", v.values.map((row) => [
    { text: row.key, heads: true },
    row.size.toLocaleString(),
    { text: `${row.value}${row.cut ? " …" : ""}${row.as === "bytes" ? " (bytes)" : ""}` },
  ]));
  set($("done"), `${v.values.length} value${v.values.length === 1 ? "" : "s"} of ${found}${v.more ? "; it has more: ringhold actor get" : ""}`);
});

// ---- hot actors

$("look").addEventListener("click", async () => {
  const h = await fetch("/hot", reading()).then(told).catch(() => ({ error: "this coordinator does not answer" }));
  if (h.error) return set($("hot-words"), h.error);
  const missing = h.nodes > h.told ? `; ${h.nodes - h.told} of ${h.nodes} nodes did not answer in time` : "";
  $("hot-part").hidden = h.actors.length === 0;
  set($("hot-words"), `${h.actors.length === 0 ? "none is slow, busy or asked more than it answers" : `${h.actors.length} actors`}${missing}`);
  fill("hot", h.actors.map((a) => [a.what, { text: `${a.kind}/${a.id}`, heads: true }, a.node, a.us ? age(a.us / 1000) : "", a.count]));
});

// ---- what an operator does

const NOT = { no: "This coordinator has no --operator-token: nobody changes the fleet by its page.", elsewhere: "Operators ask from the coordinator's own machine: by a proxy with TLS there, or a forwarded port." };
const SURE = {
  drain: (f) => `Drain ${f.node}? It gives its ids to others, with their actors' state, and gets no new ones.`,
  cancel: (f) => `Cancel the drain of ${f.node}? It takes its share again.`,
  pin: (f) => `Pin ${f.id} to ${f.node}? It moves there with all ids of its cell, and stays.`,
  unpin: (f) => `Unpin ${f.id}? It lives by the hash again.`,
};

function mayOperate(changes) {
  $("operate").hidden = changes !== "yes";
  set($("operate-not"), NOT[changes] || "");
}

// The token is in a header, which no other site can send; it is kept in the field alone.
async function post(path, fields) {
  if (!$("operator").reportValidity()) return null;
  const reason = $("reason").value, by = $("by").value;
  try {
    const answer = await fetch(path, { method: "POST", headers: { Authorization: `Bearer ${$("operator").value}` }, body: new URLSearchParams({ ...fields, by, reason }), cache: "no-store" });
    return await told(answer);
  } catch {
    return { error: "this coordinator does not answer: look whether it was done" };
  }
}

function wish() {
  const deed = $("deed").value, ofNode = deed !== "unpin", ofActor = deed === "pin" || deed === "unpin";
  $("deed-node-part").hidden = !ofNode;
  $("deed-id-part").hidden = !ofActor;
  $("deed-node").required = ofNode;
  $("deed-id").required = ofActor;
  return { deed, fields: { ...(ofNode ? { node: $("deed-node").value.trim() } : {}), ...(ofActor ? { id: $("deed-id").value.trim() } : {}) } };
}

$("deed").addEventListener("change", wish);
$("operate").addEventListener("submit", (event) => {
  event.preventDefault();
  const { deed, fields } = wish();
  set($("sure-words"), SURE[deed](fields));
  $("sure").returnValue = "";
  $("sure").showModal();
});
$("sure").addEventListener("close", async () => {
  if ($("sure").returnValue !== "yes") return;
  const { deed, fields } = wish();
  set($("done"), "asking …");
  const answer = await post(`/${deed}`, fields);
  if (answer) set($("done"), answer.error || answer.done || "done");
});

// ---- light and dark

function colours(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  $("theme").value = theme;
}

let theme = "";
try {
  theme = localStorage.getItem("theme") || "";
} catch {} // it is not kept then
colours(theme);
$("theme").addEventListener("change", () => {
  colours($("theme").value);
  try {
    localStorage.setItem("theme", $("theme").value);
  } catch {}
});

wish();
turn();
