"""redis-py's Sentinel client: redis_sentinel.py HOST:PORT, of the sentinel"""

import sys

import redis
from redis.sentinel import Sentinel

from scenario import Scenario

print("version", redis.__version__, flush=True)
host, port = sys.argv[1].rsplit(":", 1)
sentinel = Sentinel([(host, int(port))])
client, other = (sentinel.master_for("mymaster") for _ in range(2))
# Without a client-side cache: this library's connections through Sentinel ignore cache_config.
Scenario(client, other, "redis-py-sentinel", redis.ConnectionError).run()
