import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.BatchOptions.ExecutionMode;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBatch;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLocalCachedMap;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RMapCache;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RScoredSortedSet;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.api.options.KeysScanOptions;
import org.redisson.api.options.LocalCachedMapOptions;
import org.redisson.client.codec.IntegerCodec;
import org.redisson.client.codec.StringCodec;
import org.redisson.codec.CompositeCodec;
import org.redisson.config.Config;

/**
 * Redisson's objects, whose methods are scripts and messages. Two clients stand for two processes: a lock of one is
 * another's for the other.
 */
final class RedissonObjects {
    // The watchdog renews a lock after a third of this; on a busy machine, that comes a second or more too late.
    private static final long WATCHDOG_MILLIS = 4_000;
    private static final int PATIENCE_MILLIS = 20_000; // with a reply, on a busy machine
    private static final int WORKERS = 6;
    private static final int ROUNDS = 15;
    private static final int ADDED = 100; // elements, and messages

    private final String address;
    private final RedissonClient here;
    private final RedissonClient there;
    private final ExecutorService pool = Executors.newFixedThreadPool(WORKERS);

    RedissonObjects(String host, int port) {
        address = "redis://" + host + ":" + port;
        here = client(this::asServer);
        there = client(this::asServer);
    }

    private static RedissonClient client(Consumer<Config> mode) {
        Config config = new Config().setLockWatchdogTimeout(WATCHDOG_MILLIS);
        mode.accept(config);
        return Redisson.create(config);
    }

    /** The watchdog would renew up to 100 locks by one script, which names keys of several slots. */
    private void asServer(Config config) {
        config.setLockWatchdogBatchSize(1).useSingleServer().setAddress(address).setTimeout(PATIENCE_MILLIS);
    }

    private void asCluster(Config config) {
        config.useClusterServers().addNodeAddress(address).setTimeout(PATIENCE_MILLIS);
    }

    private RedissonClient of(int worker) {
        return worker % 2 == 0 ? here : there;
    }

    void run() {
        Report.step("lock", this::lock);
        Report.step("locks", this::locks);
        Report.step("map", this::map);
        Report.step("bucket", this::bucket);
        Report.step("queue", this::queue);
        Report.step("topic", this::topic);
        Report.step("rate-limit", this::rateLimit);
        Report.step("cluster", () -> {
            if (System.getenv("SINGLE_SERVER") == null) { // which knows no CLUSTER
                cluster();
            }
        });
        Report.step("replace", this::replace);
        Report.step("crash", this::crash);
    }

    /** Runs work in all workers at once, and returns when all are done. */
    private void inAll(Worker work) throws Exception {
        List<Future<?>> all = new ArrayList<>();
        for (int w = 0; w < WORKERS; w++) {
            int worker = w;
            all.add(pool.submit((Callable<Void>) () -> {
                work.run(worker, of(worker));
                return null;
            }));
        }
        for (Future<?> one : all) {
            one.get(Report.WORK_MILLIS, TimeUnit.MILLISECONDS);
        }
    }

    interface Worker {
        void run(int worker, RedissonClient client) throws Exception;
    }

    /** What a lock protects: a count that is read, and then written. Whoever is not alone is counted. */
    private final class Protected {
        private final String lock;
        private final AtomicInteger inside = new AtomicInteger();
        private final AtomicInteger together = new AtomicInteger();
        private final AtomicInteger done = new AtomicInteger();

        Protected(String lock) {
            this.lock = lock;
        }

        void enter(RedissonClient client, int times) {
            for (int i = 0; i < times; i++) {
                enter(client, client.getLock(lock));
            }
        }

        void enter(RedissonClient client, RLock by) {
            by.lock();
            try {
                if (inside.incrementAndGet() != 1) {
                    together.incrementAndGet();
                }
                RBucket<Integer> count = client.getBucket(lock + "-count");
                Integer n = count.get();
                count.set(n == null ? 1 : n + 1);
                inside.decrementAndGet();
                done.incrementAndGet();
            } finally {
                by.unlock();
            }
        }

        void check(int times) {
            Report.expect("entered " + lock, done.get(), times);
            Report.expect("count of " + lock, here.<Integer>getBucket(lock + "-count").get(), times);
            Report.expect("not alone in " + lock, together.get(), 0);
            Report.expect(lock + " is locked", here.getLock(lock).isLocked(), false);
        }
    }

