"""redis-py: redis_sync.py HOST:PORT"""

import sys

import redis

from scenario import Scenario

print("version", redis.__version__, flush=True)
host, port = sys.argv[1].rsplit(":", 1)
client = redis.Redis(host=host, port=int(port))
Scenario(client, "redis-py", redis.ConnectionError).run()
