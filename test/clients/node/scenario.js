// The scenario of ../README.md and the result protocol, for all programs here.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export const TTL = 100;
const PIPELINED = 500; // SETs, and as many GETs
const WALKED = 300; // fields, and members
const SENT = 20; // messages
const CLUSTERED = 4; // channels, of several nodes
const HEARD_MS = 10_000;
const SHORTLY = 0.1; // seconds until a pop of an empty list gives up
const LONG = 10; // seconds for what is pushed
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
 * For messages: listen(how, name, hear), on a connection of its own, which hears [channel, text], behind the pattern
 * if how is "pattern" and not "channel" or "shard"; publish, publishToShard(channel, text). On a connection that may be
 * blocked: popFirst(keys, seconds), which gives [key, item] or null, awaitMove(from, to, seconds) and awaitLowest(key,
 * seconds), which gives [key, member, score]. openCluster(host, port) gives the library's client of a cluster, with
 * listen(how, name, hear), unlisten(how, name), publish(channel, text), publishAtAll(channel, text), which gives the
 * counts of all nodes, and close. info says how many are blocked. openCache, if the library has a
 * client-side cache, gives read(key), which gives the value and whether the cache had it.
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

  const texts = Array.from({ length: SENT }, (_, i) => "message" + i);

  /** Subscribes. Returns what checks that messages are heard, each once and in order. */
  async function listening(how, name) {
    const heard = [];
    await client.listen(how, name, (message) => heard.push(message));
    return async (messages) => {
      await untilItWorks(() => assert.ok(heard.length >= messages.length, `${heard.length} are heard`), HEARD_MS);
      assert.deepEqual(heard, messages);
    };
  }

  await report("publish", async () => {
    const [channel, pattern] = [key("news"), key("ne*")];
    const plain = await listening("channel", channel);
    const matching = await listening("pattern", pattern);
    for (const text of texts) assert.equal(await client.publish(channel, text), 2);
    await plain(texts.map((text) => [channel, text]));
    await matching(texts.map((text) => [pattern, channel, text]));
  });

  // Who listens to a channel of a shard channel's name hears other messages.
  await report("shard-publish", async () => {
    const channel = key("shard");
    const shard = await listening("shard", channel);
    const plain = await listening("channel", channel);
    for (const text of texts) assert.equal(await client.publishToShard(channel, text), 1);
    await shard(texts.map((text) => [channel, text]));
    assert.equal(await client.publish(channel, "plain"), 1);
    await plain([[channel, "plain"]]);
  });

  // Listens at nodes, and publishes at all of them, until nobody listens.
  if (client.openCluster) {
    await report("cluster-publish", async () => {
      console.log("node");
      const [host, port] = (await nextLine()).split(":");
      const cluster = await client.openCluster(host, Number(port));
      const [channels, pattern] = [keys("nodes", CLUSTERED), key("nodes*")];
      const counted = [...texts, "at all", "at all", "at all"];
      const heard = { channel: [], pattern: [] };
      const expected = { channel: [], pattern: [] };
      const hears = (kind) => untilItWorks(() => assert.deepEqual(heard[kind], expected[kind]), HEARD_MS);
      await cluster.listen("pattern", pattern, (words) => heard.pattern.push(words));
      for (const channel of channels) {
        await cluster.listen("channel", channel, (words) => heard.channel.push(words));
        for (const text of texts) assert.equal(await cluster.publish(channel, text), 2);
        assert.deepEqual(await cluster.publishAtAll(channel, "at all"), [2, 2, 2]);
        expected.channel.push(...counted.map((text) => [channel, text]));
        await hears("channel"); // a message that was counted may still be on its way
        await cluster.unlisten("channel", channel);
        assert.equal(await cluster.publish(channel, "last"), 1);
        expected.pattern.push(...[...counted, "last"].map((text) => [pattern, channel, text]));
      }
      await hears("pattern");
      assert.deepEqual(heard.channel, expected.channel);
      await cluster.unlisten("pattern", pattern);
      assert.equal(await cluster.publish(channels[0], "unheard"), 0);
      await cluster.close();
    });
  }

  /** Pushes as soon as a client is blocked, and returns what that client has got. */
  async function pushed(popped, push) {
    await untilItWorks(async () => assert.match(await client.info(), /^blocked_clients:1\r$/m));
    await push();
    return popped;
  }

  // Pops of an empty list until the time is up, and then of what another connection pushes.
  await report("blocking", async () => {
    const [none, queue, done, board] = [key("none"), key("{wait}:queue"), key("{wait}:done"), key("waited")];
    const begin = performance.now();
    assert.equal(await client.popFirst([none], SHORTLY), null);
    assert.ok(performance.now() - begin >= SHORTLY * 1000 - 1, "its time is up"); // by another clock
    const item = client.popFirst([none, queue], LONG);
    assert.deepEqual(await pushed(item, () => client.push(queue, ["a"])), [queue, "a"]);
    const moved = client.awaitMove(queue, done, LONG);
    assert.equal(await pushed(moved, () => client.push(queue, ["b", "c"])), "b");
    assert.deepEqual([await client.items(queue), await client.items(done)], [["c"], ["b"]]);
    const lowest = client.awaitLowest(board, LONG);
    assert.deepEqual(await pushed(lowest, () => client.rank(board, { Ada: 1.5 })), [board, "Ada", 1.5]);
  });

  // Reads through the library's cache what another connection changes.
  if (client.openCache) {
    await report("tracking", async () => {
      const read = await client.openCache();
      for (let turn = 0; turn < 5; turn++) {
        const value = "value" + turn;
        await client.set(key("tracked"), value, TTL);
        await untilItWorks(async () => assert.equal((await read(key("tracked")))[0], value)); // it is invalidated
        await untilItWorks(async () => assert.deepEqual(await read(key("tracked")), [value, true]));
      }
    });
  }

  await report("reconnect", async () => {
    await restarted();
    await untilItWorks(() => client.set(key("cached"), "again", TTL));
    assert.equal(await client.get(key("cached")), "again");
    await pipeline();
  });
}
