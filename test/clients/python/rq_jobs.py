"""RQ: rq_jobs.py HOST:PORT/DATABASE

The database is pinned: transactions behind WATCH, and scripts, have keys of several slots.
"""

import datetime
import os
import sys

import redis
import rq
import rq.command

from ledger import while_crashed
from rq_task import ledger
from scenario import WORK_SECONDS, Failure, Supervised, expect, report, until_it_works, while_replaced

url = "redis://" + sys.argv[1]
client = redis.Redis.from_url(url)
queue = rq.Queue("jobs", connection=client)
EVENTS = 3  # by which a job may run twice: a node dies, and two proxies restart
added = []
worker = None


def add(name):
    queue.enqueue("rq_task.job", name, retry=rq.Retry(max=1))
    added.append(name)


def all_finished():
    """Waits until all jobs have finished, and each has run as often as it should."""
    until_it_works(check, Failure, WORK_SECONDS)


def check():
    expect("finished", queue.finished_job_registry.get_job_count(cleanup=False), len(added))
    for what in (queue, queue.started_job_registry, queue.failed_job_registry, queue.intermediate_queue):
        expect(repr(what), what.get_job_ids(), [])
    want = {name: 2 if name.endswith("7") else 1 for name in added}
    expect("runs", {name: len(at) for name, at in ledger.runs().items()}, want)


def jobs():
    for i in range(20):
        add(f"plain{i}")
    queue.enqueue_in(datetime.timedelta(milliseconds=100), "rq_task.job", "later")
    added.append("later")
    expect("waiting", queue.count, 20)
    global worker
    worker = Supervised(sys.executable, "-m", "rq.cli", "worker", "--with-scheduler", "--quiet",
                        "--path", os.path.dirname(__file__), "--url", url, queue.name)
    all_finished()


def dependency():
    first = queue.enqueue("rq_task.job", "first")
    second = queue.enqueue("rq_task.job", "second", depends_on=first)
    added.extend(["first", "second"])
    all_finished()
    expect("result", second.latest_result().return_value, "SECOND")


def replace():
    def few_wait():
        expect("few jobs wait", queue.count < 5, True)

    def work(i):
        until_it_works(few_wait, Failure, WORK_SECONDS)  # each job is a process
        add(f"meanwhile{i}")

    while_replaced(work, pause=0.05)
    all_finished()


def crash():
    def few_wait():
        expect("few jobs wait", queue.count < 5, True)

    def work(i):
        until_it_works(few_wait, (Failure, redis.RedisError), WORK_SECONDS)
        ledger.add(f"crash{i}", lambda name: queue.enqueue("rq_task.job", name, job_id=name), redis.RedisError)

    killed = while_crashed(work, pause=0.05)
    ledger.settle(killed, EVENTS, held=held)


def held():
    """Returns the jobs of workers that have died meanwhile, which RQ's maintenance finds after minutes."""
    return {i for of in (queue.intermediate_queue, queue.started_job_registry, queue.failed_job_registry)
            for i in of.get_job_ids()}


def stop():
    worker.expected = True
    for there in rq.Worker.all(client):  # those that have died are among them
        rq.command.send_shutdown_command(client, there.name)
    expect("exit code", worker.wait(WORK_SECONDS), 0)


def scripts():
    """Scripts of several keys, some of which they do not declare."""
    queue.enqueue("rq_task.job", "one", job_id="one", unique=True)
    try:
        queue.enqueue("rq_task.job", "one", job_id="one", unique=True)
    except rq.exceptions.DuplicateJobError:
        pass
    else:
        raise Failure("a second job with the same ID is accepted")
    expect("empty", queue.empty(), 1)
    expect("the job", rq.job.Job.exists("one", client), False)


print("version", rq.__version__, flush=True)
report("queue", jobs)
report("dependency", dependency)
report("replace", replace)
report("crash", crash)
report("stop", stop)
report("scripts", scripts)
