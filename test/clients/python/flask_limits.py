"""Flask-Limiter, whose strategies are scripts: flask_limits.py HOST:PORT/DATABASE

The database is pinned: reset is a script that deletes keys of several slots.
"""

import importlib.metadata
import sys
import time

import flask
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from ledger import last_moments, while_crashed
from scenario import expect, report, while_replaced

MANY = 100_000  # requests in an hour


def client_of(strategy, **options):
    """Returns a client of an application with two pages, and its limiter."""
    app = flask.Flask(strategy)
    limiter = Limiter(get_remote_address, app=app, storage_uri="redis://" + sys.argv[1], strategy=strategy,
                      key_prefix=strategy, headers_enabled=True, **options)

    @app.get("/few")
    @limiter.limit("5 per hour")
    def few():
        return "few"

    @app.get("/many")
    @limiter.limit(f"{MANY} per hour")
    def many():
        return "many"

    return app.test_client(), limiter


def remaining(response):
    expect("status", response.status_code, 200)
    return int(response.headers["X-RateLimit-Remaining"])


def limit(strategy):
    client, _ = client_of(strategy)
    expect("status", [client.get("/few").status_code for _ in range(7)], 5 * [200] + 2 * [429])
    expect("another page", remaining(client.get("/many")), MANY - 1)


def reset():
    """A script deletes all keys of the storage."""
    client, limiter = client_of("fixed-window", storage_options={"key_prefix": "other"})
    expect("another storage", remaining(client.get("/many")), MANY - 1)
    limiter.reset()
    expect("requests left", remaining(client.get("/many")), MANY - 1)


def replace():
    """Each request counts, once. The steps before have made one."""
    clients = {strategy: client_of(strategy)[0] for strategy in STRATEGIES}

    def request(i):
        for strategy, client in clients.items():
            expect(strategy, remaining(client.get("/many")), MANY - 2 - i)

    while_replaced(request)


def crash():
    """No request counts for nothing, unless its count was lost with a node."""
    clients = {strategy: client_of(strategy)[0] for strategy in STRATEGIES}
    left = {strategy: {} for strategy in STRATEGIES}  # when each number of requests left was answered
    twice, refused = [], []

    def request(i):
        for strategy, client in clients.items():
            response = client.get("/many")
            n = response.headers.get("X-RateLimit-Remaining")
            if response.status_code != 200 or n is None:
                refused.append(response.status)
                continue
            if n in left[strategy]:
                twice.append(left[strategy][n])
            left[strategy][n] = time.time()

    killed = while_crashed(request)
    print(f"count {sum(map(len, left.values()))} requests: {len(refused)} refused, {len(twice)} counted twice",
          flush=True)
    expect("counted twice", [at for at in twice if not last_moments(at, killed)], [])


STRATEGIES = ["fixed-window", "moving-window", "sliding-window-counter"]
print("version", importlib.metadata.version("flask-limiter"), flush=True)
for s in STRATEGIES:
    report(s, lambda: limit(s))
report("reset", reset)
report("replace", replace)
report("crash", crash)
