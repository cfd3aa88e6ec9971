import io.lettuce.core.GeoArgs;
import io.lettuce.core.GeoSearch;
import io.lettuce.core.GeoWithin;
import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.KeyValue;
import io.lettuce.core.LMoveArgs;
import io.lettuce.core.MapScanCursor;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanCursor;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.SetArgs;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.models.partitions.RedisClusterNode;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import io.lettuce.core.pubsub.api.sync.RedisPubSubCommands;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.CacheFrontend;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

final class LettuceClient implements Client, ShardClient {
    private final RedisClient client;
    private final StatefulRedisConnection<String, String> connection;
    private final RedisCommands<String, String> commands;
    private final RedisCommands<String, String> waiting; // of a connection that may be blocked

    LettuceClient(String host, int port) {
        client = RedisClient.create("redis://" + host + ":" + port);
        connection = client.connect();
        commands = connection.sync();
        waiting = client.connect().sync();
    }

    public String ping() {
        return commands.ping();
    }

    public String get(String key) {
        return commands.get(key);
    }

    public String set(String key, String value, long ttl) {
        return commands.set(key, value, SetArgs.Builder.ex(ttl));
    }

    public long ttl(String key) {
        return commands.ttl(key);
    }

    public String setMany(Map<String, String> pairs) {
        return commands.mset(pairs);
    }

    public List<String> getMany(String... keys) {
        List<String> values = new ArrayList<>();
        for (KeyValue<String, String> pair : commands.mget(keys)) {
            values.add(pair.getValueOrElse(null));
        }
        return values;
    }

    public long del(String... keys) {
        return commands.del(keys);
    }

    public Set<String> scan(String pattern) {
        Set<String> found = new HashSet<>();
        ScanCursor cursor = ScanCursor.INITIAL;
        while (!cursor.isFinished()) {
            KeyScanCursor<String> next = commands.scan(cursor, ScanArgs.Builder.matches(pattern));
            found.addAll(next.getKeys());
            cursor = next;
        }
        return found;
    }

    public long incr(String key) {
        return commands.incr(key);
    }

    public boolean expire(String key, long ttl) {
        return commands.expire(key, ttl);
    }

    public boolean setAbsent(String key, String value, long ttl) {
        return commands.set(key, value, SetArgs.Builder.nx().ex(ttl)) != null;
    }

    public boolean deleteIfEqual(String key, String value) {
        commands.watch(key);
        if (!value.equals(commands.get(key))) {
            commands.unwatch();
            return false;
        }
        commands.multi();
        commands.del(key);
        return !commands.exec().wasDiscarded();
    }

    public List<String> pipeline(List<String> keys) throws Exception {
        RedisAsyncCommands<String, String> async = connection.async();
        List<RedisFuture<String>> gets = new ArrayList<>();
        connection.setAutoFlushCommands(false);
        for (String k : keys) {
            async.set(k, k);
            gets.add(async.get(k));
        }
        connection.flushCommands();
        connection.setAutoFlushCommands(true);
        List<String> values = new ArrayList<>();
        for (RedisFuture<String> get : gets) {
            values.add(get.get());
        }
        return values;
    }

    public long setFields(String key, Map<String, String> fields) {
        return commands.hset(key, fields);
    }

    public long addToField(String key, String field, long n) {
        return commands.hincrby(key, field, n);
    }

    public Map<String, String> fields(String key) {
        return commands.hgetall(key);
    }

    public List<Long> expireField(String key, String field, long ttl) {
        return commands.hexpire(key, ttl, field);
    }

    public Map<String, String> walkFields(String key) {
        Map<String, String> found = new HashMap<>();
        ScanCursor cursor = ScanCursor.INITIAL;
        while (!cursor.isFinished()) {
            MapScanCursor<String, String> next = commands.hscan(key, cursor);
            found.putAll(next.getMap());
            cursor = next;
        }
        return found;
    }

    public long add(String key, String... members) {
        return commands.sadd(key, members);
    }

    public Set<String> common(String... keys) {
        return commands.sinter(keys);
    }

    public Set<String> walkMembers(String key) {
        Set<String> found = new HashSet<>();
        ScanIterator.sscan(commands, key).forEachRemaining(found::add);
        return found;
    }

    public long rank(String key, Map<String, Double> scores) {
        long added = 0;
        for (Map.Entry<String, Double> member : scores.entrySet()) {
            added += commands.zadd(key, member.getValue(), member.getKey());
        }
        return added;
    }

    public double raise(String key, String member, double by) {
        return commands.zincrby(key, by, member);
    }

