"""redis-py's Lock, which works by scripts: redis_lock.py HOST:PORT"""

import sys

import redis
from redis.exceptions import LockNotOwnedError

from scenario import TTL, Failure, expect, expect_ttl, report, restarted, until_it_works

host, port = sys.argv[1].rsplit(":", 1)
client = redis.Redis(host=host, port=int(port))


def lock():
    first = client.lock("redis-py:lock", timeout=TTL)
    second = client.lock("redis-py:lock", timeout=TTL, blocking=False)
    expect("acquire", first.acquire(), True)
    expect("acquire by another", second.acquire(), False)
    expect("extend", first.extend(TTL, replace_ttl=True), True)
    expect("reacquire", first.reacquire(), True)
    expect_ttl(client.ttl("redis-py:lock"))
    token, first.local.token = first.local.token, b"not mine"
    for what in (first.release, lambda: first.extend(1), first.reacquire):
        first.local.token = b"not mine"
        try:
            what()
        except LockNotOwnedError:
            pass
        else:
            raise Failure("the lock of another is changed")
    first.local.token = token
    first.release()
    expect("acquire again", second.acquire(), True)
    second.release()


def reconnect():
    held = client.lock("redis-py:held", timeout=TTL)
    held.acquire()
    restarted()
    until_it_works(held.reacquire, redis.ConnectionError)
    held.release()
    expect("lock", client.get("redis-py:held"), None)


print("version", redis.__version__, flush=True)
report("lock", lock)
report("reconnect", reconnect)
