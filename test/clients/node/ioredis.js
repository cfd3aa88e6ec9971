// ioredis: node ioredis.js HOST:PORT

import { Cluster, Redis } from "ioredis";
import { printVersion, runScenario } from "./scenario.js";

printVersion("ioredis");
const redis = new Redis("redis://" + process.argv[2]);
redis.on("error", () => {}); // while the proxy is away
const waiting = redis.duplicate().on("error", () => {}); // of pops that wait

async function walk(stream) {
  const found = [];
  for await (const some of stream) found.push(...some);
  return found;
}

const pairs = (flat) => Array.from({ length: flat.length / 2 }, (_, i) => flat.slice(2 * i, 2 * i + 2));
const scored = (flat) => pairs(flat.flat()).map(([member, score]) => [member, Number(score)]);

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

  scan: (pattern) => walk(redis.scanStream({ match: pattern })),

  setFields: (key, fields) => redis.hset(key, fields),
  addToField: (key, field, n) => redis.hincrby(key, field, n),
  fields: (key) => redis.hgetall(key),
  expireField: (key, field, ttl) => redis.hexpire(key, ttl, "FIELDS", 1, field),
  delField: (key, field) => redis.hdel(key, field),
  walkFields: async (key) => Object.fromEntries(pairs(await walk(redis.hscanStream(key)))),

  add: (key, members) => redis.sadd(key, members),
  members: (key) => redis.smembers(key),
  common: (keys) => redis.sinter(keys),
  walkMembers: (key) => walk(redis.sscanStream(key)),

  rank: (key, scores) => redis.zadd(key, Object.entries(scores).flatMap(([member, n]) => [n, member])),
  raise: (key, member, n) => redis.zincrby(key, n, member),
  best: async (key, n) => scored(await redis.zrange(key, 0, n - 1, "REV", "WITHSCORES")),
  lowest: async (key) => scored(await redis.zpopmin(key))[0],

  push: (key, items) => redis.rpush(key, items),
  move: (from, to) => redis.lmove(from, to, "LEFT", "RIGHT"),
  items: (key) => redis.lrange(key, 0, -1),
  pop: (key, n) => redis.lpop(key, n),

  place: (key, towns) => redis.geoadd(key, Object.entries(towns).flatMap(([name, at]) => [...at, name])),
  apart: (key, a, b) => redis.geodist(key, a, b, "KM"),
  near: (key, [x, y], km) => redis.geosearch(key, "FROMLONLAT", x, y, "BYRADIUS", km, "KM", "ASC"),

  async listen(how, name, hear) {
    const own = redis.duplicate().on("error", () => {});
    const event = { channel: "message", pattern: "pmessage", shard: "smessage" }[how];
    own.on(event, (...words) => hear(words));
    if (how === "channel") await own.subscribe(name);
    if (how === "pattern") await own.psubscribe(name);
    if (how === "shard") await own.ssubscribe(name);
  },

  publish: (channel, text) => redis.publish(channel, text),
  publishToShard: (channel, text) => redis.spublish(channel, text),

  async openCluster(host, port) {
    const cluster = new Cluster([{ host, port }]);
    return {
      async listen(how, name, hear) {
        cluster.on(how === "pattern" ? "pmessage" : "message", (...words) => words.includes(name) && hear(words));
        await (how === "pattern" ? cluster.psubscribe(name) : cluster.subscribe(name));
      },
      unlisten: (how, name) => (how === "pattern" ? cluster.punsubscribe(name) : cluster.unsubscribe(name)),
      publish: (channel, text) => cluster.publish(channel, text),
      publishAtAll: (channel, text) => Promise.all(cluster.nodes("master").map((node) => node.publish(channel, text))),
      close: () => cluster.disconnect(),
    };
  },

  popFirst: (keys, seconds) => waiting.blpop(keys, seconds),
  awaitMove: (from, to, seconds) => waiting.blmove(from, to, "LEFT", "RIGHT", seconds),

  async awaitLowest(key, seconds) {
    const [from, member, score] = await waiting.bzpopmin(key, seconds);
    return [from, member, Number(score)];
  },

  info: () => redis.info("clients"),

  async pipeline(keys) {
    const p = redis.pipeline();
    for (const key of keys) p.set(key, key).get(key);
    return (await p.exec()).filter((_, i) => i % 2 === 1).map(([, value]) => value);
  },
};

await runScenario(client, "ioredis");
process.exit();
