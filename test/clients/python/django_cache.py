"""Django's own cache backend for Redis: django_cache.py HOST:PORT"""

import sys

import django
import redis
from django.conf import settings
from django.core.cache import cache

from scenario import TTL, expect, expect_ttl, report, restarted, until_it_works

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://" + sys.argv[1],
        }
    }
)

MANY = {f"many{i}": {"number": i} for i in range(100)}


def get_or_set():
    expect("get", cache.get("view"), None)
    expect("get_or_set", cache.get_or_set("view", lambda: ["computed"], TTL), ["computed"])
    expect("get_or_set", cache.get_or_set("view", lambda: ["again"], TTL), ["computed"])
    expect("has_key", "view" in cache, True)
    expect("touch", cache.touch("view", TTL), True)
    expect("touch of a missing key", cache.touch("missing", TTL), False)
    expect("touch for ever", cache.touch("view", None), True)


def many():
    expect("set_many", cache.set_many(MANY, TTL), [])
    expect("get_many", cache.get_many([*MANY, "missing"]), MANY)
    client = redis.Redis.from_url("redis://" + sys.argv[1])
    for key in MANY:  # the backend's own names
        expect_ttl(client.ttl(cache.make_key(key)))
    cache.set_many({"unending": 1, "without-end": 2}, None)
    expect("ttl", client.ttl(cache.make_key("unending")), -1)


def delete():
    expect("delete", cache.delete("view"), True)
    expect("delete again", cache.delete("view"), False)
    cache.delete_many(MANY)
    expect("get_many", cache.get_many(MANY), {})


def rate_limit():
    expect("add", cache.add("limited", 1, TTL), True)
    expect("add again", cache.add("limited", 1, TTL), False)
    expect("incr", cache.incr("limited", 4), 5)
    expect("decr", cache.decr("limited"), 4)
    expect("get", cache.get("limited"), 4)
    try:
        cache.incr("missing")
    except ValueError:
        pass
    else:
        raise AssertionError("incr of a missing key does not raise")


def reconnect():
    restarted()
    until_it_works(lambda: cache.set("after", "restart"), redis.ConnectionError)
    expect("get", cache.get("after"), "restart")


def clear():
    cache.clear()
    expect("get", cache.get("after"), None)


print("version", django.__version__, flush=True)
report("get-or-set", get_or_set)
report("many", many)
report("delete", delete)
report("rate-limit", rate_limit)
report("reconnect", reconnect)
report("clear", clear)
