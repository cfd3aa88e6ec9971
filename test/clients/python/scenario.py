"""The scenario of ../README.md, for a client of redis-py's interface, and the
result protocol, for all programs here."""

import ctypes
import signal
import subprocess
import sys
import threading
import time

TTL = 100
SENT = 20  # messages
CLUSTERED = 4  # channels, of several nodes
HEARD_SECONDS = 10
SHORTLY = 0.1  # seconds until a pop of an empty list gives up
LONG = 10  # seconds for what is pushed
PIPELINED = 500  # SETs, and as many GETs
WALKED = 300  # fields, and members
RECONNECT_SECONDS = 20
WORK_SECONDS = 60  # for what workers do that start first, on a busy machine


class Failure(Exception):
    """A step's reply was not the one expected."""


def expect(what, got, want):
    if got != want:
        raise Failure(f"{what} gives {got!r:.200}, want {want!r:.200}")


def expect_ttl(got):
    if not 0 < got <= TTL:
        raise Failure(f"TTL is {got}")


def report(step, run):
    """Runs one step and prints its line."""
    try:
        run()
    except Exception as e:  # whatever a library raises, the step has failed
        print(f"FAIL {step}: {type(e).__name__}: {e}".replace("\n", " "), flush=True)
    else:
        print(f"ok {step}", flush=True)


def restarted(how="restart"):
    """Has the driver restart the proxy, and returns when it has done so. "kill" is the
    other way."""
    ask(how)


