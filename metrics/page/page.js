"use strict";

// Every two seconds the script draws the cluster as this process sees it, the figures of all
// members, and the history of this process's members. Ids and keys come from members and clients,
// so they are only ever set as text, never as HTML.

const period = 2000;
const span = 5 * 60 * 1000; // milliseconds that a plot shows
const recent = 10 * 1000; // milliseconds after which a plot's last value is no longer the present one
const palette = 8;
const get = id => document.getElementById(id);
const num = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
let owners = [], table = "", lastAnswer = Date.now();
document.body.className = "script";

function el(name, className, text) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function svg(name, attributes, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return n.toFixed(u ? 1 : 0).replace(/\.0$/, "") + " " + units[u];
}

const short = n => n.toFixed(n < 10 ? 1 : 0).replace(/\.0$/, "");

function duration(us) {
  if (us < 1000) return short(us) + " µs";
  return us < 1e6 ? short(us / 1000) + " ms" : short(us / 1e6) + " s";
}

const percent = r => (100 * r).toFixed(1) + " %";
const wholePercent = r => (100 * r).toFixed(0) + " %";
const perSecond = v => num.format(v) + "/s";
const swatch = k => el("span", "swatch k" + k);

function row(...cells) {
  const tr = el("tr");
  for (const c of cells) tr.append(c instanceof Node ? c : el("td", typeof c === "number" ? "n" : "", typeof c === "number" ? num.format(c) : c));
  return tr;
}

function cell(className, ...parts) {
  const td = el("td", className);
  td.append(...parts);
  return td;
}

// colours gives each node of the table and each member its place in the palette.
function colours(s) {
  const at = new Map();
  for (const id of [...s.nodes.map(n => n.id), ...s.rows.map(r => r.id)]) if (!at.has(id)) at.set(id, at.size % palette);
  return at;
}

// tick is a stroke of the ring, from one partition up to another one, which it leaves out.
function tick(from, to, total, radius) {
  const point = p => {
    const a = 2 * Math.PI * p / total - Math.PI / 2;
    return (radius * Math.cos(a)).toFixed(2) + " " + (radius * Math.sin(a)).toFixed(2);
  };
  return `M${point(from)}A${radius} ${radius} 0 0 1 ${point(to)}`;
}

function ring(s) {
  if (!s.table) {
    get("ring").replaceChildren(svg("circle", { r: 90 }), svg("text", { y: 6, class: "under" }, "no table"));
    return;
  }
  const paths = new Map(); // node: the strokes of its partitions
  for (let p = 0; p < owners.length;) {
    let end = p + 1;
    while (end < owners.length && owners[end] === owners[p] && end - p < owners.length / 4) end++;
    paths.set(owners[p], (paths.get(owners[p]) || "") + tick(p, end, owners.length, 90));
    p = end;
  }
  const out = [];
  for (const [node, d] of paths) {
    const n = s.nodes[node];
    const path = svg("path", { d, class: n.alive ? "k" + node % palette : "gone" });
    path.append(svg("title", {}, n.id + (n.alive ? "" : ", gone")));
    out.push(path);
  }
  const moving = new Map(); // node: the strokes of the partitions on their way to it
  for (const m of s.moves) moving.set(m.to, (moving.get(m.to) || "") + tick(m.partition, m.partition + 4, s.cluster.partitions, 75));
  for (const [to, d] of moving) out.push(svg("path", { d, class: "move " + (s.nodes[to].alive ? "k" + to % palette : "gone") }));
  out.push(svg("text", { y: 4 }, s.cluster.epoch), svg("text", { y: 18, class: "under" }, "epoch"));
  get("ring").replaceChildren(...out);
}

// moves says in words where partitions move, and how many copies are missing.
function moves(s) {
  const to = new Map();
  for (const m of s.moves) to.set(m.to, (to.get(m.to) || 0) + 1);
  const words = [...to].map(([node, n]) => `${num.format(n)} to ${s.nodes[node].id}${s.nodes[node].alive ? "" : ", which is gone"}`);
  let text = words.length ? "Partitions moving: " + words.join(", ") + ". " : "";
  const { followed, partitions } = s.cluster; // with --copies 1 no partition is followed
  if (followed > 0 && followed < partitions) text += `${num.format(partitions - followed)} have no second copy yet. `;
  if (!s.table) text = "This process has no table: no node serves, or it knows of none.";
  if (s.cluster.paused) text += "Rebalancing is paused: only unavoidable moves happen.";
  get("moves").textContent = text;
}

function memberName(r, at) {
  const name = cell("", r.state === "gone" ? el("span", "swatch bad") : r.role === "node" || r.here ? swatch(at.get(r.id)) : el("span", "swatch none"));
  if (!r.admin || r.here || !/^[\w.:[\]-]+$/.test(r.admin)) {
    name.append(r.id);
    return name;
  }
  const a = el("a", "", r.id);
  a.href = "http://" + r.admin + "/";
  name.append(a);
  return name;
}