    private void lock() throws Exception {
        renewed(here, there);
        RLock mine = here.getLock("redisson-lock");
        RLock other = there.getLock("redisson-lock");
        mine.lock();
        mine.lock();
        Report.expect("holds", mine.getHoldCount(), 2);
        Report.expect("lock of another", other.tryLock(), false);
        Report.expect("lock of another, waiting", other.tryLock(50, TimeUnit.MILLISECONDS), false);
        try {
            other.unlock();
            throw new Report.Unexpected("the lock of another is unlocked");
        } catch (IllegalMonitorStateException ofAnother) {
            // as it should be
        }
        mine.unlock();
        Report.expect("locked", other.isLocked(), true);
        // A waiter is told by a message, long before the lock would expire.
        Future<Boolean> waiter = pool.submit(() -> other.tryLock(10, 10, TimeUnit.SECONDS));
        Thread.sleep(100);
        mine.unlock();
        Report.expect("lock of the waiter", waiter.get(5, TimeUnit.SECONDS), true);
        Report.expect("force", mine.forceUnlock(), true);
        Report.expect("locked", other.isLocked(), false);

        Protected plain = new Protected("redisson-plain");
        inAll((worker, client) -> plain.enter(client, ROUNDS));
        plain.check(WORKERS * ROUNDS);
    }

    /** Two locks of one client outlive their time, because its watchdog renews them. */
    private static void renewed(RedissonClient one, RedissonClient two) throws Exception {
        List<String> names = List.of("redisson-first", "redisson-second");
        names.forEach(name -> one.getLock(name).lock());
        Thread.sleep(WATCHDOG_MILLIS + 200);
        for (String name : names) {
            Report.expect("lock of another", two.getLock(name).tryLock(), false);
            Report.expectTtl(two.getLock(name).remainTimeToLive(), WATCHDOG_MILLIS);
            one.getLock(name).unlock();
        }
    }

    /** Fair locks, locks of readers and writers, of several names, semaphores and latches. */
    private void locks() throws Exception {
        Protected fair = new Protected("redisson-fair");
        Protected written = new Protected("redisson-rw");
        AtomicInteger readers = new AtomicInteger();
        AtomicInteger permits = new AtomicInteger();
        AtomicInteger tooMany = new AtomicInteger();
        Report.expect("permits", here.getSemaphore("redisson-semaphore").trySetPermits(2), true);
        Report.expect("count", here.getCountDownLatch("redisson-latch").trySetCount(WORKERS), true);
        inAll((worker, client) -> {
            RReadWriteLock both = client.getReadWriteLock("redisson-rw");
            RSemaphore semaphore = client.getSemaphore("redisson-semaphore");
            for (int i = 0; i < ROUNDS / 3; i++) {
                fair.enter(client, client.getFairLock("redisson-fair"));
                written.enter(client, both.writeLock());
                both.readLock().lock();
                if (written.inside.get() != 0) {
                    tooMany.incrementAndGet();
                }
                readers.incrementAndGet();
                both.readLock().unlock();
                semaphore.acquire();
                if (permits.incrementAndGet() > 2) {
                    tooMany.incrementAndGet();
                }
                permits.decrementAndGet();
                semaphore.release();
            }
            RCountDownLatch latch = client.getCountDownLatch("redisson-latch");
            latch.countDown();
            if (!latch.await(10, TimeUnit.SECONDS)) {
                tooMany.incrementAndGet();
            }
        });
        fair.check(WORKERS * (ROUNDS / 3));
        written.check(WORKERS * (ROUNDS / 3));
        Report.expect("readers", readers.get(), WORKERS * (ROUNDS / 3));
        Report.expect("more than may be there", tooMany.get(), 0);
        Report.expect("permits", here.getSemaphore("redisson-semaphore").availablePermits(), 2);

        RLock several = here.getMultiLock(here.getLock("redisson-a"), here.getLock("redisson-b"));
        several.lock();
        Report.expect("one of several", there.getLock("redisson-b").tryLock(), false);
        several.unlock();
        Report.expect("one of several", there.getLock("redisson-b").tryLock(), true);
        there.getLock("redisson-b").unlock();
    }

