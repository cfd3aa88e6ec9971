// Streams, pub/sub and a script with ioredis: node ioredis_streams.js HOST:PORT

import { Redis } from "ioredis";
import { printVersion } from "./scenario.js";
import { runStreams, SCRIPT } from "./streams.js";

printVersion("ioredis");
const redis = new Redis("redis://" + process.argv[2], { scripts: { count: { lua: SCRIPT, numberOfKeys: 1 } } });
const subscriber = redis.duplicate();

const named = ([id, [, name]]) => [id, name];

/** Turns a flat array into an object. */
const fields = (flat) => Object.fromEntries(flat.flatMap((name, i) => (i % 2 ? [] : [[name, flat[i + 1]]])));

const client = {
  createGroup: (key) => redis.xgroup("CREATE", key, "workers", "$", "MKSTREAM"),
  add: (key, name) => redis.xadd(key, "*", "name", name),

  reader(keys, consumer) {
    const own = redis.duplicate();
    return async (count, ms) => {
      const streams = [...keys, ...keys.map(() => ">")];
      const options = ["COUNT", count, "BLOCK", ms, "STREAMS", ...streams];
      const read = await own.xreadgroup("GROUP", "workers", consumer, ...options);
      return (read ?? []).map(([key, entries]) => [key, entries.map(named)]);
    };
  },

  ack: (key, ids) => redis.xack(key, "workers", ...ids),

  async claim(key, consumer, start, count) {
    const [next, entries] = await redis.xautoclaim(key, "workers", consumer, 0, start, "COUNT", count);
    return [next, entries.map(([id]) => id)];
  },

  async pending(key) {
    const [count, first, last, [[consumer, n]]] = await redis.xpending(key, "workers");
    return [count, first, last, [consumer, Number(n)]];
  },

  async groupInfo(key) {
    const { pending, lag, "entries-read": read } = fields((await redis.xinfo("GROUPS", key))[0]);
    return { pending, lag, read };
  },

  async subscribe(channel, listener) {
    subscriber.on("message", (_, message) => listener(message));
    await subscriber.subscribe(channel);
  },

  async psubscribe(pattern, listener) {
    subscriber.on("pmessage", (_, channel, message) => listener(message));
    await subscriber.psubscribe(pattern);
  },

  publish: (channel, message) => redis.publish(channel, message),
  script: (key, argument) => redis.count(key, argument),
};

await runStreams(client, "ioredis");
process.exit();