def ask(word):
    """Returns the driver's answer."""
    print(word, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise Failure("the driver is gone")
    return line.strip()


def while_driver(word, work, pause):
    """Has the driver do what word says, and repeats work(i) until it has done so. Returns how often, and the
    driver's last words."""
    restarted(word)  # it begins
    done, words = threading.Event(), []
    threading.Thread(target=lambda: (words.append(sys.stdin.readline()), done.set()), daemon=True).start()
    i = 0
    while True:
        work(i)
        i += 1
        if done.wait(pause):
            return i, words[0]


def while_replaced(work, pause=0.01):
    """Has the driver replace the cluster's nodes, and repeats work(i) until it has done so.
    Returns how often."""
    return while_driver("replace", work, pause)[0]


def start(*command):
    """Starts a process that is killed when this one ends. What it prints goes to the driver, as problems."""
    libc = ctypes.CDLL(None)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr,
                            preexec_fn=lambda: libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG


class Supervised:
    """A process that is started again whenever it ends, as by systemd, unless it is expected to end."""

    def __init__(self, *command):
        self.code, self.expected = None, False
        self.thread = threading.Thread(target=self.run, args=command, daemon=True)
        self.thread.start()

    def run(self, *command):
        while not self.expected:
            self.code = start(*command).wait()

    def wait(self, seconds):
        """Waits until the process has ended, and returns its exit code."""
        self.thread.join(seconds)
        return self.code


def until_it_works(attempt, errors, seconds=RECONNECT_SECONDS):
    """Repeats attempt while it raises one of errors, which a library may do until
    the proxy is back."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except errors:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class Pushed:
    """Pushes in a thread of its own, as soon as a client is blocked."""

    def __init__(self, client, push):
        self.client, self.push, self.failure = client, push, None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            until_it_works(lambda: expect("blocked", self.client.info("clients")["blocked_clients"], 1), Failure)
            self.push()
        except Exception as e:
            self.failure = e

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.thread.join()
        if self.failure:
            raise self.failure


class Scenario:
    """client is what goes through the steps, other a client with connections of its own, and caching, if the library
    has it, one with a client-side cache. cluster makes a client of a cluster. Threads call other, and not client."""

    def __init__(self, client, other, prefix, errors, caching=None, cluster=None):
        self.client, self.other, self.prefix, self.errors = client, other, prefix, errors
        self.caching, self.cluster = caching, cluster

    def run(self):
        report("connect", lambda: expect("PING", self.client.ping(), True))
        report("get-or-set", self.get_or_set)
        report("many", self.many)
        report("delete", self.delete)
        report("scan", self.scan_and_delete)
        report("rate-limit", self.rate_limit)
        report("lock", self.lock)
        report("pipeline", self.pipeline)
        report("hash", self.hash)
        report("set", self.set)
        report("sorted-set", self.sorted_set)
        report("list", self.list)
        report("geo", self.geo)
        report("publish", self.publish)
        report("shard-publish", self.shard_publish)
        if self.cluster:
            report("cluster-publish", self.cluster_publish)
        report("blocking", self.blocking)
        if self.caching:
            report("tracking", self.tracking)
        report("reconnect", self.reconnect)

    def keys(self, name, n):
        return [f"{self.prefix}:{name}{i}" for i in range(n)]

    def load(self, keys):
        expect("MSET", self.client.mset({k: "value of " + k for k in keys}), True)

    def get_or_set(self):
        key, value = self.prefix + ":cached", b"computed\r\n\0"
        expect("GET of a missing key", self.client.get(key), None)
        expect("SET", self.client.set(key, value, ex=TTL), True)
        expect("GET", self.client.get(key), value)
        expect_ttl(self.client.ttl(key))

    def many(self):
        keys = self.keys("many", 100)
        self.load(keys)
        got = self.client.mget([self.prefix + ":missing"] + keys)
        expect("MGET", got, [None] + [b"value of " + k.encode() for k in keys])

    def delete(self):
        keys = self.keys("many", 100)
        expect("DEL", self.client.delete(self.prefix + ":missing", *keys), 100)

    def scan_and_delete(self):
        gone, kept = self.keys("scanned:", 300), self.keys("kept:", 10)
        self.load(gone + kept)
        found = {k.decode() for k in self.client.scan_iter(self.prefix + ":scanned:*")}
        expect("SCAN", found, set(gone))
        expect("DEL", self.client.delete(*found), 300)
        left = {k.decode() for k in self.client.scan_iter(self.prefix + ":kept:*")}
        expect("SCAN of what was kept", left, set(kept))

    def rate_limit(self):
        key = self.prefix + ":limited"
        for i in range(1, 6):
            expect("INCR", self.client.incr(key), i)
            if i == 1:
                expect("EXPIRE", self.client.expire(key, TTL), True)
        expect_ttl(self.client.ttl(key))

    def lock(self):
        key = self.prefix + ":lock"
        expect("SET NX", self.client.set(key, "mine", nx=True, ex=TTL), True)
        expect("the second SET NX", self.client.set(key, "theirs", nx=True, ex=TTL), None)
        expect("compare and delete by another", self.delete_if_equal(key, b"theirs"), False)
        expect("compare and delete", self.delete_if_equal(key, b"mine"), True)
        expect("GET of the released lock", self.client.get(key), None)

    def delete_if_equal(self, key, value):
        with self.client.pipeline() as p:
            p.watch(key)
            if p.get(key) != value:
                return False
            p.multi()
            p.delete(key)
            return p.execute() == [1]

    def pipeline(self):
        keys = self.keys("piped", PIPELINED)
        p = self.client.pipeline(transaction=False)
        for k in keys:
            p.set(k, k)
            p.get(k)
        want = [reply for k in keys for reply in (True, k.encode())]
        expect("a pipeline", p.execute(), want)

    def hash(self):
        c, key, many = self.client, self.prefix + ":hash", self.prefix + ":fields"
        expect("HSET", c.hset(key, mapping={"name": "Ada", "visits": 41}), 2)
        expect("HINCRBY", c.hincrby(key, "visits", 1), 42)
        expect("HGETALL", c.hgetall(key), {b"name": b"Ada", b"visits": b"42"})
        expect("HMGET", c.hmget(key, "name", "none"), [b"Ada", None])
        expect("HEXPIRE", c.hexpire(key, TTL, "visits"), [1])
        expect_ttl(c.httl(key, "visits")[0])
        expect("HDEL", c.hdel(key, "name", "none"), 1)
        fields = {f"field{i}": str(i) for i in range(WALKED)}
        expect("HSET", c.hset(many, mapping=fields), WALKED)
        found = {f.decode(): v.decode() for f, v in c.hscan_iter(many)}
        expect("HSCAN", found, fields)

    def set(self):
        c, one, other = self.client, self.prefix + ":{set}:1", self.prefix + ":{set}:2"
        members = {f"member{i}" for i in range(WALKED)}
        expect("SADD", c.sadd(one, *members), WALKED)
        expect("SADD", c.sadd(other, "member1", "member2", "else"), 3)
        expect("SISMEMBER", c.sismember(other, "else"), 1)
        expect("SINTER", c.sinter(one, other), {b"member1", b"member2"})
        expect("SREM", c.srem(other, "else"), 1)
        expect("SMEMBERS", c.smembers(other), {b"member1", b"member2"})
        expect("SSCAN", {m.decode() for m in c.sscan_iter(one)}, members)

    def sorted_set(self):
        c, key = self.client, self.prefix + ":board"
        expect("ZADD", c.zadd(key, {"Ada": 1, "Bob": 2.5, "Cy": 3}), 3)
        expect("ZADD GT", c.zadd(key, {"Cy": 2}, gt=True, ch=True), 0)
        expect("ZINCRBY", c.zincrby(key, 2, "Ada"), 3.0)
        best = [[b"Cy", 3.0], [b"Ada", 3.0]]
        got = c.zrange(key, 0, 1, desc=True, withscores=True)
        expect("ZRANGE REV", [list(pair) for pair in got], best)
        expect("ZRANK", c.zrank(key, "Bob"), 0)
        expect("ZRANGE BYSCORE", c.zrange(key, 2, "(3", byscore=True), [b"Bob"])
        expect("ZPOPMIN", [list(p) for p in c.zpopmin(key)], [[b"Bob", 2.5]])

    def list(self):
        c, queue, done = self.client, self.prefix + ":{list}:queue", self.prefix + ":{list}:done"
        expect("RPUSH", c.rpush(queue, "a", "b", "c", "d"), 4)
        expect("LMOVE", c.lmove(queue, done, "LEFT", "RIGHT"), b"a")
        expect("LPOP", c.lpop(queue), b"b")
        expect("LRANGE", c.lrange(queue, 0, -1), [b"c", b"d"])
        expect("LTRIM", c.ltrim(queue, 0, 0), True)
        expect("LLEN", c.llen(queue), 1)

    def geo(self):
        c, key = self.client, self.prefix + ":towns"
        towns = (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania")
        expect("GEOADD", c.geoadd(key, towns), 2)
        expect("GEODIST", round(float(c.geodist(key, "Palermo", "Catania", unit="km"))), 166)
        got = c.geosearch(key, longitude=15, latitude=37, radius=200, unit="km", sort="ASC")
        expect("GEOSEARCH", got, [b"Catania", b"Palermo"])

    def hears(self, ear, messages):
        """Expects messages, each once and in order."""
        for kind, pattern, channel, text in messages:
            want = {"type": kind, "pattern": pattern, "channel": channel.encode(), "data": text.encode()}
            expect("a listener", ear.get_message(ignore_subscribe_messages=True, timeout=HEARD_SECONDS), want)

    def confirmed(self, ear, kind):
        expect("subscribing", ear.get_message(timeout=HEARD_SECONDS)["type"], kind)

    def publish(self):
        channel, pattern = self.prefix + ":news", self.prefix + ":ne*"
        plain, matching = self.client.pubsub(), self.client.pubsub()
        plain.subscribe(channel)
        self.confirmed(plain, "subscribe")
        matching.psubscribe(pattern)
        self.confirmed(matching, "psubscribe")
        texts = [f"message{i}" for i in range(SENT)]
        for text in texts:
            expect("PUBLISH", self.client.publish(channel, text), 2)
        self.hears(plain, [("message", None, channel, text) for text in texts])
        self.hears(matching, [("pmessage", pattern.encode(), channel, text) for text in texts])

    def shard_publish(self):
        """Who listens to a channel of a shard channel's name hears other messages."""
        channel = self.prefix + ":shard"
        shard, plain = self.client.pubsub(), self.client.pubsub()
        shard.ssubscribe(channel)
        self.confirmed(shard, "ssubscribe")
        plain.subscribe(channel)
        self.confirmed(plain, "subscribe")
        texts = [f"message{i}" for i in range(SENT)]
        for text in texts:
            expect("SPUBLISH", self.client.spublish(channel, text), 1)
        self.hears(shard, [("smessage", None, channel, text) for text in texts])
        expect("PUBLISH", self.client.publish(channel, "plain"), 1)
        self.hears(plain, [("message", None, channel, "plain")])

    def cluster_publish(self):
        """Listens at nodes, and publishes at all of them, until nobody listens."""
        host, port = ask("node").rsplit(":", 1)
        client = self.cluster(host=host, port=int(port))
        nodes, channels = client.get_primaries(), self.keys("nodes", CLUSTERED)
        expect("the cluster", len(nodes), 3)
        pattern, matching = self.prefix + ":nodes*", client.pubsub(node=nodes[-1])
        matching.psubscribe(pattern)
        self.confirmed(matching, "psubscribe")
        for i, channel in enumerate(channels):
            plain = client.pubsub()  # at the node that the library takes
            plain.subscribe(channel)
            self.confirmed(plain, "subscribe")
            texts = [f"message{j}" for j in range(SENT)]
            for j, text in enumerate(texts):
                expect("PUBLISH", client.publish(channel, text, target_nodes=nodes[j % len(nodes)]), 2)
            self.hears(plain, [("message", None, channel, text) for text in texts])
            self.hears(matching, [("pmessage", pattern.encode(), channel, text) for text in texts])
            plain.unsubscribe(channel)
            self.confirmed(plain, "unsubscribe")
            expect("PUBLISH", client.publish(channel, "last"), 1)
            self.hears(matching, [("pmessage", pattern.encode(), channel, "last")])
        matching.punsubscribe(pattern)
        self.confirmed(matching, "punsubscribe")
        expect("PUBLISH", client.publish(channels[0], "unheard"), 0)
        client.close()

    def blocking(self):
        """Pops an empty list until the time is up, and then what another connection pushes."""
        c, other, none = self.client, self.other, self.prefix + ":none"
        queue, done, board = self.prefix + ":{wait}:queue", self.prefix + ":{wait}:done", self.prefix + ":waited"
        begin = time.monotonic()
        expect("BLPOP of an empty list", c.blpop(none, timeout=SHORTLY), None)
        expect("its time is up", time.monotonic() - begin >= SHORTLY, True)
        with Pushed(other, lambda: other.rpush(queue, "a")):
            expect("BLPOP", list(c.blpop([none, queue], timeout=LONG)), [queue.encode(), b"a"])
        with Pushed(other, lambda: other.rpush(queue, "b", "c")):
            expect("BLMOVE", c.blmove(queue, done, LONG, "LEFT", "RIGHT"), b"b")
        expect("the source", c.lrange(queue, 0, -1), [b"c"])
        expect("the target", c.lrange(done, 0, -1), [b"b"])
        with Pushed(other, lambda: other.zadd(board, {"Ada": 1.5})):
            expect("BZPOPMIN", list(c.bzpopmin(board, timeout=LONG)), [board.encode(), b"Ada", 1.5])

    def tracking(self):
        """Reads through the library's cache what another connection changes."""
        key = self.prefix + ":tracked"
        for turn in range(5):
            value = f"value{turn}".encode()
            expect("SET", self.client.set(key, value), True)
            until_it_works(lambda: expect("a cached GET", self.cached(key), (value, [value])), Failure)
            expect("a cached GET", self.caching.get(key), value)

    def cached(self, key):
        """Returns what a read says, and what the cache then has of the key."""
        got = self.caching.get(key)
        entries = self.caching.get_cache().collection.values()
        return got, [entry.cache_value for entry in entries if key in entry.cache_key.redis_keys]

    def reconnect(self):
        restarted()
        key = self.prefix + ":cached"
        until_it_works(lambda: self.client.set(key, "again"), self.errors)
        expect("GET", self.client.get(key), b"again")
        self.pipeline()
