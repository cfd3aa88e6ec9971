"""What celery_jobs.py has Celery's worker do. The addresses are in Celery's own environment variables."""

import os

import redis
from celery import Celery

RUNS = "celery-runs"

app = Celery("tasks")
client = redis.Redis.from_url(os.environ["CELERY_BROKER_URL"])


@app.task(bind=True, max_retries=1, default_retry_delay=0)
def upper(self, name):
    """Counts that it runs. One of ten tasks fails the first time."""
    runs = client.hincrby(RUNS, name, 1)
    if name.endswith("7") and runs == 1:
        raise self.retry()
    return name.upper()


@app.task
def join(names):
    return "".join(names)