    public List<String> best(String key, int n) {
        return commands.zrevrangeWithScores(key, 0, n - 1).stream()
                .map(m -> m.getValue() + " " + m.getScore()).toList();
    }

    public long push(String key, String... items) {
        return commands.rpush(key, items);
    }

    public String move(String from, String to) {
        return commands.lmove(from, to, LMoveArgs.Builder.leftRight());
    }

    public List<String> items(String key) {
        return commands.lrange(key, 0, -1);
    }

    public long place(String key, String name, double longitude, double latitude) {
        return commands.geoadd(key, longitude, latitude, name);
    }

    public double apart(String key, String a, String b) {
        return commands.geodist(key, a, b, GeoArgs.Unit.km);
    }

    public List<String> near(String key, double longitude, double latitude, double radius) {
        return commands.geosearch(key, GeoSearch.fromCoordinates(longitude, latitude),
                GeoSearch.byRadius(radius, GeoArgs.Unit.km), new GeoArgs().asc())
                .stream().map(GeoWithin::getMember).toList();
    }

    /** Opens a connection for a listener. */
    private RedisPubSubCommands<String, String> listening(Listener listener) {
        return listening(client.connectPubSub(), listener);
    }

    private static RedisPubSubCommands<String, String> listening(
            StatefulRedisPubSubConnection<String, String> own, Listener listener) {
        own.addListener(new RedisPubSubAdapter<>() {
            @Override
            public void message(String channel, String text) {
                listener.hear(channel, text);
            }

            @Override
            public void message(String pattern, String channel, String text) {
                listener.hear(pattern, channel, text);
            }

            @Override
            public void smessage(String channel, String text) {
                listener.hear(channel, text);
            }
        });
        return own.sync();
    }

    public void subscribe(String channel, Listener listener) {
        listening(listener).subscribe(channel);
    }

    public void psubscribe(String pattern, Listener listener) {
        listening(listener).psubscribe(pattern);
    }

    public void ssubscribe(String channel, Listener listener) {
        listening(listener).ssubscribe(channel);
    }

    public long publish(String channel, String text) {
        return commands.publish(channel, text);
    }

    public long spublish(String channel, String text) {
        return commands.spublish(channel, text);
    }

    public Cluster openCluster(String host, int port) {
        RedisClusterClient client = RedisClusterClient.create("redis://" + host + ":" + port);
        StatefulRedisClusterConnection<String, String> cluster = client.connect();
        return new Cluster() {
            public Report.Step subscribe(String channel, Listener listener) {
                RedisPubSubCommands<String, String> own = listening(client.connectPubSub(), listener);
                own.subscribe(channel);
                return () -> own.unsubscribe(channel);
            }

            public Report.Step psubscribe(String pattern, Listener listener) {
                RedisPubSubCommands<String, String> own = listening(client.connectPubSub(), listener);
                own.psubscribe(pattern);
                return () -> own.punsubscribe(pattern);
            }

            public long publish(String channel, String text) {
                return cluster.sync().publish(channel, text);
            }

            public List<Long> publishAtAll(String channel, String text) {
                List<Long> counts = new ArrayList<>();
                for (RedisClusterNode node : cluster.getPartitions()) {
                    counts.add(cluster.getConnection(node.getNodeId()).sync().publish(channel, text));
                }
                return counts;
            }
        };
    }

    public List<String> popFirst(double timeout, String... keys) {
        KeyValue<String, String> popped = waiting.blpop(timeout, keys);
        return popped == null ? null : List.of(popped.getKey(), popped.getValue());
    }

    public String awaitMove(String from, String to, double timeout) {
        return waiting.blmove(from, to, LMoveArgs.Builder.leftRight(), timeout);
    }

    public List<String> awaitLowest(String key, double timeout) {
        KeyValue<String, ScoredValue<String>> popped = waiting.bzpopmin(timeout, key);
        ScoredValue<String> lowest = popped.getValue();
        return List.of(popped.getKey(), lowest.getValue(), String.valueOf(lowest.getScore()));
    }

    public String info() {
        return commands.info("clients");
    }

    public Cache openCache() {
        Map<String, String> kept = new ConcurrentHashMap<>();
        CacheFrontend<String, String> caching = ClientSideCaching.enable(
                CacheAccessor.forMap(kept), client.connect(), TrackingArgs.Builder.enabled());
        return new Cache() {
            public String get(String key) {
                return caching.get(key);
            }

            public boolean has(String key) {
                return kept.containsKey(key);
            }
        };
    }
}
