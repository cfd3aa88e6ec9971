// The scenario of ../README.md and the result protocol, for all programs here.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export const TTL = 100;
const PIPELINED = 500; // SETs, and as many GETs
const WALKED = 300; // fields, and members
const RECONNECT_MS = 20_000;
export const WORK_MS = 60_000; // for what workers do, on a busy machine

/** Prints the versions of installed packages. */
export function printVersion(...names) {
  const file = (name) => new URL(`node_modules/${name}/package.json`, import.meta.url);
  console.log("version", names.map((name) => JSON.parse(readFileSync(file(name))).version).join(", "));
}

/** Runs one step and prints its line. */
export async function report(step, run) {
  try {
    await run();
    console.log("ok", step);
  } catch (e) {
    console.log(`FAIL ${step}: ${e}`.replaceAll("\n", " "));
  }
}

export function expectTTL(got) {
  assert.ok(got > 0 && got <= TTL, `TTL is ${got}`);
}

let lines; // of the driver

/** Returns the driver's next line. */
async function nextLine() {
  lines ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  return (await lines.next()).value;
}

/** Has the driver restart the proxy, and returns when it has done so. */
export async function restarted() {
  console.log("restart");
  await nextLine();
}

/** Has the driver do what word says, and repeats work(i) until it has. Returns how often, and its last words. */
async function whileDriver(word, work) {
  console.log(word);
  await nextLine(); // it begins
  const over = nextLine().then((last) => ({ last }));
  for (let i = 1; ; i++) {
    await work(i - 1);
    const said = await Promise.race([over, sleep(10)]);
    if (said) return [i, said.last];
  }
}

/** Has the driver replace the cluster's nodes meanwhile. Returns how often it has called work(i). */
export async function whileReplaced(work) {
  return (await whileDriver("replace", work))[0];
}

/** Has the driver kill a node, start another one and restart the proxies. Returns when the node was killed. */
export async function whileCrashed(work) {
  return Number((await whileDriver("crash", work))[1]) * 1000;
}

/** Whether a moment is one of the last of a node that was killed then: what it has acknowledged may be lost. */
export function inLastMoments(at, killed) {
  return at > killed - 1000 && at < killed + 250;
}

/** Repeats an attempt until it succeeds: until the proxy is back it may fail. */
export async function untilItWorks(attempt, ms = RECONNECT_MS) {
  for (const deadline = Date.now() + ms; ; await sleep(20)) {
    try {
      return await attempt();
    } catch (e) {
      if (Date.now() > deadline) throw e;
    }
  }
}

/**
 * Runs the scenario. A client has, in its library's own way: ping, get, set(key, value,
 * ttl), ttl, setMany(pairs), getMany, del, scan(pattern), incr, expire, setAbsent,
 * deleteIfEqual, and pipeline(keys): SET and GET of each key at once, and what the GETs said. For
 * collections: setFields, addToField, fields, expireField, delField, walkFields; add, members, common,
 * walkMembers; rank(key, scores), raise, best(key, n), lowest; push, move, items, pop(key, n);
 * place(key, towns), apart and near(key, center, km).
 */