    private void map() throws Exception {
        RMap<String, Integer> map = here.getMap("redisson-map",
                new CompositeCodec(StringCodec.INSTANCE, IntegerCodec.INSTANCE));
        Report.expect("put", map.put("a", 1), null);
        Report.expect("put", map.put("a", 2), 1);
        Report.expect("put if absent", map.putIfAbsent("a", 3), 2);
        Report.expect("replace", map.replace("a", 2, 5), true);
        Report.expect("remove another value", map.remove("a", 2), false);
        Report.expect("add", map.addAndGet("a", 10), 15);
        Map<String, Integer> many = new HashMap<>();
        IntStream.range(0, 300).forEach(i -> many.put("k" + i, i));
        map.putAll(many);
        Report.expect("walk", new HashMap<>(map).size(), 301);
        Report.expect("some", map.getAll(Set.of("k7", "k8", "none")), Map.of("k7", 7, "k8", 8));
        Report.expect("removed", map.fastRemove("k1", "k2", "none"), 2L);

        RMapCache<String, String> cache = here.getMapCache("redisson-cache");
        cache.put("short", "lived", 200, TimeUnit.MILLISECONDS);
        cache.put("long", "lived", 100, TimeUnit.SECONDS);
        Report.expect("put if absent", cache.putIfAbsent("long", "other", 1, TimeUnit.SECONDS), "lived");
        Report.expectTtl(cache.remainTimeToLive("long"), 100_000);
        Thread.sleep(250);
        Report.expect("what is left", cache.readAllMap(), Map.of("long", "lived"));

        LocalCachedMapOptions<String, String> near = LocalCachedMapOptions.name("redisson-near");
        RLocalCachedMap<String, String> nearHere = here.getLocalCachedMap(near);
        RLocalCachedMap<String, String> nearThere = there.getLocalCachedMap(near);
        nearHere.put("city", "Rome");
        Report.expect("get", nearThere.get("city"), "Rome");
        nearHere.put("city", "Oslo");
        Report.untilItWorks(() -> {
            Report.expect("what the other has cached", nearThere.get("city"), "Oslo");
            return null;
        });
    }

    private void bucket() throws Exception {
        RBucket<String> bucket = here.getBucket("redisson-bucket");
        Report.expect("get", bucket.get(), null);
        bucket.set("value", Duration.ofSeconds(100));
        Report.expectTtl(bucket.remainTimeToLive(), 100_000);
        Report.expect("set if absent", bucket.setIfAbsent("other"), false);
        Report.expect("compare and set another", bucket.compareAndSet("wrong", "other"), false);
        Report.expect("compare and set", bucket.compareAndSet("value", "next"), true);
        Report.expect("get and delete", bucket.getAndDelete(), "next");
        Map<String, Integer> many = new HashMap<>();
        IntStream.range(0, 100).forEach(i -> many.put("redisson-many:" + i, i));
        here.getBuckets().set(many);
        Report.expect("several", here.getBuckets().get(many.keySet().toArray(new String[0])), many);
        int walked = 0;
        for (String key : here.getKeys().getKeys(KeysScanOptions.defaults().pattern("redisson-many:*"))) {
            walked += many.containsKey(key) ? 1 : 0;
        }
        Report.expect("keys of a pattern", walked, 100);
        Report.expect("deleted", here.getKeys().deleteByPattern("redisson-many:*"), 100L);

        RBatch batch = here.createBatch();
        IntStream.range(0, 100).forEach(i -> batch.getAtomicLong("redisson-n:" + i % 10).incrementAndGetAsync());
        Report.expect("last of a batch", batch.execute().getResponses().get(99), 10L);
        RBatch atomic = here.createBatch(BatchOptions.defaults().executionMode(ExecutionMode.REDIS_WRITE_ATOMIC));
        atomic.getAtomicLong("{redisson}1").incrementAndGetAsync();
        atomic.getAtomicLong("{redisson}2").addAndGetAsync(5);
        Report.expect("transaction", atomic.execute().getResponses(), List.of(1L, 5L));

        RScoredSortedSet<String> board = here.getScoredSortedSet("redisson-board");
        board.addAll(Map.of("ann", 3.0, "bob", 1.0, "cid", 2.0));
        Report.expect("score", board.addScore("bob", 5), 6.0);
        Report.expect("best", board.valueRangeReversed(0, 1), List.of("bob", "ann"));
    }

    private final Map<Integer, Integer> taken = new ConcurrentHashMap<>(); // how often, by element

