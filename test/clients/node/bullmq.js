// BullMQ: node bullmq.js HOST:PORT[/DATABASE]. Its scripts use keys that have one tag, the prefix's, unless the
// database is pinned.

import assert from "node:assert/strict";
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import { inLastMoments, printVersion, report, untilItWorks, whileCrashed, whileReplaced, WORK_MS } from "./scenario.js";

const CONCURRENCY = 4;
const EVENTS = 3; // by which jobs may run twice: a node dies, and two proxies restart

printVersion("bullmq");
const [host, port, db] = process.argv[2].split(/[:/]/);
const connection = { host, port: Number(port), db: Number(db ?? 0) };
const options = db ? { connection } : { connection, prefix: "{bull}" };
const queue = new Queue("mail", options);
const events = new QueueEvents("mail", options);
const flows = new FlowProducer(options);

// How often each job has run. One of ten fails the first time.
const runs = new Map();
async function work(job) {
  const { name } = job.data;
  runs.set(name, (runs.get(name) ?? 0) + 1);
  if (name.endsWith("7") && job.attemptsMade === 0) throw new Error("once more");
  return name;
}

let worker;
const job = (name, opts = {}) => ({ name: "send", data: { name }, opts: { attempts: 2, ...opts } });

/** Waits until n jobs are complete, and checks that each ran once, or twice if its first run failed. */
async function allComplete(n) {
  await untilItWorks(async () => assert.equal(await queue.getCompletedCount(), n), WORK_MS);
  const { waiting, active, delayed, failed, prioritized } = await queue.getJobCounts();
  assert.deepEqual([waiting, active, delayed, failed, prioritized], [0, 0, 0, 0, 0]);
  const others = [...runs].filter(([name, times]) => times !== (name.endsWith("7") ? 2 : 1));
  assert.deepEqual(others, []);
  assert.equal(runs.size, n);
}

let added = 0;

await report("queue", async () => {
  const jobs = [];
  for (let i = 0; i < 60; i++) jobs.push(job("plain" + i));
  for (let i = 0; i < 20; i++) jobs.push(job("urgent" + i, { priority: 1 + (i % 3) }));
  for (let i = 0; i < 20; i++) jobs.push(job("later" + i, { delay: 300 }));
  await queue.addBulk(jobs);
  assert.equal(await queue.count(), 100);
  worker = new Worker("mail", work, { ...options, concurrency: CONCURRENCY, lockDuration: 2000, stalledInterval: 1000 });
  await events.waitUntilReady();
  const { name, data, opts } = job("awaited");
  assert.equal(await (await queue.add(name, data, opts)).waitUntilFinished(events), "awaited");
  await allComplete((added = 101));
});

await report("flow", async () => {
  const children = [1, 2, 3].map((i) => ({ queueName: "mail", ...job("child" + i) }));
  const tree = await flows.add({ queueName: "mail", ...job("parent"), children });
  assert.equal(await tree.job.waitUntilFinished(events), "parent");
  const results = Object.values(await tree.job.getChildrenValues());
  assert.deepEqual(results.sort(), ["child1", "child2", "child3"]);
  await allComplete((added += 4));
});

await report("replace", async () => {
  added += await whileReplaced(async (i) => {
    const { name, data, opts } = job("meanwhile" + i);
    await queue.add(name, data, opts);
  });
  await allComplete(added);
});

await report("crash", async () => {
  for (const one of [queue, worker, events, flows]) one.on("error", () => {});
  const at = new Map(); // when each job was acknowledged
  let refused = 0;
  const killed = await whileCrashed(async (i) => {
    const { name, data, opts } = job("crash-" + i + "-");
    try {
      await queue.add(name, data, opts);
      at.set(data.name, Date.now());
    } catch {
      refused++;
    }
  });
  const lost = () => [...at.keys()].filter((name) => !runs.has(name));
  await untilItWorks(() => assert.deepEqual(lost().filter((name) => !inLastMoments(at.get(name), killed)), []), WORK_MS);
  await untilItWorks(async () => {
    const { waiting, active, delayed } = await queue.getJobCounts();
    assert.deepEqual([waiting, active, delayed], [0, 0, 0]);
  }, WORK_MS);
  const twice = [...runs].filter(([name, times]) => name.startsWith("crash") && times > 1);
  console.log(`count ${at.size + refused} jobs: ${refused} refused, ${lost().length} lost, ${twice.length} twice`);
  assert.ok(twice.length <= EVENTS * CONCURRENCY, `${twice.length} jobs have run twice`);
});

await report("clear", async () => {
  await worker.close();
  await queue.obliterate();
  assert.equal(await queue.getCompletedCount(), 0);
});
process.exit();