export async function runScenario(client, prefix) {
  const key = (name) => `${prefix}:${name}`;
  const keys = (name, n) => Array.from({ length: n }, (_, i) => key(name + i));
  const load = (keys) => client.setMany(keys.map((k) => [k, "value of " + k]));
  const pipeline = async () => {
    const piped = keys("piped", PIPELINED);
    assert.deepEqual(await client.pipeline(piped), piped); // each key holds its own name
  };

  await report("connect", async () => assert.equal(await client.ping(), "PONG"));

  await report("get-or-set", async () => {
    assert.equal(await client.get(key("cached")), null);
    assert.equal(await client.set(key("cached"), "computed\r\n\0", TTL), "OK");
    assert.equal(await client.get(key("cached")), "computed\r\n\0");
    expectTTL(await client.ttl(key("cached")));
  });

  await report("many", async () => {
    const many = keys("many", 100);
    assert.equal(await load(many), "OK");
    const want = [null, ...many.map((k) => "value of " + k)];
    assert.deepEqual(await client.getMany([key("missing"), ...many]), want);
  });

  await report("delete", async () => {
    assert.equal(await client.del([key("missing"), ...keys("many", 100)]), 100);
  });

  await report("scan", async () => {
    const gone = keys("scanned:", 300).sort();
    const kept = keys("kept:", 10).sort();
    await load([...gone, ...kept]);
    const found = new Set(await client.scan(key("scanned:*"))); // SCAN may return a key twice
    assert.deepEqual([...found].sort(), gone);
    assert.equal(await client.del([...found]), 300);
    assert.deepEqual([...new Set(await client.scan(key("kept:*")))].sort(), kept);
  });

  await report("rate-limit", async () => {
    for (let i = 1; i <= 5; i++) {
      assert.equal(await client.incr(key("limited")), i);
      if (i === 1) assert.equal(await client.expire(key("limited"), TTL), 1);
    }
    expectTTL(await client.ttl(key("limited")));
  });

  await report("lock", async () => {
    assert.equal(await client.setAbsent(key("lock"), "mine", TTL), "OK");
    assert.equal(await client.setAbsent(key("lock"), "theirs", TTL), null);
    assert.equal(await client.deleteIfEqual(key("lock"), "theirs"), 0);
    assert.equal(await client.deleteIfEqual(key("lock"), "mine"), 1);
    assert.equal(await client.get(key("lock")), null);
  });

  await report("pipeline", pipeline);

  await report("hash", async () => {
    const [hash, many] = [key("hash"), key("fields")];
    assert.equal(await client.setFields(hash, { name: "Ada", visits: "41" }), 2);
    assert.equal(await client.addToField(hash, "visits", 1), 42);
    assert.deepEqual({ ...(await client.fields(hash)) }, { name: "Ada", visits: "42" });
    assert.deepEqual(await client.expireField(hash, "visits", TTL), [1]);
    assert.equal(await client.delField(hash, "name"), 1);
    const all = Object.fromEntries(Array.from({ length: WALKED }, (_, i) => ["field" + i, String(i)]));
    assert.equal(await client.setFields(many, all), WALKED);
    assert.deepEqual(await client.walkFields(many), all);
  });

  await report("set", async () => {
    const [one, other] = [key("{set}:1"), key("{set}:2")];
    const members = Array.from({ length: WALKED }, (_, i) => "member" + i);
    assert.equal(await client.add(one, members), WALKED);
    assert.equal(await client.add(other, ["member1", "member2", "else"]), 3);
    assert.deepEqual((await client.common([one, other])).sort(), ["member1", "member2"]);
    assert.deepEqual((await client.members(other)).sort(), ["else", "member1", "member2"]);
    assert.deepEqual([...new Set(await client.walkMembers(one))].sort(), members.sort());
  });

  await report("sorted-set", async () => {
    const board = key("board");
    assert.equal(await client.rank(board, { Ada: 1, Bob: 2.5, Cy: 3 }), 3);
    assert.equal(Number(await client.raise(board, "Ada", 2)), 3);
    assert.deepEqual(await client.best(board, 2), [["Cy", 3], ["Ada", 3]]);
    assert.deepEqual(await client.lowest(board), ["Bob", 2.5]);
  });

  await report("list", async () => {
    const [queue, done] = [key("{list}:queue"), key("{list}:done")];
    assert.equal(await client.push(queue, ["a", "b", "c"]), 3);
    assert.equal(await client.move(queue, done), "a");
    assert.deepEqual(await client.items(queue), ["b", "c"]);
    assert.deepEqual(await client.pop(queue, 5), ["b", "c"]);
  });

  await report("geo", async () => {
    const towns = { Palermo: [13.361389, 38.115556], Catania: [15.087269, 37.502669] };
    assert.equal(await client.place(key("towns"), towns), 2);
    assert.equal(Math.round(Number(await client.apart(key("towns"), "Palermo", "Catania"))), 166);
    assert.deepEqual(await client.near(key("towns"), [15, 37], 200), ["Catania", "Palermo"]);
  });

  await report("reconnect", async () => {
    await restarted();
    await untilItWorks(() => client.set(key("cached"), "again", TTL));
    assert.equal(await client.get(key("cached")), "again");
    await pipeline();
  });
}
