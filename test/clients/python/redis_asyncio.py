"""redis-py's asyncio client: redis_asyncio.py HOST:PORT

The scenario calls it as it calls the synchronous one: each call runs the event
loop until its result is there.
"""

import asyncio
import inspect
import sys

import redis
import redis.asyncio

from scenario import Scenario

loop = asyncio.new_event_loop()


class Awaited:
    """Makes an object's coroutines plain calls, of what they return too."""

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        member = getattr(self._target, name)

        def call(*args, **kwargs):
            result = member(*args, **kwargs)
            if inspect.isasyncgen(result):
                result = collect(result)
            if asyncio.iscoroutine(result) or asyncio.isfuture(result):
                result = loop.run_until_complete(result)
            if isinstance(result, (redis.asyncio.client.Pipeline, redis.asyncio.client.PubSub)):
                return Awaited(result)
            return result

        return call

    def __enter__(self):
        return self

    def __exit__(self, *_):
        loop.run_until_complete(self._target.aclose())


async def collect(items):
    return [item async for item in items]


print("version", redis.__version__, flush=True)
host, port = sys.argv[1].rsplit(":", 1)
client = redis.asyncio.Redis(host=host, port=int(port))
other = redis.Redis(host=host, port=int(port))  # for threads, which have no event loop
Scenario(Awaited(client), other, "redis-py-asyncio", redis.ConnectionError).run()
