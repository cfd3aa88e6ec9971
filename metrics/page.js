"use strict";

// Draws the cluster as this process sees it, and what its members do, every two seconds.
// What comes from members and clients (ids, keys) is only ever set as text.

const period = 2000;
const span = 5 * 60 * 1000; // of the plots
const get = id => document.getElementById(id);
const num = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
let owners = [], epoch = 0, lastAnswer = Date.now();
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

function duration(us) {
  if (us < 1000) return us.toFixed(us < 10 ? 1 : 0) + " µs";
  return us < 1e6 ? (us / 1000).toFixed(us < 1e4 ? 1 : 0) + " ms" : (us / 1e6).toFixed(1) + " s";
}

const percent = r => (100 * r).toFixed(1) + " %";
const swatch = k => el("span", "swatch k" + k % 8);

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
  for (const id of [...s.nodes.map(n => n.id), ...s.members.map(m => m.id)]) if (!at.has(id)) at.set(id, at.size);
  return at;
}

// tick is a stroke of the ring from one partition to before another.
function tick(from, to, total, radius) {
  const point = p => {
    const a = 2 * Math.PI * p / total - Math.PI / 2;
    return (radius * Math.cos(a)).toFixed(2) + " " + (radius * Math.sin(a)).toFixed(2);
  };
  return `M${point(from)}A${radius} ${radius} 0 0 1 ${point(to)}`;
}

function ring(s) {
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
    const path = svg("path", { d, class: n.alive ? "k" + node % 8 : "gone" });
    path.append(svg("title", {}, n.id + (n.alive ? "" : ", gone")));
    out.push(path);
  }
  for (const m of s.moves) {
    out.push(svg("path", { d: tick(m.partition, m.partition + 4, s.cluster.partitions, 75), class: "move k" + m.to % 8 }));
  }
  out.push(svg("text", { y: 4 }, s.cluster.epoch), svg("text", { y: 18, class: "under" }, "epoch"));
  get("ring").replaceChildren(...out);
}

function peers(s, at) {
  const rows = [], listed = new Set();
  for (const p of s.cluster.peers) {
    listed.add(p.id);
    const name = cell("", p.role === "node" ? swatch(at.get(p.id) ?? 0) : "");
    const here = s.members.some(m => m.id === p.id && m.boot === p.boot);
    if (p.admin && !here && /^[\w.:[\]-]+$/.test(p.admin)) {
      const a = el("a", "", p.id);
      a.href = "http://" + p.admin + "/";
      name.append(a);
    } else name.append(p.id);
    rows.push(row(name, p.role, cell(p.state === "serving" ? "good" : "bad", p.state),
      cell("n" + (p.epoch === s.cluster.epoch ? "" : " bad"), String(p.epoch)), p.role === "node" ? p.partitions : cell("n", "–"), p.addr));
  }
  for (const n of s.nodes) if (!n.alive && !listed.has(n.id)) rows.push(row(n.id, "node", cell("bad", "gone"), "", "", ""));
  get("peers").replaceChildren(...rows);
  get("moves").textContent = s.moves.length ? num.format(s.moves.length) + " partitions on their way" : "";
}

function memory(m, d) {
  const bar = el("span", "bar");
  d.memory.forEach((c, i) => {
    const part = el("i", "k" + i % 8);
    part.style.width = 100 * c.bytes / m.memory_max_bytes + "%";
    part.style.background = "currentColor";
    part.title = c.class + " " + bytes(c.bytes);
    bar.append(part);
  });
  return cell("", bar, bytes(m.memory_used_bytes) + " of " + bytes(m.memory_max_bytes));
}

function members(s, at) {
  get("members").replaceChildren(...s.members.map((m, i) => {
    const node = m.role === "node", looked = m.hits + m.misses;
    return row(cell("", swatch(at.get(m.id)), m.id), m.role, cell(m.ready ? "good" : "bad", m.ready ? "yes" : "no"),
      m.commands_per_second, m.clients, cell("n", node && looked ? percent(m.hits / looked) : "–"),
      node ? m.keys : cell("n", "–"), node ? memory(m, s.details[i]) : "–");
  }));
}

// nice is the end of an axis: 1, 2 or 5 times a power of ten.
function nice(v) {
  const p = 10 ** Math.floor(Math.log10(v || 1));
  return [1, 2, 5, 10].map(f => f * p).find(x => x >= v) || 10 * p;
}

