// node-redis: node node_redis.js HOST:PORT

import { BasicClientSideCache, createClient, createCluster, WatchError } from "redis";
import { printVersion, runScenario } from "./scenario.js";

printVersion("redis");
const url = "redis://" + process.argv[2];
const redis = createClient({ url });
redis.on("error", () => {}); // while the proxy is away
await redis.connect();
const waiting = await redis.duplicate().on("error", () => {}).connect(); // of pops that wait

async function walk(iterator) {
  const found = [];
  for await (const some of iterator) found.push(...some);
  return found;
}

const scored = ({ value, score }) => [value, score];

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

  scan: (pattern) => walk(redis.scanIterator({ MATCH: pattern })),

  setFields: (key, fields) => redis.hSet(key, fields),
  addToField: (key, field, n) => redis.hIncrBy(key, field, n),
  fields: (key) => redis.hGetAll(key),
  expireField: (key, field, ttl) => redis.hExpire(key, field, ttl),
  delField: (key, field) => redis.hDel(key, field),

  async walkFields(key) {
    const found = await walk(redis.hScanIterator(key));
    return Object.fromEntries(found.map(({ field, value }) => [field, value]));
  },

  add: (key, members) => redis.sAdd(key, members),
  members: (key) => redis.sMembers(key),
  common: (keys) => redis.sInter(keys),
  walkMembers: (key) => walk(redis.sScanIterator(key)),

  rank: (key, scores) => redis.zAdd(key, Object.entries(scores).map(([value, score]) => ({ value, score }))),
  raise: (key, member, n) => redis.zIncrBy(key, n, member),
  best: async (key, n) => (await redis.zRangeWithScores(key, 0, n - 1, { REV: true })).map(scored),
  lowest: async (key) => scored(await redis.zPopMin(key)),

  push: (key, items) => redis.rPush(key, items),
  move: (from, to) => redis.lMove(from, to, "LEFT", "RIGHT"),
  items: (key) => redis.lRange(key, 0, -1),
  pop: (key, n) => redis.lPopCount(key, n),

  place: (key, towns) =>
    redis.geoAdd(key, Object.entries(towns).map(([member, [longitude, latitude]]) => ({ member, longitude, latitude }))),
  apart: (key, a, b) => redis.geoDist(key, a, b, "km"),
  near: (key, [longitude, latitude], radius) =>
    redis.geoSearch(key, { longitude, latitude }, { radius, unit: "km" }, { SORT: "ASC" }),

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

  async listen(how, name, hear) {
    const own = await redis.duplicate().on("error", () => {}).connect();
    const listener = (text, channel) => hear(how === "pattern" ? [name, channel, text] : [channel, text]);
    if (how === "channel") await own.subscribe(name, listener);
    if (how === "pattern") await own.pSubscribe(name, listener);
    if (how === "shard") await own.sSubscribe(name, listener);
  },

  publish: (channel, text) => redis.publish(channel, text),
  publishToShard: (channel, text) => redis.sPublish(channel, text),

  async openCluster(host, port) {
    const cluster = await createCluster({ rootNodes: [{ socket: { host, port } }] }).connect();
    const publishAt = async (node, channel, text) => (await cluster.nodeClient(node)).publish(channel, text);
    return {
      async listen(how, name, hear) {
        const listener = (text, channel) => hear(how === "pattern" ? [name, channel, text] : [channel, text]);
        await (how === "pattern" ? cluster.pSubscribe(name, listener) : cluster.subscribe(name, listener));
      },
      unlisten: (how, name) => (how === "pattern" ? cluster.pUnsubscribe(name) : cluster.unsubscribe(name)),
      publish: (channel, text) => cluster.publish(channel, text),
      publishAtAll: (channel, text) => Promise.all(cluster.masters.map((node) => publishAt(node, channel, text))),
      close: () => cluster.close(),
    };
  },

  async popFirst(keys, seconds) {
    const popped = await waiting.blPop(keys, seconds);
    return popped && [popped.key, popped.element];
  },

  awaitMove: (from, to, seconds) => waiting.blMove(from, to, "LEFT", "RIGHT", seconds),

  async awaitLowest(key, seconds) {
    const { key: from, value, score } = await waiting.bzPopMin(key, seconds);
    return [from, value, score];
  },

  info: () => redis.info("clients"),

  async openCache() {
    const cache = new BasicClientSideCache();
    const caching = await createClient({ url, RESP: 3, clientSideCache: cache }).on("error", () => {}).connect();
    return async (key) => {
      const hits = cache.stats().hitCount;
      const value = await caching.get(key);
      return [value, cache.stats().hitCount > hits];
    };
  },

  async pipeline(keys) {
    const p = redis.multi();
    for (const key of keys) p.set(key, key).get(key);
    return (await p.execAsPipeline()).filter((_, i) => i % 2 === 1);
  },
};

await runScenario(client, "node-redis");
process.exit();
