// socket.io with both of its adapters for Redis, and rate-limiter-flexible: node socket_io.js HOST:PORT
//
// Two servers, each with clients of its own, find each other through Redis alone.

import assert from "node:assert/strict";
import { createAdapter as pubSubAdapter } from "@socket.io/redis-adapter";
import { createAdapter as streamsAdapter } from "@socket.io/redis-streams-adapter";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { createClient } from "redis";
import { Server } from "socket.io";
import { io } from "socket.io-client";
import { inLastMoments, printVersion, report, untilItWorks, whileCrashed, whileReplaced, WORK_MS } from "./scenario.js";

const SENT = 100; // events to a room

printVersion("socket.io", "rate-limiter-flexible");

async function redis() {
  const client = createClient({ url: "redis://" + process.argv[2] });
  client.on("error", () => {});
  return client.connect();
}

const adapters = {
  "pub/sub": async () => pubSubAdapter(await redis(), await redis()),
  streams: async () => streamsAdapter(await redis()),
};

/** A server with two clients, which are in its room and note what they hear. */
async function serve(adapter) {
  const server = new Server({ adapter });
  server.listen(0);
  server.on("connection", (socket) => socket.join("room"));
  server.on("hello", (name, answer) => answer("hello " + name)); // of the other server
  const clients = [];
  for (let i = 0; i < 2; i++) {
    const socket = io("http://127.0.0.1:" + server.httpServer.address().port, { transports: ["websocket"] });
    const client = { socket, heard: [] };
    socket.on("news", (n) => client.heard.push(n));
    socket.on("question", (n, answer) => answer(n + 1));
    clients.push(client);
    await new Promise((connected) => socket.once("connect", connected));
  }
  return { server, clients };
}

const pairs = {};
const sent = {};

/** Waits until each client of both servers has heard all events, once and in order. */
async function allHeard(name) {
  const want = Array.from({ length: sent[name] }, (_, i) => i);
  for (const { heard } of clientsOf(name)) {
    await untilItWorks(() => assert.ok(heard.length >= want.length), WORK_MS);
    assert.deepEqual(heard, want);
  }
}

const clientsOf = (name) => pairs[name].flatMap((one) => one.clients);

function send(name) {
  pairs[name][0].server.to("room").emit("news", sent[name]++);
}

for (const name of Object.keys(adapters)) {
  await report(name, async () => {
    pairs[name] = [await serve(await adapters[name]()), await serve(await adapters[name]())];
    const [one, two] = pairs[name].map((of) => of.server);
    await untilItWorks(async () => assert.equal((await one.in("room").fetchSockets()).length, 4));
    sent[name] = 0;
    for (let i = 0; i < SENT; i++) send(name);
    await allHeard(name);
    assert.deepEqual(await one.timeout(WORK_MS).emitWithAck("question", 6), [7, 7, 7, 7]);
    assert.deepEqual(await two.serverSideEmitWithAck("hello", "you"), ["hello you"]);
    two.in(pairs[name][0].clients[0].socket.id).socketsJoin("vip"); // a socket of the other server
    await untilItWorks(async () => assert.equal((await two.in("vip").fetchSockets()).length, 1));
  });
}

await report("rate-limit", async () => {
  const limiter = new RateLimiterRedis({ storeClient: await redis(), points: 20, duration: 3600, useRedisPackage: true });
  const results = await Promise.allSettled(Array.from({ length: 30 }, () => limiter.consume("client")));
  assert.equal(results.filter((r) => r.status === "fulfilled").length, 20);
  assert.ok(results.filter((r) => r.status === "rejected").every((r) => r.reason.remainingPoints === 0));
  await limiter.delete("client");
  assert.equal((await limiter.consume("client")).remainingPoints, 19);
});

await report("replace", async () => {
  const limiter = new RateLimiterRedis({ storeClient: await redis(), points: 1e6, duration: 3600, useRedisPackage: true });
  await whileReplaced(async (i) => {
    for (const name of Object.keys(adapters)) send(name);
    assert.equal((await limiter.consume("many")).consumedPoints, i + 1);
  });
  for (const name of Object.keys(adapters)) await allHeard(name);
});
// Pub/sub may lose what is on its way when a node dies or a connection breaks, as at one redis-server. Streams may lose what
// was added in the node's last moments. Nothing is heard twice or out of order. Each request counts once, unless its count
// was lost with the node.
await report("crash", async () => {
  const limiter = new RateLimiterRedis({ storeClient: await redis(), points: 1e6, duration: 3600, useRedisPackage: true });
  const counted = new Map(); // when each count was answered
  process.on("unhandledRejection", () => {}); // the adapter for pub/sub does not look whether it has published
  const twice = [];
  const at = {};
  const first = { ...sent };
  for (const name of Object.keys(adapters)) at[name] = [];
  const killed = await whileCrashed(async () => {
    for (const name of Object.keys(adapters)) {
      at[name].push(Date.now());
      send(name);
    }
    try {
      const { consumedPoints } = await limiter.consume("crash");
      if (counted.has(consumedPoints)) twice.push(counted.get(consumedPoints));
      counted.set(consumedPoints, Date.now());
    } catch {
      // the proxy is away
    }
  });
  for (const name of Object.keys(adapters)) {
    const last = sent[name]; // is heard in the end, by all
    await untilItWorks(() => {
      send(name);
      for (const { heard } of clientsOf(name)) assert.ok(heard.at(-1) >= last);
    }, WORK_MS);
    for (const { heard } of clientsOf(name)) {
      assert.ok(heard.every((n, i) => i === 0 || n > heard[i - 1]), name + ": heard twice or out of order");
    }
    const missed = at[name].filter((_, i) => clientsOf(name).some(({ heard }) => !heard.includes(first[name] + i)));
    console.log(`count ${at[name].length} messages by ${name}: ${missed.length} not heard by all`);
  }
  console.log(`count ${counted.size} requests: ${twice.length} counted twice`);
  assert.deepEqual(twice.filter((when) => !inLastMoments(when, killed)), []);
});
process.exit();
