"""huey's queue, Channels' layer and aiocache, each in its own way: huey_channels.py HOST:PORT/DATABASE

The database is pinned: the layer's scripts have keys of several slots.
"""

import asyncio
import collections
import importlib.metadata
import sys
import threading

import aiocache
import channels_redis.core
import huey
import redis

from ledger import Ledger, while_crashed
from scenario import TTL, WORK_SECONDS, Failure, expect, report, until_it_works, while_replaced

SENT = 50  # messages to a group
WORKERS = 2
TO_END = 5  # seconds for the tasks that workers have
EVENTS = 3  # by which a worker's task may be lost, or run twice: a node dies, two proxies restart
url = "redis://" + sys.argv[1]
address, database = sys.argv[1].split("/")
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def wait(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(WORK_SECONDS)


tasks = huey.PriorityRedisHuey("jobs", url=url)
runs = collections.Counter()
lock = threading.Lock()
added = []


@tasks.task(retries=1)
def upper(name):
    """Counts that it runs. One of ten tasks fails the first time."""
    with lock:
        runs[name] += 1
    if name.endswith("7") and runs[name] == 1:
        raise ValueError("once more")
    return name.upper()


ledger = Ledger()


@tasks.task()
def note(name):
    ledger.ran(name)


def add(name, **options):
    added.append(name)
    return upper.schedule((name,), **options) if options else upper(name)


def expect_results(results):
    """Waits for all results, and checks that each task has run as often as it should."""
    for name, result in zip(added[-len(results):], results):
        while True:
            try:
                got = result.get(blocking=True, timeout=WORK_SECONDS, backoff=1, max_delay=0.02)
                expect("result", got, name.upper())
                break
            except huey.exceptions.TaskException:
                result.reset()  # of the first run
    expect("runs", runs, {name: 2 if name.endswith("7") else 1 for name in added})
    expect("pending", len(tasks), 0)


def queue():
    results = [add(f"plain{i}") for i in range(40)]
    results += [add(f"later{i}", delay=1) for i in range(5)]
    expect("scheduled", tasks.scheduled_count() + tasks.pending_count(), 45)
    tasks.create_consumer(workers=WORKERS, initial_delay=0.01, max_delay=0.05, scheduler_interval=1).start()
    expect_results(results)


# Two layers stand for two processes. Each receiver notes what it gets.
# They wait for 5 s, after which redis-py 8 would give up.
HOST = {"address": url, "socket_timeout": 20}
layers = [channels_redis.core.RedisChannelLayer(hosts=[HOST]) for _ in range(2)]
received = []
receivers = []


async def receive(layer):
    channel = await layer.new_channel()
    await layer.group_add("room", channel)
    got = []
    received.append(got)

    async def go_on():
        while True:
            got.append((await layer.receive(channel))["n"])

    receivers.append(asyncio.ensure_future(go_on()))


def all_received(n):
    def check():
        for receiver in receivers:
            if receiver.done():
                receiver.result()  # raises
        expect("received", [len(got) for got in received], [n] * len(received))

    until_it_works(check, Failure, WORK_SECONDS)
    expect("messages", received, [list(range(n))] * len(received))


def send(n):
    wait(layers[0].group_send("room", {"type": "news", "n": n}))


def group():
    for layer in 2 * layers:
        wait(receive(layer))
    for i in range(SENT):
        send(i)
    all_received(SENT)


cache = aiocache.RedisCache(endpoint=address.split(":")[0], port=int(address.split(":")[1]), db=int(database))


def cached():
    many = {f"aio{i}": i for i in range(50)}
    wait(cache.multi_set(list(many.items()), ttl=TTL))
    expect("multi_get", wait(cache.multi_get([*many, "missing"])), [*many.values(), None])
    expect("add", wait(cache.add("added", 1, ttl=TTL)), True)
    try:
        wait(cache.add("added", 2))
    except ValueError:
        pass
    else:
        raise Failure("add of a key that is there does not raise")
    expect("increment", wait(cache.increment("added", 4)), 5)
    expect("delete", wait(cache.delete("added")), 1)
    inside = []

    async def alone(i):
        async with aiocache.lock.RedLock(cache, "lock", lease=TTL):
            if await cache.get("computed") is None:
                await cache.set("computed", str(i))
                inside.append(i)

    async def stampede():
        await asyncio.gather(*(alone(i) for i in range(5)))

    wait(stampede())
    expect("computed", len(inside), 1)


def replace():
    results = []

    def work(i):
        if i % 4 == 0:
            results.append(add(f"meanwhile{i}"))
        send(SENT + i)
        expect("increment", wait(cache.increment("visits")), i + 1)

    n = while_replaced(work)
    expect_results(results)
    all_received(SENT + n)
    for receiver in receivers:  # each ends with its connection
        loop.call_soon_threadsafe(receiver.cancel)


def crash():
    """huey's workers pop their tasks. One that is in a reply is lost with the connection."""
    def work(i):
        ledger.add(f"crash{i}", note, redis.RedisError)

    killed = while_crashed(work, pause=0.02)
    until_it_works(lambda: expect("pending", len(tasks), 0), Failure, WORK_SECONDS)
    ledger.settle(killed, EVENTS * WORKERS, popped=EVENTS * WORKERS, patience=TO_END)


versions = [importlib.metadata.version(name) for name in ("huey", "channels-redis", "aiocache")]
print("version", ", ".join(versions), flush=True)
report("queue", queue)
report("group", group)
report("cache", cached)
report("replace", replace)
report("crash", crash)
