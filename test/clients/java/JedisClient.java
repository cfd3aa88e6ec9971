import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.CommandObjects;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPool;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.ScanIteration;
import redis.clients.jedis.args.GeoUnit;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.csc.CacheConfig;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.params.GeoSearchParam;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.ZRangeParams;
import redis.clients.jedis.resps.GeoRadiusResponse;
import redis.clients.jedis.resps.ScanResult;
import redis.clients.jedis.resps.Tuple;
import redis.clients.jedis.util.KeyValue;

final class JedisClient implements Client {
    private final HostAndPort address;
    private final RedisClient jedis;

    JedisClient(String host, int port) {
        address = new HostAndPort(host, port);
        jedis = RedisClient.create(host, port);
    }

    public String ping() {
        return jedis.ping();
    }

    public String get(String key) {
        return jedis.get(key);
    }

    public String set(String key, String value, long ttl) {
        return jedis.set(key, value, SetParams.setParams().ex(ttl));
    }

    public long ttl(String key) {
        return jedis.ttl(key);
    }

    public String setMany(Map<String, String> pairs) {
        List<String> flat = new ArrayList<>();
        pairs.forEach((k, v) -> flat.addAll(List.of(k, v)));
        return jedis.mset(flat.toArray(new String[0]));
    }

    public List<String> getMany(String... keys) {
        return jedis.mget(keys);
    }

    public long del(String... keys) {
        return jedis.del(keys);
    }

    public Set<String> scan(String pattern) {
        Set<String> found = new HashSet<>();
        ScanIteration scan = jedis.scanIteration(100, pattern);
        while (!scan.isIterationCompleted()) {
            found.addAll(scan.nextBatchList());
        }
        return found;
    }

    public long incr(String key) {
        return jedis.incr(key);
    }

    public boolean expire(String key, long ttl) {
        return jedis.expire(key, ttl) == 1;
    }

    public boolean setAbsent(String key, String value, long ttl) {
        return jedis.set(key, value, SetParams.setParams().nx().ex(ttl)) != null;
    }

    public boolean deleteIfEqual(String key, String value) {
        try (AbstractTransaction t = jedis.transaction(false)) {
            t.watch(key);
            if (!value.equals(jedis.get(key))) {
                return false;
            }
            t.multi();
            t.del(key);
            return t.exec() != null;
        }
    }

    public List<String> pipeline(List<String> keys) {
        List<Response<String>> gets = new ArrayList<>();
        try (AbstractPipeline p = jedis.pipelined()) {
            for (String k : keys) {
                p.set(k, k);
                gets.add(p.get(k));
            }
        }
        return gets.stream().map(Response::get).toList();
    }

    public long setFields(String key, Map<String, String> fields) {
        return jedis.hset(key, fields);
    }

    public long addToField(String key, String field, long n) {
        return jedis.hincrBy(key, field, n);
    }

    public Map<String, String> fields(String key) {
        return jedis.hgetAll(key);
    }

    public List<Long> expireField(String key, String field, long ttl) {
        return jedis.hexpire(key, ttl, field);
    }

    public Map<String, String> walkFields(String key) {
        Map<String, String> found = new HashMap<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<Map.Entry<String, String>> some = jedis.hscan(key, cursor);
            some.getResult().forEach(f -> found.put(f.getKey(), f.getValue()));
            cursor = some.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        return found;
    }

    public long add(String key, String... members) {
        return jedis.sadd(key, members);
    }

    public Set<String> common(String... keys) {
        return jedis.sinter(keys);
    }

    public Set<String> walkMembers(String key) {
        Set<String> found = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            ScanResult<String> some = jedis.sscan(key, cursor);
            found.addAll(some.getResult());
            cursor = some.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        return found;
    }

    public long rank(String key, Map<String, Double> scores) {
        return jedis.zadd(key, scores);
    }

    public double raise(String key, String member, double by) {
        return jedis.zincrby(key, by, member);
    }

    public List<String> best(String key, int n) {
        return jedis.zrangeWithScores(key, ZRangeParams.zrangeParams(0, n - 1).rev()).stream()
                .map(t -> t.getElement() + " " + t.getScore()).toList();
    }

    public long push(String key, String... items) {
        return jedis.rpush(key, items);
    }

    public String move(String from, String to) {
        return jedis.lmove(from, to, ListDirection.LEFT, ListDirection.RIGHT);
    }

    public List<String> items(String key) {
        return jedis.lrange(key, 0, -1);
    }

    public long place(String key, String name, double longitude, double latitude) {
        return jedis.geoadd(key, longitude, latitude, name);
    }

