"""Dramatiq with results and a rate limit: dramatiq_actors.py HOST:PORT/DATABASE

The database is pinned: a script has keys of several slots.
"""

import collections
import importlib.metadata
import sys
import threading

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits import ConcurrentRateLimiter
from dramatiq.rate_limits.backends import RedisBackend as LimitBackend
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend as ResultBackend

from ledger import Ledger, while_crashed
from scenario import WORK_SECONDS, Failure, expect, report, until_it_works, while_replaced

THREADS = 4
PREFETCHED = 2 * THREADS
EVENTS = 3  # by which messages may run twice: a node dies, and two proxies restart
url = "redis://" + sys.argv[1]
broker = RedisBroker(url=url)
broker.add_middleware(Results(backend=ResultBackend(url=url)))
dramatiq.set_broker(broker)
worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=THREADS)

sent = []
runs = collections.Counter()
lock = threading.Lock()


@dramatiq.actor(store_results=True, max_retries=1, min_backoff=1, max_backoff=1)
def upper(name):
    """Counts that it runs. One of ten messages fails the first time."""
    with lock:
        runs[name] += 1
    if name.endswith("7") and runs[name] == 1:
        raise ValueError("once more")
    return name.upper()


ledger = Ledger()


@dramatiq.actor(max_retries=10, min_backoff=100, max_backoff=100)
def note(name):
    ledger.ran(name)


def send(name, **options):
    sent.append(name)
    return upper.send_with_options(args=(name,), **options)


def expect_results(messages):
    """Waits for all results, and checks that each message was processed as often as it should."""
    got = [m.get_result(block=True, timeout=WORK_SECONDS * 1000) for m in messages]
    expect("results", got, [name.upper() for name in sent[-len(messages):]])
    broker.join(upper.queue_name, timeout=WORK_SECONDS * 1000)
    expect("runs", runs, {name: 2 if name.endswith("7") else 1 for name in sent})


def queue():
    messages = [send(f"plain{i}") for i in range(50)]
    messages += [send(f"later{i}", delay=300) for i in range(10)]
    worker.start()
    expect_results(messages)


def group():
    members = [f"g{i}" for i in range(5)]
    sent.extend(members)
    together = dramatiq.group(upper.message(name) for name in members).run()
    got = list(together.get_results(block=True, timeout=WORK_SECONDS * 1000))
    expect("results", got, [name.upper() for name in members])


def limit():
    limiter = ConcurrentRateLimiter(LimitBackend(url=url), "dramatiq-limit", limit=1)
    with limiter.acquire(raise_on_failure=False) as first:
        with limiter.acquire(raise_on_failure=False) as second:
            expect("acquired", [first, second], [True, False])


def replace():
    messages = []
    while_replaced(lambda i: messages.append(send(f"meanwhile{i}")), pause=0.02)
    expect_results(messages)


def crash():
    """Behind the crash the worker ends, and another one gets what was on its way to it."""
    def work(i):
        ledger.add(f"crash{i}", note.send, (redis.RedisError, dramatiq.errors.ConnectionError))

    killed = while_crashed(work, pause=0.02)
    worker.stop()
    heir = RedisBroker(url=url, heartbeat_timeout=1000, maintenance_chance=1_000_000)
    for actor in (upper, note):
        heir.declare_actor(actor)
    second = dramatiq.Worker(heir, worker_timeout=100, worker_threads=THREADS)
    second.start()
    ledger.settle(killed, EVENTS * (THREADS + PREFETCHED))

    def none_left():
        expect("messages left", heir.client.hlen("dramatiq:default.msgs"), 0)

    until_it_works(none_left, Failure, WORK_SECONDS)
    second.stop()


def maintenance():
    """A worker is gone with a message. The broker's maintenance gives it to another one."""
    gone = RedisBroker(url=url)
    gone.declare_queue("default")
    send("left")
    expect("message", next(gone.consume("default", timeout=1000)).args, ("left",))
    heir = RedisBroker(url=url, heartbeat_timeout=0, maintenance_chance=1_000_000)
    heir.declare_queue("default")
    expect("message", next(heir.consume("default", timeout=1000)).args, ("left",))


def clear():
    broker.flush_all()
    expect("messages", broker.do_qsize("default"), 0)


print("version", importlib.metadata.version("dramatiq"), flush=True)
report("queue", queue)
report("group", group)
report("rate-limit", limit)
report("replace", replace)
report("crash", crash)
report("maintenance", maintenance)
report("clear", clear)
