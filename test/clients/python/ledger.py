"""Which jobs were added, when each ran, and what a crash has done to them."""

import collections
import os
import tempfile
import time

from scenario import WORK_SECONDS, Failure, expect, until_it_works, while_driver

# Seconds before a node's death, and behind it until nobody takes it for alive, from which anything may be
# missing that it has acknowledged.
LAST_MOMENTS = 1
BEHIND = 0.25


def last_moments(at, killed):
    return killed - LAST_MOMENTS < at < killed + BEHIND


def while_crashed(work, pause=0.01):
    """Has the driver kill a node, start another one and restart the proxies, and repeats work(i) until it has done
    so. Returns when the node was killed."""
    return float(while_driver("crash", work, pause)[1])


class Ledger:
    """Workers in other processes write to its file, whose name is in the environment."""

    def __init__(self):
        if "LEDGER" not in os.environ:
            os.environ["LEDGER"] = tempfile.mkstemp()[1]
        self.path = os.environ["LEDGER"]
        self.added = {}  # when the reply about each job came; None if that was an error

    def ran(self, name):
        """Notes that a job begins to run, and returns how often it has."""
        with open(self.path, "a") as file:
            file.write(f"{name} {time.time()}\n")
        return len(self.runs()[name])

    def runs(self):
        """Returns when each job has begun to run."""
        runs = collections.defaultdict(list)
        with open(self.path) as file:
            for line in file:
                name, at = line.split()
                runs[name].append(float(at))
        return runs

    def add(self, name, attempt, errors=()):
        """Adds a job by attempt(name). If that raises one of errors, the job may have been added."""
        self.added[name] = None
        try:
            result = attempt(name)
        except errors:
            return None
        self.added[name] = time.time()
        return result

    def settle(self, killed, twice, popped=0, held=set, patience=WORK_SECONDS):
        """Waits until the jobs have run that must, after a node was killed. Of those that it took in its last
        moments each may be lost. At most so many jobs have run twice, and at most popped were lost with the reply to
        the pop that took them, as with Redis. held returns those that are kept for later. patience is how long, in
        seconds, the others may take."""
        def lost():
            runs, kept = self.runs(), held()
            return [n for n, at in self.added.items() if at and n not in runs and n not in kept]

        def early():
            return [n for n in lost() if not last_moments(self.added[n], killed)]

        try:
            until_it_works(lambda: expect("jobs lost", early(), []), Failure, patience)
        except Failure:
            if len(early()) > popped:
                raise
        again = [n for n, at in self.runs().items() if n in self.added and len(at) > 1]
        refused = sum(at is None for at in self.added.values())
        print(f"count {len(self.added)} jobs: {refused} refused, {len(lost())} lost, {len(again)} twice", flush=True)
        if len(again) > twice:
            raise Failure(f"{len(again)} jobs have run twice")
