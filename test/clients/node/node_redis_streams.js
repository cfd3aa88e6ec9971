// Streams, pub/sub and a script with node-redis: node node_redis_streams.js HOST:PORT

import { createClient, defineScript } from "redis";
import { printVersion } from "./scenario.js";
import { runStreams, SCRIPT } from "./streams.js";

printVersion("redis");
const count = defineScript({
  SCRIPT,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser, key, argument) {
    parser.pushKey(key);
    parser.push(argument);
  },
  transformReply: undefined,
});
const redis = createClient({ url: "redis://" + process.argv[2], scripts: { count } });
await redis.connect();
const subscriber = await redis.duplicate().connect();

const client = {
  createGroup: (key) => redis.xGroupCreate(key, "workers", "$", { MKSTREAM: true }),
  add: (key, name) => redis.xAdd(key, "*", { name }),

  async reader(keys, consumer) {
    const own = await redis.duplicate().connect();
    const streams = keys.map((key) => ({ key, id: ">" }));
    return async (COUNT, BLOCK) => {
      const read = await own.xReadGroup("workers", consumer, streams, { COUNT, BLOCK });
      return (read ?? []).map(({ name, messages }) => [name, messages.map((m) => [m.id, m.message.name])]);
    };
  },

  ack: (key, ids) => redis.xAck(key, "workers", ids),

  async claim(key, consumer, start, COUNT) {
    const { nextId, messages } = await redis.xAutoClaim(key, "workers", consumer, 0, start, { COUNT });
    return [nextId, messages.map(({ id }) => id)];
  },

  async pending(key) {
    const { pending, firstId, lastId, consumers } = await redis.xPending(key, "workers");
    return [pending, firstId, lastId, ...consumers.map(({ name, deliveriesCounter }) => [name, deliveriesCounter])];
  },

  async groupInfo(key) {
    const [{ pending, lag, "entries-read": read }] = await redis.xInfoGroups(key);
    return { pending, lag, read };
  },

  subscribe: (channel, listener) => subscriber.subscribe(channel, listener),
  psubscribe: (pattern, listener) => subscriber.pSubscribe(pattern, listener),
  publish: (channel, message) => redis.publish(channel, message),
  script: (key, argument) => redis.count(key, argument),
};

await runStreams(client, "node-redis");
process.exit();
