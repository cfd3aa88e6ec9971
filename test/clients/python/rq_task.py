"""What rq_jobs.py has RQ's worker do."""

import rq
from rq.defaults import RQ_KEY_PREFIX

RUNS = RQ_KEY_PREFIX + ":runs"


def job(name):
    """Counts that it runs. One of ten jobs fails the first time."""
    runs = rq.get_current_job().connection.hincrby(RUNS, name, 1)
    if name.endswith("7") and runs == 1:
        raise ValueError("once more")
    return name.upper()