function memberState(r) {
  // Gossip says "serving" even about a node that serves nothing.
  const words = [r.state, r.remark].filter((w, i, all) => w && (w !== "serving" || !all[1]));
  const td = cell(words[0] === "serving" ? "good" : "bad", words.join(", "));
  if (r.error) td.title = r.error;
  return td;
}

// While partitions move, new tables come faster than gossip spreads their epochs.
function memberEpoch(r, s) {
  return cell("n" + (!r.epoch || r.epoch === s.cluster.epoch || s.moves.length ? "" : " bad"), r.epoch ? String(r.epoch) : "–");
}

function memberMemory(f, k) {
  const bar = el("span", "bar k" + k), used = el("i");
  used.style.width = 100 * Math.min(1, f.memory_used_bytes / f.memory_max_bytes) + "%";
  bar.append(used);
  return cell("", bar, bytes(f.memory_used_bytes) + " of " + bytes(f.memory_max_bytes));
}

function members(s, at) {
  get("members").replaceChildren(...s.rows.map(r => {
    const f = r.figures, node = r.role === "node";
    const unknown = r.state === "gone" ? "–" : "?";
    const figure = (has, text) => !has ? cell("n", "–") : cell("n", f ? text() : unknown);
    return row(memberName(r, at), memberState(r), figure(true, () => num.format(f.commands_per_second)),
      figure(node, () => f.recent_hits + f.recent_misses ? percent(f.recent_hits / (f.recent_hits + f.recent_misses)) : "–"),
      !node ? "–" : f ? memberMemory(f, at.get(r.id)) : unknown,
      figure(node, () => num.format(f.keys)), node ? r.partitions : cell("n", "–"), figure(true, () => num.format(f.clients)),
      figure(true, () => num.format(f.waiting || 0)), figure(!node, () => num.format(f.subscriptions || 0)), // older members do not say
      memberEpoch(r, s), r.role, r.addr);
  }));
}

// memory shows for what the nodes of this process use their memory.
function memory(s) {
  get("memory").replaceChildren(...s.here.filter(m => m.role === "node").flatMap(m => {
    const bar = el("span", "bar"), legend = el("div", "legend");
    m.memory.forEach((c, i) => {
      if (c.bytes <= 0) return;
      const part = el("i", "k" + i);
      part.style.width = 100 * c.bytes / m.memory_max_bytes + "%";
      part.title = c.class + " " + bytes(c.bytes);
      bar.append(part);
      legend.append(legendEntry({ k: i, name: c.class }, bytes(c.bytes)));
    });
    return [...(s.here.length > 1 ? [el("p", "", m.id)] : []), bar, legend];
  }));
}

// nice returns the end of an axis: 1, 2 or 5 times a power of ten.
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(v || 1));
  return [1, 2, 5, 10].map(f => f * p).find(x => x >= v) || 10 * p;
}

// A scale of a plot has ticks, and a function that places a value between 0 and 1.
const linear = top => ({ ticks: [0, top / 2, top], at: v => v / top });
const microseconds = { ticks: [.1, 10, 1e3, 1e5, 1e7], at: v => (Math.log10(Math.max(v, .1)) + 1) / 8 };

// plot draws lines of {name, k, thin, points: [[unix ms, value]]} over the last minutes. now is by the
// clock of the points. A label gives the subject and the latest values in words.
function plot(id, now, lines, what, format, scale, tick = format) {
  const box = get(id), w = Math.max(280, box.clientWidth), h = 150, left = 58, bottom = 18;
  scale ||= linear(nice(Math.max(...lines.flatMap(l => l.points.map(p => p[1])), 10)));
  const x = t => left + (w - left) * (1 - (now - t) / span), y = v => 6 + (h - 6 - bottom) * (1 - Math.min(1, scale.at(v)));
  const out = svg("svg", { viewBox: `0 0 ${w} ${h}`, class: "plot", role: "img" });
  const values = new Map(); // name: the latest value of its lines, in words
  for (const v of scale.ticks) {
    out.append(svg("line", { x1: left, x2: w, y1: y(v), y2: y(v) }), svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, tick(v)));
  }
  for (const minutes of [4, 3, 2, 1]) timeMark(out, x(now - minutes * 60000), h, minutes);
  const legend = el("div", "legend");
  for (const l of lines) {
    const points = l.points.filter(p => p[0] > now - span);
    if (!points.length) continue;
    if (points.length === 1) points.push(points[0]); // a dot
    const last = points[points.length - 1];
    out.append(svg("polyline", { class: "k" + l.k + (l.thin ? " thin" : ""), points: points.map(p => x(p[0]).toFixed(1) + "," + y(p[1]).toFixed(1)).join(" ") }));
    const value = (l.label || "") + (last[0] > now - recent ? format(last[1]) : "–");
    values.set(l.name, { k: l.k, text: values.has(l.name) ? values.get(l.name).text + ", " + value : value });
  }
  for (const [name, v] of values) legend.append(legendEntry({ k: v.k, name }, v.text));
  const said = [...values].map(([name, v]) => name + " " + v.text).join("; ");
  out.setAttribute("aria-label", `${what}, the last five minutes; now ${said || "nothing"}`);
  if (!values.size) legend.append("nothing yet");
  box.replaceChildren(out, legend);
}

