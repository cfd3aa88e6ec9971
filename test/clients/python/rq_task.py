"""What rq_jobs.py has RQ's worker do."""

from ledger import Ledger

ledger = Ledger()


def job(name):
    """Notes that it runs. One of ten jobs fails the first time."""
    if ledger.ran(name) == 1 and name.endswith("7") and not name.startswith("crash"):
        raise ValueError("once more")
    return name.upper()
