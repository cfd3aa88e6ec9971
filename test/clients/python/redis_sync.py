"""redis-py: redis_sync.py HOST:PORT"""

import sys

import redis
from redis.cache import CacheConfig

from scenario import Scenario

print("version", redis.__version__, flush=True)
host, port = sys.argv[1].rsplit(":", 1)
client, other = (redis.Redis(host=host, port=int(port)) for _ in range(2))
caching = redis.Redis(host=host, port=int(port), protocol=3, cache_config=CacheConfig())
Scenario(client, other, "redis-py", redis.ConnectionError, caching, redis.RedisCluster).run()