function timeMark(out, at, h, minutes) {
  out.append(svg("text", { x: at, y: h - 4, "text-anchor": "middle" }, "−" + minutes + " min"));
}

function legendEntry(line, value) {
  const e = el("span");
  e.append(swatch(line.k), line.name + " " + value);
  return e;
}

function plots(s, at) {
  const lines = (value, role, label, thin) => s.here.filter(m => !role || m.role === role).map(m => ({
    name: m.id, k: at.get(m.id), label, thin,
    points: m.history.map(h => [h.unix_milli, value(h)]).filter(p => p[1] >= 0),
  }));
  plot("ops", s.unix_milli, lines(h => h.ops), "operations a second", perSecond, undefined, v => num.format(v));
  plot("hits", s.unix_milli, lines(h => h.hit_ratio, "node"), "hit ratio", percent, linear(1), wholePercent);
  const timed = f => h => h[f] > 0 ? h[f] : -1;
  plot("latency", s.unix_milli, [...lines(timed("p99_micros"), "", "p99 "), ...lines(timed("p50_micros"), "", "p50 ", true)], "latency", duration, microseconds);
}

// fill sets the rows of a table, or says why there are none.
function fill(id, rows, columns, none) {
  get(id).previousElementSibling.hidden = !rows.length;
  if (!rows.length) {
    const td = cell("note", none);
    td.colSpan = columns;
    rows = [row(td)];
  }
  get(id).replaceChildren(...rows);
}

const hot = (list, at) => list.map(k => row(cell("key", k.key), cell("n", String(k.database)), cell("", swatch(at.get(k.node)), k.node), cell("n", num.format(k.uses_per_second))));

const pinned = (list, at) => list.map(p => row(cell("n", String(p.database)), cell("", swatch(at.get(p.node)), p.node), cell("n", String(p.partition)),
  cell("n", num.format(p.keys)), cell("n", p.keys && !p.bytes ? "?" : bytes(p.bytes)), cell("n", `${Math.round(100 * p.share)} %`), p.crowds ? "takes more than half of its node" : ""));

// big shows a key only once if several nodes of this process have copies of it.
function big(list) {
  const named = new Map();
  for (const k of list) {
    const name = `${k.database} ${k.key}`, other = named.get(name);
    if (!other || k.bytes > other.bytes) named.set(name, k);
  }
  return [...named.values()].sort((a, b) => b.bytes - a.bytes).slice(0, 10)
    .map(k => row(cell("key", k.key), cell("n", String(k.database)), cell("n", bytes(k.bytes))));
}

function slow(list) {
  const top = list.sort((a, b) => b.unix_milli - a.unix_milli).slice(0, 10);
  fill("slow", top.map(e => row(new Date(e.unix_milli).toLocaleTimeString(), cell("n", duration(e.micros)),
    cell("key", e.words.join(" ") + (e.more ? ` … ${e.more} more` : "")), e.client)), 4, "empty");
}

function state(s) {
  const words = [s.table ? `epoch ${s.cluster.epoch}` : "no table yet", `${s.alive} member${s.alive === 1 ? "" : "s"} alive`, `dunlin ${s.version}`];
  const dead = s.nodes.filter(n => !n.alive).length, remarks = new Map();
  for (const r of s.rows) if (r.remark) remarks.set(r.remark, (remarks.get(r.remark) || 0) + 1);
  const moving = s.moves.filter(m => s.nodes[m.to].alive).length;
  if (moving) words.unshift(`${num.format(moving)} partition${moving === 1 ? "" : "s"} moving`);
  for (const [remark, n] of remarks) words.unshift(`${n} ${remark}`);
  if (dead) words.unshift(`${dead} of ${s.nodes.length} nodes gone`);
  // A member that did not answer once is not an alarm: gossip decides whether it is alive.
  get("state").className = dead || !s.table || remarks.has("fenced") || remarks.has("not ready") ? "bad" : "";
  get("state").textContent = words.join(", ");
}

function show(s) {
  if (s.owners || !s.table) owners = s.owners || [];
  table = s.table;
  document.body.classList.toggle("proxies", !s.here.some(m => m.role === "node"));
  const at = colours(s);
  state(s);
  ring(s);
  moves(s);
  members(s, at);
  fill("hot", hot(s.hot, at), 4, "no key stands out");
  get("pinned-card").hidden = !s.pinned.length; // most clusters have none
  fill("pinned", pinned(s.pinned, at), 7, "");
  get("here").textContent = s.here.map(m => m.id).join(", ");
  plots(s, at);
  memory(s);
  fill("big", big(s.here.flatMap(m => m.big)), 3, "no key stands out");
  slow(s.here.flatMap(m => m.slow));
}

async function refresh() {
  try {
    const answer = await fetch("api/live?table=" + encodeURIComponent(table), { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(answer.statusText);
    show(await answer.json());
    lastAnswer = Date.now();
  } catch (err) {
    get("state").className = "bad";
    get("state").textContent = `no answer for ${Math.round((Date.now() - lastAnswer) / 1000)} s: what is below is old (${err.message})`;
  }
  setTimeout(refresh, period);
}

refresh();
