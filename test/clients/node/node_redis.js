// node-redis: node node_redis.js HOST:PORT

import { createClient, WatchError } from "redis";
import { printVersion, runScenario } from "./scenario.js";

printVersion("redis");
const url = "redis://" + process.argv[2];
const redis = createClient({ url });
redis.on("error", () => {}); // while the proxy is away
await redis.connect();

const client = {
  ping: () => redis.ping(),
  get: (key) => redis.get(key),
  set: (key, value, ttl) => redis.set(key, value, { EX: ttl }),
  ttl: (key) => redis.ttl(key),
  setMany: (pairs) => redis.mSet(pairs),
  getMany: (keys) => redis.mGet(keys),
  del: (keys) => redis.del(keys),
  incr: (key) => redis.incr(key),
  expire: (key, ttl) => redis.expire(key, ttl),
  setAbsent: (key, value, ttl) => redis.set(key, value, { NX: true, EX: ttl }),

  async scan(pattern) {
    const found = [];
    for await (const keys of redis.scanIterator({ MATCH: pattern })) found.push(...keys);
    return found;
  },

  // A watch is of a connection, so that it takes one of its own.
  async deleteIfEqual(key, value) {
    const own = await redis.duplicate().connect();
    try {
      await own.watch(key);
      if ((await own.get(key)) !== value) return 0;
      return (await own.multi().del(key).exec())[0];
    } catch (e) {
      if (e instanceof WatchError) return 0;
      throw e;
    } finally {
      await own.close();
    }
  },

  async pipeline(keys) {
    const p = redis.multi();
    for (const key of keys) p.set(key, key).get(key);
    return (await p.execAsPipeline()).filter((_, i) => i % 2 === 1);
  },
};

await runScenario(client, "node-redis");
process.exit();
