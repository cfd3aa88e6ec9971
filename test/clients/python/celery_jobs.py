"""Celery with Redis as the broker and for results: celery_jobs.py HOST:PORT/DATABASE

The database is pinned: transactions have keys of several slots.
"""

import os
import sys

url = f"redis://{sys.argv[1]}"
os.environ |= {"CELERY_BROKER_URL": url, "CELERY_RESULT_BACKEND": url}

import celery  # noqa: E402
import redis  # noqa: E402

from celery_tasks import app, join, ledger, upper  # noqa: E402
from ledger import while_crashed  # noqa: E402
from scenario import WORK_SECONDS, Failure, Supervised, expect, report, until_it_works, while_replaced  # noqa: E402

CONCURRENCY = 2
PREFETCHED = 4 * CONCURRENCY
EVENTS = 3  # by which tasks may run twice: a node dies, and two proxies restart
ERRORS = (redis.RedisError, celery.exceptions.OperationalError)
client = redis.Redis.from_url(url)
added = []
worker = None


def add(name, **options):
    added.append(name)
    return upper.apply_async((name,), **options)


def runs():
    return {name: len(at) for name, at in ledger.runs().items()}


def expect_results(results):
    """Waits for all results, and checks that each task has run as often as it should."""
    got = [r.get(timeout=WORK_SECONDS) for r in results]
    expect("results", got, [name.upper() for name in added[-len(results):]])
    expect("runs", runs(), {name: 2 if name.endswith("7") else 1 for name in added})


def queue():
    results = [add(f"plain{i}") for i in range(30)]
    results += [add(f"urgent{i}", priority=i) for i in range(10)]
    results += [add(f"later{i}", countdown=0.5) for i in range(10)]
    global worker
    worker = Supervised(sys.executable, "-m", "celery", "--app", "celery_tasks", "--workdir", os.path.dirname(__file__),
                        "worker", "--concurrency", str(CONCURRENCY))
    expect_results(results)


def chord():
    """One task runs with the results of several others."""
    names = ["a", "b", "c"]
    added.extend(names)
    result = celery.chord(upper.s(n) for n in names)(join.s())
    expect("chord", result.get(timeout=WORK_SECONDS), "ABC")


def control():
    """Questions to all workers, which go by pub/sub."""
    [[name, pong]] = app.control.inspect(limit=1).ping().items()
    expect("ping", pong, {"ok": "pong"})
    total = app.control.inspect([name], limit=1).stats()[name]["total"]
    expect("tasks", total, {"celery_tasks.upper": sum(runs().values()), "celery_tasks.join": 1})


def replace():
    results = []
    while_replaced(lambda i: results.append(add(f"meanwhile{i}")), pause=0.05)
    expect_results(results)


def crash():
    def work(i):
        ledger.add(f"crash{i}", lambda name: upper.apply_async((name,), ignore_result=True), ERRORS)

    killed = while_crashed(work, pause=0.05)
    ledger.settle(killed, EVENTS * (CONCURRENCY + PREFETCHED), popped=EVENTS)

    def none_left():
        expect("what is left", client.exists("unacked", "unacked_index", "celery"), 0)

    until_it_works(none_left, Failure, WORK_SECONDS)


def stop():
    worker.expected = True
    app.control.shutdown()
    expect("exit code", worker.wait(WORK_SECONDS), 0)
    unacknowledged = client.exists("unacked", "unacked_index", "celery")
    expect("what is left", unacknowledged, 0)


print("version", celery.__version__, flush=True)
report("queue", queue)
report("chord", chord)
report("control", control)
report("replace", replace)
report("crash", crash)
report("stop", stop)
