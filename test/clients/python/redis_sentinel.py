"""redis-py's Sentinel client: redis_sentinel.py HOST:PORT, of the sentinel"""

import sys

import redis
from redis.sentinel import Sentinel

from scenario import Scenario

print("version", redis.__version__, flush=True)
host, port = sys.argv[1].rsplit(":", 1)
client = Sentinel([(host, int(port))]).master_for("mymaster")
Scenario(client, "redis-py-sentinel", redis.ConnectionError).run()
