"""What celery_jobs.py has Celery's worker do. The addresses are in Celery's own environment variables."""

from celery import Celery

from ledger import Ledger

app = Celery("tasks")
# After a crash, unacknowledged messages are delivered again: with the defaults after an hour.
app.conf.broker_transport_options = {
    "visibility_timeout": 8, "unacked_restore_interval": 2, "unacked_restore_throttle": 1, "unacked_mutex_expire": 8,
}
ledger = Ledger()


@app.task(bind=True, max_retries=1, default_retry_delay=0)
def upper(self, name):
    """Notes that it runs. One of ten tasks fails the first time."""
    if ledger.ran(name) == 1 and name.endswith("7") and not name.startswith("crash"):
        raise self.retry()
    return name.upper()


@app.task
def join(names):
    return "".join(names)
