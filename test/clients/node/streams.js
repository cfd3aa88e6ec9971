// Streams with a consumer group, pub/sub and scripts, for node_redis_streams.js and ioredis_streams.js.

import assert from "node:assert/strict";
import { report, untilItWorks, whileReplaced, WORK_MS } from "./scenario.js";

const ADDED = 200; // entries, and messages

/** Answers what it was called with, behind the number of its calls with this key. */
export const SCRIPT = `return {redis.call("INCR", KEYS[1]), ARGV[1]}`;

/**
 * Runs the steps. A client has, in its library's own way: createGroup(key), add(key, name), reader(keys, consumer),
 * ack(key, ids), claim(key, consumer, start, count), pending(key), groupInfo(key), subscribe(channel, listener),
 * psubscribe(pattern, listener), publish(channel, message) and script(key, argument). A reader has a connection of
 * its own, and reads new entries as an array of [key, [[id, name]…]], perhaps an empty one. Groups are named
 * "workers".
 */
export async function runStreams(client, prefix) {
  const keys = [0, 1, 2, 3].map((i) => `${prefix}-streams:${i}`); // in several slots
  const alone = `${prefix}-streams:alone`; // a stream that the consumers leave alone
  const news = `${prefix}-news`;
  const counted = `{${prefix}}:script`;
  const delivered = new Map(); // how often, by name
  const heard = { plain: [], pattern: [] };
  let acknowledged = 0;

  async function work(consumer) {
    const read = await client.reader(keys, consumer);
    for (;;) {
      for (const [key, entries] of await read(10, 2000)) {
        for (const [, name] of entries) delivered.set(name, (delivered.get(name) ?? 0) + 1);
        const n = await client.ack(key, entries.map(([id]) => id));
        acknowledged += n; // not in one statement with await: other consumers count meanwhile
      }
    }
  }

  async function allDelivered(n) {
    await untilItWorks(() => assert.equal(acknowledged, n), WORK_MS);
    assert.equal(delivered.size, n);
    assert.deepEqual([...delivered].filter(([, times]) => times !== 1), []);
  }

  async function allHeard(messages) {
    const all = () => assert.ok(Math.min(heard.plain.length, heard.pattern.length) >= messages.length);
    await untilItWorks(all, WORK_MS);
    assert.deepEqual(heard.plain, messages);
    assert.deepEqual(heard.pattern, messages);
  }

  const numbers = (name, n) => Array.from({ length: n }, (_, i) => name + i);

  await report("create", async () => {
    for (const key of [alone, ...keys]) {
      await client.createGroup(key);
      await assert.rejects(client.createGroup(key), /BUSYGROUP/);
    }
  });

  await report("consume", async () => {
    for (let i = 0; i < 3; i++) work("consumer" + i);
    for (const [i, name] of numbers("entry", ADDED).entries()) await client.add(keys[i % 4], name);
    await allDelivered(ADDED);
    for (const key of keys) assert.deepEqual(await client.groupInfo(key), { pending: 0, lag: 0, read: ADDED / 4 });
  });

  // A consumer vanishes with 60 of 100 entries. Another one claims these, and acknowledges all but ten.
  await report("claim", async () => {
    const ids = [];
    for (const name of numbers("alone", 100)) ids.push(await client.add(alone, name));
    const read = await client.reader([alone], "gone");
    const [[, entries]] = await read(60, 2000);
    assert.deepEqual(entries.map(([id]) => id), ids.slice(0, 60));
    assert.deepEqual(await client.pending(alone), [60, ids[0], ids[59], ["gone", 60]]);
    const claimed = [];
    for (let start = "0-0"; start !== "0-0" || claimed.length === 0; ) {
      const [next, some] = await client.claim(alone, "heir", start, 25);
      claimed.push(...some);
      start = next;
    }
    assert.deepEqual(claimed, ids.slice(0, 60));
    assert.equal(await client.ack(alone, claimed.slice(10)), 50);
    assert.deepEqual(await client.pending(alone), [10, ids[0], ids[9], ["heir", 10]]);
    assert.deepEqual(await client.groupInfo(alone), { pending: 10, lag: 40, read: 60 });
  });

  await report("publish", async () => {
    await client.subscribe(news, (message) => heard.plain.push(message));
    await client.psubscribe(news[0] + "*-news", (message) => heard.pattern.push(message));
    for (const message of numbers("message", ADDED)) assert.equal(await client.publish(news, message), 2);
    await allHeard(numbers("message", ADDED));
  });

  await report("script", async () => {
    for (let i = 1; i <= 3; i++) assert.deepEqual(await client.script(counted, "a" + i), [i, "a" + i]);
  });

  await report("replace", async () => {
    const n = await whileReplaced(async (i) => {
      await client.add(keys[i % 4], "meanwhile" + i);
      await client.publish(news, "message" + (ADDED + i));
      assert.deepEqual(await client.script(counted, "again"), [4 + i, "again"]);
    });
    await allDelivered(ADDED + n);
    await allHeard(numbers("message", ADDED + n));
  });
}
