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

    private void reconnect() throws Exception {
        Report.restarted();
        String key = prefix + "cached";
        Report.untilItWorks(() -> client.set(key, "again", TTL));
        Report.expect("GET", client.get(key), "again");
        pipeline();
    }
}
