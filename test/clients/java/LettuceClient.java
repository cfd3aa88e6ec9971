import io.lettuce.core.KeyScanCursor;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanCursor;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.api.sync.RedisCommands;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

final class LettuceClient implements Client {
    private final StatefulRedisConnection<String, String> connection;
    private final RedisCommands<String, String> commands;

    LettuceClient(String host, int port) {
        connection = RedisClient.create("redis://" + host + ":" + port).connect();
        commands = connection.sync();
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
}