// The scales of plots: ticks, and where a value is between 0 and 1.
const linear = top => ({ ticks: [0, top / 2, top], at: v => v / top });
const microseconds = { ticks: [.1, 10, 1e3, 1e5, 1e7], at: v => (Math.log10(Math.max(v, .1)) + 1) / 8 };

// plot draws lines of {name, k, thin, points: [[unix ms, value]]} over the last minutes.
function plot(id, lines, format, scale) {
  const box = get(id), w = Math.max(280, box.clientWidth), h = 150, left = 58, bottom = 18, now = Date.now();
  scale ||= linear(nice(Math.max(...lines.flatMap(l => l.points.map(p => p[1])), 0)));
  const x = t => left + (w - left) * (1 - (now - t) / span), y = v => 6 + (h - 6 - bottom) * (1 - Math.min(1, scale.at(v)));
  const out = svg("svg", { viewBox: `0 0 ${w} ${h}`, class: "plot", role: "img" });
  for (const v of scale.ticks) {
    out.append(svg("line", { x1: left, x2: w, y1: y(v), y2: y(v) }), svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, format(v)));
  }
  for (const minutes of [4, 3, 2, 1]) timeMark(out, x(now - minutes * 60000), h, minutes);
  const legend = el("div", "legend");
  for (const l of lines) {
    const points = l.points.filter(p => p[0] > now - span);
    if (!points.length) continue;
    out.append(svg("polyline", { class: "k" + l.k % 8 + (l.thin ? " thin" : ""), points: points.map(p => x(p[0]).toFixed(1) + "," + y(p[1]).toFixed(1)).join(" ") }));
    if (!l.thin) legend.append(legendEntry(l, format(points[points.length - 1][1])));
  }
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
  const lines = (value, role, thin) => s.members.map((m, i) => ({
    name: m.id, k: at.get(m.id), thin, role: m.role,
    points: s.details[i].history.map(h => [h.unix_milli, value(h)]).filter(p => p[1] >= 0),
  })).filter(l => !role || l.role === role);
  plot("ops", lines(h => h.ops), v => num.format(v));
  plot("hits", lines(h => h.hit_ratio, "node"), percent, linear(1));
  const timed = f => h => h[f] > 0 ? h[f] : -1;
  plot("latency", [...lines(timed("p99_micros")), ...lines(timed("p50_micros"), "", true)], duration, microseconds);
}

function keys(id, list, format) {
  const top = list.sort((a, b) => b.n - a.n).slice(0, 10);
  get(id).replaceChildren(...top.map(k => row(cell("key", k.key), cell("n", format(k.n)))));
  if (!top.length) get(id).replaceChildren(row(cell("note", "none stands out")));
}

function slow(list) {
  const top = list.sort((a, b) => b.unix_milli - a.unix_milli).slice(0, 10);
  get("slow").replaceChildren(...top.map(e => row(new Date(e.unix_milli).toLocaleTimeString(), cell("n", duration(e.micros)),
    cell("key", e.words.join(" ") + (e.more ? ` … ${e.more} more` : "")), e.client)));
  if (!top.length) get("slow").replaceChildren(row(cell("note", "empty")));
}

function state(s) {
  const dead = s.nodes.filter(n => !n.alive).length, unready = s.members.filter(m => !m.ready).length;
  const words = [`epoch ${s.cluster.epoch}`, `${s.cluster.peers.length} members alive`, `dunlin ${s.version}`];
  if (!s.cluster.epoch) words.unshift("no table yet");
  if (dead) words.unshift(`${dead} of ${s.nodes.length} nodes gone`);
  if (unready) words.unshift(`${unready} members here not ready`);
  get("state").className = dead || unready || !s.cluster.epoch ? "bad" : "";
  get("state").textContent = words.join(", ");
}

function show(s) {
  if (s.owners) owners = s.owners;
  epoch = s.cluster.epoch;
  document.body.classList.toggle("proxies", !s.members.some(m => m.role === "node"));
  const at = colours(s);
  state(s);
  ring(s);
  peers(s, at);
  members(s, at);
  plots(s, at);
  const all = f => s.details.flatMap(d => d[f]);
  keys("hot", all("hot"), v => num.format(v));
  keys("big", all("big"), bytes);
  slow(all("slow"));
}

async function refresh() {
  try {
    const answer = await fetch("api/live?epoch=" + epoch, { cache: "no-store", signal: AbortSignal.timeout(5000) });
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
