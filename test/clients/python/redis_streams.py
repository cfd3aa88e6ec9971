"""Consumers of streams with redis-py: redis_streams.py HOST:PORT"""

import collections
import sys
import threading
import time

import redis

from scenario import RECONNECT_SECONDS, Failure, expect, report, restarted, until_it_works

GROUP = "workers"
KEYS = [f"redis-py-streams:{i}" for i in range(4)]  # in several slots
ALONE = "redis-py-streams:alone"  # a stream that the consumers leave alone
CONSUMERS = 3
PRODUCED = 400  # entries, and a quarter as many after the restart

host, port = sys.argv[1].rsplit(":", 1)
client = redis.Redis(host=host, port=int(port), decode_responses=True)


class Ledger:
    """Counts how often each entry was delivered, and how many were acknowledged."""

    def __init__(self):
        self.lock = threading.Lock()
        self.delivered = collections.Counter()
        self.acknowledged = 0
        self.problem = None  # the latest one

    def note(self, names=(), acknowledged=0, problem=None):
        with self.lock:
            self.delivered.update(names)
            self.acknowledged += acknowledged
            self.problem = problem or self.problem

    def wait(self, n):
        """Waits until n entries are acknowledged, and checks that each was delivered once."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while self.acknowledged < n:
            if time.monotonic() > deadline:
                raise Failure(f"{self.acknowledged} of {n} are acknowledged; {self.problem!r}")
            time.sleep(0.005)
        with self.lock:
            expect("acknowledged", self.acknowledged, n)
            expect("entries", len(self.delivered), n)
            expect("delivered more than once", [x for x, k in self.delivered.items() if k > 1], [])


ledger = Ledger()


def work(consumer):
    """One consumer of all streams, to the end of the program."""
    new = {key: ">" for key in KEYS}
    while True:
        try:
            for key, entries in client.xreadgroup(GROUP, consumer, new, count=10, block=2000):
                ids = [i for i, _ in entries]
                ledger.note(names=[fields["name"] for _, fields in entries])
                ledger.note(acknowledged=client.xack(key, GROUP, *ids))
        except redis.RedisError as e:  # the proxy is away, perhaps
            ledger.note(problem=e)
            time.sleep(0.02)


def create():
    for key in [ALONE, *KEYS]:
        expect("XGROUP CREATE", client.xgroup_create(key, GROUP, mkstream=True), True)
        try:
            client.xgroup_create(key, GROUP, mkstream=True)
        except redis.ResponseError as e:
            expect("the error", str(e).split()[0], "BUSYGROUP")
        else:
            raise Failure("XGROUP CREATE again does not raise")
    expect("EXISTS", client.exists(*KEYS), len(KEYS))


def consume():
    for i in range(CONSUMERS):
        threading.Thread(target=work, args=(f"consumer{i}",), daemon=True).start()

    def produce(producer):
        for i in range(PRODUCED // 2):
            client.xadd(KEYS[i % len(KEYS)], {"name": f"{producer}{i}"})

    producers = [threading.Thread(target=produce, args=(p,)) for p in ("one", "two")]
    for p in producers:
        p.start()
    for p in producers:
        p.join()
    ledger.wait(PRODUCED)


ids = []  # of the entries of ALONE


def read(consumer, start, count):
    [[_, entries]] = client.xreadgroup(GROUP, consumer, {ALONE: start}, count=count)
    return [i for i, _ in entries]


def claim():
    """A consumer vanishes with 60 of 100 entries. Another one claims these, and
    acknowledges all but ten."""
    ids.extend(client.xadd(ALONE, {"name": i}) for i in range(100))
    expect("XREADGROUP", read("gone", ">", 60), ids[:60])
    want = {"pending": 60, "min": ids[0], "max": ids[59]}
    want["consumers"] = [{"name": "gone", "pending": 60}]
    expect("XPENDING", client.xpending(ALONE, GROUP), want)
    some = client.xpending_range(ALONE, GROUP, "-", "+", 3, consumername="gone")
    expect("XPENDING", [(p["message_id"], p["times_delivered"]) for p in some], [(i, 1) for i in ids[:3]])
    claimed, start = [], "0-0"
    while not claimed or start != "0-0":
        start, entries, gone = client.xautoclaim(ALONE, GROUP, "heir", 0, start, count=25)
        expect("entries that are gone", gone, [])
        claimed += [i for i, _ in entries]
    expect("XAUTOCLAIM", claimed, ids[:60])
    expect("XREADGROUP", read("heir", ">", 100), ids[60:])
    expect("XACK", client.xack(ALONE, GROUP, *ids[10:]), 90)
    expect("XREADGROUP of what is pending", read("heir", 0, 100), ids[:10])


def info():
    for key in KEYS:
        [group] = client.xinfo_groups(key)
        counts = [group["pending"], group["lag"], group["entries-read"]]
        expect("XINFO GROUPS", counts, [0, 0, PRODUCED // len(KEYS)])
    want = {"name": GROUP, "consumers": 2, "pending": 10, "last-delivered-id": ids[-1]}
    expect("XINFO GROUPS", client.xinfo_groups(ALONE), [want | {"entries-read": 100, "lag": 0}])
    owed = {c["name"]: c["pending"] for c in client.xinfo_consumers(ALONE, GROUP)}
    expect("XINFO CONSUMERS", owed, {"gone": 0, "heir": 10})
    stream = client.xinfo_stream(ALONE)
    expect("counts", [stream[f] for f in ("length", "groups", "entries-added")], [100, 1, 100])
    expect("first", stream["first-entry"], (ids[0], {"name": "0"}))
    expect("last", stream["last-entry"], (ids[-1], {"name": "99"}))
    expect("IDs", [stream["last-generated-id"], stream["max-deleted-entry-id"]], [ids[-1], "0-0"])
    full = client.xinfo_stream(ALONE, full=True)
    expect("XINFO STREAM FULL", [full["length"], len(full["entries"])], [100, 10])
    [group] = full["groups"]
    expect("its group", [group["pel-count"], len(group["consumers"])], [10, 2])


def trim():
    """Removes the entries that are pending, among others: who claims those is told that
    they are gone."""
    client.xadd(ALONE, {"name": "last"}, maxlen=50, approximate=False)
    expect("XLEN", client.xlen(ALONE), 50)
    expect("XTRIM MINID", client.xtrim(ALONE, minid=ids[60], approximate=False), 9)
    expect("XAUTOCLAIM", client.xautoclaim(ALONE, GROUP, "third", 0), ["0-0", [], ids[:10]])
    expect("XPENDING", client.xpending(ALONE, GROUP)["pending"], 0)


def reconnect():
    """The proxy is killed while the consumers wait."""
    restarted("kill")
    for i in range(PRODUCED // 4):
        entry = {"name": f"again{i}"}
        until_it_works(lambda: client.xadd(KEYS[i % len(KEYS)], entry), redis.ConnectionError)
    ledger.wait(PRODUCED + PRODUCED // 4)


print("version", redis.__version__, flush=True)
report("create", create)
report("consume", consume)
report("claim", claim)
report("info", info)
report("trim", trim)
report("reconnect", reconnect)
