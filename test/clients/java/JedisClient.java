import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import redis.clients.jedis.AbstractPipeline;
import redis.clients.jedis.AbstractTransaction;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.ScanIteration;
import redis.clients.jedis.params.SetParams;

final class JedisClient implements Client {
    private final RedisClient jedis;

    JedisClient(String host, int port) {
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
}
