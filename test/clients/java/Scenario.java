import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The scenario of ../README.md. */
final class Scenario {
    private static final long TTL = 100;
    private static final int PIPELINED = 500; // SETs, and as many GETs
    private static final int WALKED = 300; // fields, and members

    private final Client client;
    private final String prefix;

    Scenario(Client client, String prefix) {
        this.client = client;
        this.prefix = prefix + ":";
    }

    void run() {
        Report.step("connect", () -> Report.expect("PING", client.ping(), "PONG"));
        Report.step("get-or-set", this::getOrSet);
        Report.step("many", this::many);
        Report.step("delete", this::delete);
        Report.step("scan", this::scanAndDelete);
        Report.step("rate-limit", this::rateLimit);
        Report.step("lock", this::lock);
        Report.step("pipeline", this::pipeline);
        Report.step("hash", this::hash);
        Report.step("set", this::set);
        Report.step("sorted-set", this::sortedSet);
        Report.step("list", this::list);
        Report.step("geo", this::geo);
        Messages messages = new Messages(client, prefix);
        Report.step("publish", messages::publish);
        if (client instanceof ShardClient shards) {
            Report.step("shard-publish", () -> messages.shardPublish(shards));
        }
        Report.step("cluster-publish", messages::clusterPublish);
        Report.step("blocking", messages::blocking);
        Report.step("tracking", messages::tracking);
        Report.step("reconnect", this::reconnect);
    }

    private List<String> keys(String name, int n) {
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            keys.add(prefix + name + i);
        }
        return keys;
    }

    private static String[] array(Iterable<String> keys) {
        List<String> all = new ArrayList<>();
        keys.forEach(all::add);
        return all.toArray(new String[0]);
    }

    private void load(List<String> keys) {
        Map<String, String> pairs = new LinkedHashMap<>();
        keys.forEach(k -> pairs.put(k, "value of " + k));
        Report.expect("MSET", client.setMany(pairs), "OK");
    }

    private void getOrSet() {
        String key = prefix + "cached";
        Report.expect("GET of a missing key", client.get(key), null);
        Report.expect("SET", client.set(key, "computed\r\n\0", TTL), "OK");
        Report.expect("GET", client.get(key), "computed\r\n\0");
        Report.expectTtl(client.ttl(key), TTL);
    }

    private void many() {
        List<String> keys = keys("many", 100);
        load(keys);
        List<String> asked = new ArrayList<>(keys);
        List<String> want = new ArrayList<>();
        asked.add(0, prefix + "missing");
        want.add(null);
        keys.forEach(k -> want.add("value of " + k));
        Report.expect("MGET", client.getMany(array(asked)), want);
    }

    private void delete() {
        List<String> keys = keys("many", 100);
        keys.add(prefix + "missing");
        Report.expect("DEL", client.del(array(keys)), 100L);
    }

    private void scanAndDelete() {
        List<String> gone = keys("scanned:", 300);
        List<String> kept = keys("kept:", 10);
        load(gone);
        load(kept);
        Set<String> found = client.scan(prefix + "scanned:*");
        Report.expect("SCAN", found, new HashSet<>(gone));
        Report.expect("DEL", client.del(array(found)), 300L);
        Report.expect("SCAN of what was kept", client.scan(prefix + "kept:*"), new HashSet<>(kept));
    }

    private void rateLimit() {
        String key = prefix + "limited";
        for (long i = 1; i <= 5; i++) {
            Report.expect("INCR", client.incr(key), i);
            if (i == 1) {
                Report.expect("EXPIRE", client.expire(key, TTL), true);
            }
        }
        Report.expectTtl(client.ttl(key), TTL);
    }

    private void lock() {
        String key = prefix + "lock";
        Report.expect("SET NX", client.setAbsent(key, "mine", TTL), true);
        Report.expect("the second SET NX", client.setAbsent(key, "theirs", TTL), false);
        Report.expect("compare and delete by another", client.deleteIfEqual(key, "theirs"), false);
        Report.expect("compare and delete", client.deleteIfEqual(key, "mine"), true);
        Report.expect("GET of the released lock", client.get(key), null);
    }

    private void pipeline() throws Exception {
        List<String> keys = keys("piped", PIPELINED);
        Report.expect("a pipeline", client.pipeline(keys), keys); // each key holds its own name
    }

    private void hash() {
        String key = prefix + "hash";
        Report.expect("HSET", client.setFields(key, Map.of("name", "Ada", "visits", "41")), 2L);
        Report.expect("HINCRBY", client.addToField(key, "visits", 1), 42L);
        Report.expect("HGETALL", client.fields(key), Map.of("name", "Ada", "visits", "42"));
        Report.expect("HEXPIRE", client.expireField(key, "visits", TTL), List.of(1L));
        Map<String, String> many = new LinkedHashMap<>();
        for (int i = 0; i < WALKED; i++) {
            many.put("field" + i, String.valueOf(i));
        }
        Report.expect("HSET", client.setFields(prefix + "fields", many), (long) WALKED);
        Report.expect("HSCAN", client.walkFields(prefix + "fields"), many);
    }

    private void set() {
        String one = prefix + "{set}:1", other = prefix + "{set}:2";
        List<String> members = keys("member", WALKED);
        Report.expect("SADD", client.add(one, array(members)), (long) WALKED);
        Report.expect("SADD", client.add(other, members.get(1), members.get(2), "else"), 3L);
        Report.expect("SINTER", client.common(one, other), Set.of(members.get(1), members.get(2)));
        Report.expect("SSCAN", client.walkMembers(one), new HashSet<>(members));
    }

    private void sortedSet() {
        String key = prefix + "board";
        Report.expect("ZADD", client.rank(key, Map.of("Ada", 1.0, "Bob", 2.5, "Cy", 3.0)), 3L);
        Report.expect("ZINCRBY", client.raise(key, "Ada", 2), 3.0);
        Report.expect("ZRANGE REV", client.best(key, 3), List.of("Cy 3.0", "Ada 3.0", "Bob 2.5"));
    }

    private void list() {
        String queue = prefix + "{list}:queue";
        Report.expect("RPUSH", client.push(queue, "a", "b", "c"), 3L);
        Report.expect("LMOVE", client.move(queue, prefix + "{list}:done"), "a");
        Report.expect("LRANGE", client.items(queue), List.of("b", "c"));
    }

    private void geo() {
        String key = prefix + "towns";
        Report.expect("GEOADD", client.place(key, "Palermo", 13.361389, 38.115556), 1L);
        Report.expect("GEOADD", client.place(key, "Catania", 15.087269, 37.502669), 1L);
        Report.expect("GEODIST", Math.round(client.apart(key, "Palermo", "Catania")), 166L);
        Report.expect("GEOSEARCH", client.near(key, 15, 37, 200), List.of("Catania", "Palermo"));
    }

    private void reconnect() throws Exception {
        Report.restarted();
        String key = prefix + "cached";
        Report.untilItWorks(() -> client.set(key, "again", TTL));
        Report.expect("GET", client.get(key), "again");
        pipeline();
    }
}
