// ioredis: node ioredis.js HOST:PORT

import { Redis } from "ioredis";
import { printVersion, runScenario } from "./scenario.js";

printVersion("ioredis");
const redis = new Redis("redis://" + process.argv[2]);
redis.on("error", () => {}); // while the proxy is away

const client = {
  ping: () => redis.ping(),
  get: (key) => redis.get(key),
  set: (key, value, ttl) => redis.set(key, value, "EX", ttl),
  ttl: (key) => redis.ttl(key),
  setMany: (pairs) => redis.mset(new Map(pairs)),
  getMany: (keys) => redis.mget(keys),
  del: (keys) => redis.del(keys),
  incr: (key) => redis.incr(key),
  expire: (key, ttl) => redis.expire(key, ttl),
  setAbsent: (key, value, ttl) => redis.set(key, value, "EX", ttl, "NX"),
  deleteIfEqual: (key, value) => redis.call("DELIFEQ", key, value),

  async scan(pattern) {
    const found = [];
    for await (const keys of redis.scanStream({ match: pattern })) found.push(...keys);
    return found;
  },

  async pipeline(keys) {
    const p = redis.pipeline();
    for (const key of keys) p.set(key, key).get(key);
    return (await p.exec()).filter((_, i) => i % 2 === 1).map(([, value]) => value);
  },
};

await runScenario(client, "ioredis");
process.exit();
