// connect-redis, express-session's store: node connect_redis.js HOST:PORT

import assert from "node:assert/strict";
import { promisify } from "node:util";
import { RedisStore } from "connect-redis";
import { createClient } from "redis";
import { expectTTL, printVersion, report, restarted, TTL, untilItWorks } from "./scenario.js";

printVersion("connect-redis");
const client = createClient({ url: "redis://" + process.argv[2] });
client.on("error", () => {}); // while the proxy is away
await client.connect();

// Called back, as express-session does.
const store = new RedisStore({ client, ttl: TTL });
const [get, set, touch, destroy, length, ids, all, clear] = [
  "get", "set", "touch", "destroy", "length", "ids", "all", "clear",
].map((name) => promisify(store[name].bind(store)));

const session = (i) => ({ cookie: {}, user: `user ${i}` });

await report("session", async () => {
  assert.equal(await get("first"), null);
  await set("first", session(1));
  assert.deepEqual(await get("first"), session(1));
  expectTTL(await client.ttl("sess:first"));
  await touch("first", session(1));
  await destroy("first");
  assert.equal(await get("first"), null);
});

await report("list", async () => {
  for (let i = 0; i < 150; i++) await set("s" + i, session(i));
  assert.equal(await length(), 150);
  assert.equal(new Set(await ids()).size, 150);
  const users = new Set((await all()).map((s) => s.user));
  assert.equal(users.size, 150);
});

await report("reconnect", async () => {
  await restarted();
  await untilItWorks(() => set("s7", session(8)));
  assert.deepEqual(await get("s7"), session(8));
});

await report("clear", async () => {
  await clear();
  assert.equal(await length(), 0);
});
process.exit();
