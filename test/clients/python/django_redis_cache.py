"""django-redis, as Django's cache and for its sessions: django_redis_cache.py HOST:PORT[/DATABASE]

set_many is a transaction over several slots, unless the database is pinned.
"""

import collections
import sys
import time

import django
import django_redis
import redis
from django.conf import settings
from django.core.cache import cache
from django_redis.exceptions import ConnectionInterrupted

from ledger import last_moments, while_crashed
from scenario import TTL, expect, expect_ttl, report, while_replaced

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redis://{sys.argv[1]}",
            "OPTIONS": {"COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor"},
        }
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
)
from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402, which needs settings

MANY = {f"many{i}": {"number": i, "text": "compressed " * 10} for i in range(100)}


def get_or_set():
    expect("get_or_set", cache.get_or_set("view", lambda: ["computed"], TTL), ["computed"])
    expect("get_or_set", cache.get_or_set("view", lambda: ["again"], TTL), ["computed"])
    expect_ttl(cache.ttl("view"))
    expect("persist", cache.persist("view"), True)
    expect("ttl", cache.ttl("view"), None)
    expect("add", [cache.add("added", 1, TTL), cache.add("added", 2, TTL)], [True, False])
    expect("incr", cache.incr("added", 4), 5)
    expect("incr_version", cache.incr_version("view"), 2)
    expect("get", [cache.get("view"), cache.get("view", version=2)], [None, ["computed"]])


def many():
    cache.set_many(MANY, TTL)
    expect("get_many", cache.get_many([*MANY, "missing"]), MANY)


def patterns():
    expect("keys", set(cache.keys("many1*")), {"many1", *(f"many1{i}" for i in range(10))})
    expect("iter_keys", set(cache.iter_keys("many*")), set(MANY))
    expect("delete_pattern", cache.delete_pattern("many2*"), 11)
    expect("delete_many", cache.delete_many(MANY), 89)


def lock():
    with cache.lock("lock", timeout=TTL):
        expect("a second lock", cache.lock("lock", timeout=TTL).acquire(blocking=False), False)
    expect("the lock", cache.get("lock"), None)


def session():
    first = SessionStore()
    first["user"] = "Ada"
    first.set_expiry(TTL)
    first.save()
    again = SessionStore(first.session_key)
    expect("session", again["user"], "Ada")
    expect_ttl(cache.ttl(again.cache_key))
    again.cycle_key()
    expect("the old session", SessionStore().exists(first.session_key), False)
    again.flush()
    expect("the session", SessionStore(again.session_key).get("user"), None)


def replace():
    sessions = []

    def visit(i):
        cache.set_many({f"page{i}": i, f"view{i}": i}, TTL)
        expect("incr", cache.incr("visits"), i + 1)
        s = SessionStore(sessions[i % 10].session_key if len(sessions) == 10 else None)
        s["visits"] = s.get("visits", 0) + 1
        s.save()
        if len(sessions) < 10:
            sessions.append(s)

    cache.set("visits", 0)
    n = while_replaced(visit)
    expect("visits", sum(SessionStore(s.session_key)["visits"] for s in sessions), n)
    want = {f"{name}{i}": i for i in range(n) for name in ("page", "view")}
    expect("get_many", cache.get_many(want), want)


def crash():
    """Values and sessions are there, but those of a node's last moments. Each count comes once."""
    written, saved, counted, refused = {}, {}, collections.defaultdict(list), []

    def attempt(run):
        try:
            return run()
        except (ConnectionInterrupted, redis.RedisError) as e:
            refused.append(e)

    def write(i):
        cache.set(f"crash{i}", i, 10 * TTL)
        written[f"crash{i}"] = time.time()

    def visit():
        s = SessionStore()
        s["visits"] = 1
        s.save()
        saved[s.session_key] = time.time()

    def work(i):
        attempt(lambda: write(i))
        attempt(visit)
        attempt(lambda: counted[cache.incr("crashes")].append(time.time()))

    cache.set("crashes", 0, None)
    killed = while_crashed(work)
    kept = cache.get_many(written)
    gone = [at for name, at in written.items() if name not in kept]
    gone += [at for name, at in saved.items() if SessionStore(name).get("visits") != 1]
    twice = [at[0] for at in counted.values() if len(at) > 1]
    print(f"count {len(written)} values, {len(saved)} sessions, {len(counted)} counts: {len(refused)} refused, "
          f"{len(gone)} lost, {len(twice)} counted twice", flush=True)
    expect("lost or counted twice", [at for at in gone + twice if not last_moments(at, killed)], [])


django.setup()
print("version", django_redis.__version__, flush=True)
report("get-or-set", get_or_set)
report("many", many)
report("patterns", patterns)
report("lock", lock)
report("session", session)
report("replace", replace)
report("crash", crash)