    public double apart(String key, String a, String b) {
        return jedis.geodist(key, a, b, GeoUnit.KM);
    }

    public List<String> near(String key, double longitude, double latitude, double radius) {
        GeoSearchParam search = GeoSearchParam.geoSearchParam()
                .fromLonLat(longitude, latitude).byRadius(radius, GeoUnit.KM).asc();
        return jedis.geosearch(key, search).stream().map(GeoRadiusResponse::getMemberByString).toList();
    }

    /** The library's thread is the one that subscribes. */
    private static final class Subscriber extends JedisPubSub {
        private final Listener listener;
        private final CountDownLatch confirmed = new CountDownLatch(1), ended = new CountDownLatch(1);

        Subscriber(Listener listener) {
            this.listener = listener;
        }

        void start(Consumer<JedisPubSub> subscribe) throws InterruptedException {
            Thread thread = new Thread(() -> {
                try {
                    subscribe.accept(this);
                } catch (JedisConnectionException e) {
                    System.err.println(e); // the proxy restarts
                }
                ended.countDown();
            });
            thread.setDaemon(true);
            thread.start();
            confirmed.await();
        }

        /** Ends the subscription with one of the library's calls. */
        void end(Runnable unsubscribe) throws InterruptedException {
            unsubscribe.run();
            ended.await();
        }

        @Override
        public void onSubscribe(String channel, int count) {
            confirmed.countDown();
        }

        @Override
        public void onPSubscribe(String pattern, int count) {
            confirmed.countDown();
        }

        @Override
        public void onMessage(String channel, String text) {
            listener.hear(channel, text);
        }

        @Override
        public void onPMessage(String pattern, String channel, String text) {
            listener.hear(pattern, channel, text);
        }
    }

    public void subscribe(String channel, Listener listener) throws InterruptedException {
        new Subscriber(listener).start(s -> jedis.subscribe(s, channel));
    }

    public void psubscribe(String pattern, Listener listener) throws InterruptedException {
        new Subscriber(listener).start(s -> jedis.psubscribe(s, pattern));
    }

    public long publish(String channel, String text) {
        return jedis.publish(channel, text);
    }

    public Cluster openCluster(String host, int port) {
        RedisClusterClient cluster = RedisClusterClient.create(new HostAndPort(host, port));
        CommandObjects commands = new CommandObjects(RedisProtocol.RESP2);
        return new Cluster() {
            public Report.Step subscribe(String channel, Listener listener) throws InterruptedException {
                Subscriber subscriber = new Subscriber(listener);
                subscriber.start(s -> cluster.subscribe(s, channel));
                return () -> subscriber.end(subscriber::unsubscribe);
            }

            public Report.Step psubscribe(String pattern, Listener listener) throws InterruptedException {
                Subscriber subscriber = new Subscriber(listener);
                subscriber.start(s -> cluster.psubscribe(s, pattern));
                return () -> subscriber.end(subscriber::punsubscribe);
            }

            public long publish(String channel, String text) {
                return cluster.publish(channel, text);
            }

            public List<Long> publishAtAll(String channel, String text) {
                List<Long> counts = new ArrayList<>();
                for (ConnectionPool node : cluster.getClusterNodes().values()) {
                    try (Connection connection = node.getResource()) {
                        counts.add(connection.executeCommand(commands.publish(channel, text)));
                    }
                }
                return counts;
            }
        };
    }

    public List<String> popFirst(double timeout, String... keys) {
        KeyValue<String, String> popped = jedis.blpop(timeout, keys);
        return popped == null ? null : List.of(popped.getKey(), popped.getValue());
    }

    public String awaitMove(String from, String to, double timeout) {
        return jedis.blmove(from, to, ListDirection.LEFT, ListDirection.RIGHT, timeout);
    }

    public List<String> awaitLowest(String key, double timeout) {
        KeyValue<String, Tuple> popped = jedis.bzpopmin(timeout, key);
        Tuple lowest = popped.getValue();
        return List.of(popped.getKey(), lowest.getElement(), String.valueOf(lowest.getScore()));
    }

    public String info() {
        return jedis.info("clients");
    }

    public Cache openCache() {
        RedisClient caching = RedisClient.builder().hostAndPort(address)
                .clientConfig(DefaultJedisClientConfig.builder().resp3().build())
                .cacheConfig(CacheConfig.builder().maxSize(100).build()).build();
        return new Cache() {
            public String get(String key) {
                return caching.get(key);
            }

            public boolean has(String key) {
                long hits = caching.getCache().getStats().getHitCount();
                caching.get(key);
                return caching.getCache().getStats().getHitCount() > hits;
            }
        };
    }
}