    /** Each element is taken once, by blocking pops in both clients. */
    private void queue() throws Exception {
        for (int w = 0; w < WORKERS; w++) {
            RBlockingQueue<Integer> from = of(w).getBlockingQueue("redisson-queue");
            Report.loop(() -> {
                try {
                    Integer element = from.poll(2, TimeUnit.SECONDS);
                    if (element != null) {
                        taken.merge(element, 1, Integer::sum);
                    }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
        }
        IntStream.range(0, ADDED).forEach(here.getQueue("redisson-queue")::add);
        awaitTaken(ADDED);
    }

    private void awaitTaken(int n) throws Exception {
        Report.untilItWorks(() -> {
            Report.expect("taken", taken.size(), n);
            return null;
        }, Report.WORK_MILLIS);
        Report.expect("taken twice", taken.values().stream().filter(times -> times != 1).count(), 0L);
    }

    private final List<Integer> heard = new CopyOnWriteArrayList<>();
    private final List<Integer> heardByPattern = new CopyOnWriteArrayList<>();
    private final List<Integer> heardReliably = new CopyOnWriteArrayList<>();

    private void publish(int i) {
        here.getTopic("redisson-topic").publish(i);
        here.getReliableTopic("redisson-reliable").publish(i);
    }

    private void topic() throws Exception {
        there.getTopic("redisson-topic").addListener(Integer.class, (channel, i) -> heard.add(i));
        there.getPatternTopic("redisson-top*").addListener(Integer.class, (p, channel, i) -> heardByPattern.add(i));
        there.getReliableTopic("redisson-reliable").addListener(Integer.class, (channel, i) -> heardReliably.add(i));
        Report.expect("subscribers", here.getTopic("redisson-topic").countSubscribers(), 1L);
        IntStream.range(0, ADDED).forEach(this::publish);
        awaitHeard(ADDED);
    }

    private void awaitHeard(int n) throws Exception {
        List<Integer> want = IntStream.range(0, n).boxed().toList();
        for (List<Integer> list : List.of(heard, heardByPattern, heardReliably)) {
            Report.untilItWorks(() -> {
                Report.expect("messages", list.size() >= n, true);
                return null;
            }, Report.WORK_MILLIS);
            Report.expect("messages", list, want);
        }
    }

    private void rateLimit() throws Exception {
        RRateLimiter limiter = here.getRateLimiter("redisson-limit");
        Report.expect("set", limiter.trySetRate(RateType.OVERALL, 20, Duration.ofHours(1)), true);
        Report.expect("set again", limiter.trySetRate(RateType.OVERALL, 5, Duration.ofHours(1)), false);
        AtomicInteger allowed = new AtomicInteger();
        inAll((worker, client) -> {
            for (int i = 0; i < 5; i++) {
                if (client.getRateLimiter("redisson-limit").tryAcquire()) {
                    allowed.incrementAndGet();
                }
            }
        });
        Report.expect("allowed", allowed.get(), 20);
        Report.expect("left", limiter.availablePermits(), 0L);
    }

    /** In cluster mode Redisson itself renews the locks of each slot alone. */
    private void cluster() throws Exception {
        Protected section = new Protected("redisson-cluster");
        RedissonClient one = client(this::asCluster);
        RedissonClient two = client(this::asCluster);
        try {
            inAll((worker, client) -> section.enter(worker % 2 == 0 ? one : two, ROUNDS));
            section.check(WORKERS * ROUNDS);
            renewed(one, two);
        } finally {
            one.shutdown(0, 0, TimeUnit.SECONDS);
            two.shutdown(0, 0, TimeUnit.SECONDS);
        }
    }

    /** Locks stay locks, and elements and messages arrive once and in order. */
    private void replace() throws Exception {
        Protected section = new Protected("redisson-section");
        RLock held = here.getLock("redisson-held");
        held.lock(); // the watchdog renews it
        AtomicBoolean over = new AtomicBoolean();
        List<Future<?>> all = new ArrayList<>();
        for (int w = 0; w < 4; w++) {
            RedissonClient client = of(w);
            all.add(pool.submit(() -> {
                while (!over.get()) {
                    section.enter(client, 1);
                }
            }));
        }
        RAtomicLong counter = here.getAtomicLong("redisson-counter");
        int n = Report.whileReplaced(i -> {
            here.getQueue("redisson-queue").add(ADDED + i);
            publish(ADDED + i);
            Report.expect("count", counter.incrementAndGet(), i + 1L);
            Report.expect("lock of another", there.getLock("redisson-held").tryLock(), false);
        });
        over.set(true);
        for (Future<?> one : all) {
            one.get(Report.WORK_MILLIS, TimeUnit.MILLISECONDS);
        }
        section.check(section.done.get());
        held.unlock();
        awaitTaken(ADDED + n);
        awaitHeard(ADDED + n);
    }

    /**
     * Locks stay locks, but those that were taken in a node's last moments; elements, entries and permits of those
     * moments may be lost, messages too while connections break. Nothing else is lost, or taken twice.
     */
    private void crash() throws Exception {
        RLock held = here.getLock("redisson-crash-held");
        held.lock(5, TimeUnit.MINUTES); // without the watchdog, whose time is as short as a fail-over
        RRateLimiter limiter = here.getRateLimiter("redisson-crash-limit");
        limiter.trySetRate(RateType.OVERALL, 1_000_000, Duration.ofHours(1));
        RMapCache<Integer, Integer> cache = here.getMapCache("redisson-crash-cache");
        AtomicBoolean over = new AtomicBoolean();
        AtomicInteger inside = new AtomicInteger();
        List<Long> together = new CopyOnWriteArrayList<>(); // when somebody was not alone
        AtomicInteger entered = new AtomicInteger();
        List<Future<?>> all = new ArrayList<>();
        for (int w = 0; w < 4; w++) {
            RedissonClient client = of(w);
            all.add(pool.submit(() -> {
                while (!over.get()) {
                    Report.succeeds(() -> {
                        RLock lock = client.getLock("redisson-crash");
                        lock.lock();
                        if (inside.incrementAndGet() != 1) {
                            together.add(System.currentTimeMillis());
                        }
                        entered.incrementAndGet();
                        Thread.sleep(2);
                        inside.decrementAndGet();
                        lock.unlock();
                    });
                }
            }));
        }
        Map<Integer, Long> added = new ConcurrentHashMap<>(); // when each element was
        Map<Integer, Long> put = new ConcurrentHashMap<>();
        AtomicInteger permits = new AtomicInteger();
        AtomicInteger stolen = new AtomicInteger();
        int first = 1_000_000; // no element before this
        int n = Report.whileCrashed(i -> {
            Report.succeeds(() -> {
                here.getQueue("redisson-queue").add(first + i);
                added.put(first + i, System.currentTimeMillis());
            });
            Report.succeeds(() -> {
                cache.put(i, i, 100, TimeUnit.SECONDS);
                put.put(i, System.currentTimeMillis());
            });
            Report.succeeds(() -> {
                if (limiter.tryAcquire()) {
                    permits.incrementAndGet();
                }
            });
            Report.succeeds(() -> publish(first + i));
            Report.succeeds(() -> {
                if (there.getLock("redisson-crash-held").tryLock()) {
                    stolen.incrementAndGet();
                }
            });
        });
        over.set(true);
        for (Future<?> one : all) {
            one.get(Report.WORK_MILLIS, TimeUnit.MILLISECONDS);
        }
        Report.untilItWorks(() -> {
            Report.expect("elements lost", missing(added, taken.keySet(), false), 0L);
            return null;
        }, Report.WORK_MILLIS);
        Set<Integer> kept = cache.readAllMap().keySet();
        Report.expect("entries lost", missing(put, kept, false), 0L);
        long twice = taken.values().stream().filter(times -> times > 1).count();
        Report.count(String.format("%d elements: %d refused, %d lost, %d taken twice; %d entries of a map: %d lost", n,
                n - added.size(), missing(added, taken.keySet(), true), twice, put.size(), missing(put, kept, true)));
        Report.count(String.format("%d times a lock was entered: %d times not alone; %d permits of a limit, %d used", entered.get(),
                together.size(), permits.get(), 1_000_000 - limiter.availablePermits()));
        Report.expect("taken twice", twice <= 3 * WORKERS, true);
        Report.expect("not alone", together.stream().filter(at -> !Report.inLastMoments(at)).count(), 0L);
        Report.expect("the lock of another", stolen.get(), 0);
        for (List<Integer> list : List.of(heard, heardByPattern, heardReliably)) {
            Report.expect("messages, each once and in order", list, list.stream().distinct().sorted().toList());
        }
    }

    /** How many are missing of what was done at some moments: of all, or of what a crash may not take. */
    private static long missing(Map<Integer, Long> done, Set<Integer> there, boolean ofAll) {
        return done.entrySet().stream().filter(e -> !there.contains(e.getKey()))
                .filter(e -> ofAll || !Report.inLastMoments(e.getValue())).count();
    }
}
