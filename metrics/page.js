"use strict";

// Shows the members of this process as text, once every two seconds.

const out = document.getElementById("status");
const columns = ["member", "role", "ready", "epoch", "partitions", "keys", "memory", "hit ratio", "ops/s", "clients"];

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (n >= 1024 && u < units.length - 1) { n /= 1024; u++; }
  return n.toFixed(u ? 1 : 0) + " " + units[u];
}

function row(m) {
  const looked = m.hits + m.misses;
  const node = m.role === "node";
  return [
    m.id, m.role, m.ready ? "yes" : "no", m.epoch,
    node ? m.partitions : "-",
    node ? m.keys : "-",
    node ? bytes(m.memory_used_bytes) + " / " + bytes(m.memory_max_bytes) : "-",
    node && looked ? (100 * m.hits / looked).toFixed(1) + " %" : "-",
    Math.round(m.commands_per_second),
    m.clients,
  ].map(String);
}

function table(rows) {
  const width = rows[0].map((_, i) => Math.max(...rows.map(r => r[i].length)));
  return rows.map(r => r.map((cell, i) => cell.padEnd(width[i])).join("   ").trimEnd()).join("\n");
}

function show(s) {
  const c = s.cluster;
  const peers = c.peers || [];
  const head = `cluster ${c.name}, epoch ${c.epoch}, ${peers.length} members alive, dunlin ${s.version}`;
  // textContent: what members call themselves stays text.
  out.textContent = head + "\n\n" + table([columns, ...(s.members || []).map(row)]);
}

async function refresh() {
  try {
    show(await (await fetch("api/status", { cache: "no-store" })).json());
  } catch (err) {
    out.textContent = "Cannot read the status: " + err.message;
  }
  setTimeout(refresh, 2000);
}

refresh();
