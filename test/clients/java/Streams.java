import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/** Consumers of streams, while the nodes are replaced; see ../README.md. */
final class Streams {
    private static final int ADDED = 200;

    private final StreamClient client;
    private final List<String> keys; // in several slots
    private final String alone; // a stream that the consumers leave alone
    private final Map<String, Integer> delivered = new ConcurrentHashMap<>();
    private final AtomicLong acknowledged = new AtomicLong();

    Streams(StreamClient client, String prefix) {
        this.client = client;
        keys = IntStream.range(0, 4).mapToObj(i -> prefix + "-streams:" + i).toList();
        alone = prefix + "-streams:alone";
    }

    void run() {
        Report.step("create", this::create);
        Report.step("consume", this::consume);
        Report.step("claim", this::claim);
        Report.step("replace", () -> {
            int n = Report.whileReplaced(i -> client.add(keys.get(i % 4), "meanwhile" + i));
            allDelivered(ADDED + n);
        });
    }

    private void create() {
        List<String> all = new ArrayList<>(keys);
        all.add(alone);
        for (String key : all) {
            client.createGroup(key);
            String why = "";
            try {
                client.createGroup(key);
            } catch (RuntimeException e) {
                why = e + " " + e.getCause();
            }
            Report.expect("BUSYGROUP in " + why, why.contains("BUSYGROUP"), true);
        }
    }

    private void consume() throws Exception {
        for (int i = 0; i < 3; i++) {
            client.consume("consumer" + i, keys, this::work);
        }
        for (int i = 0; i < ADDED; i++) {
            client.add(keys.get(i % 4), "entry" + i);
        }
        allDelivered(ADDED);
        for (String key : keys) {
            Report.expect("XINFO GROUPS", client.group(key), new StreamClient.Group(0, 0, ADDED / 4));
        }
    }

    private void work(String key, List<StreamClient.Entry> entries) {
        entries.forEach(e -> delivered.merge(e.name(), 1, Integer::sum));
        acknowledged.addAndGet(client.ack(key, entries.stream().map(StreamClient.Entry::id).toList()));
    }

    private void allDelivered(int n) throws Exception {
        Report.untilItWorks(() -> {
            Report.expect("acknowledged", acknowledged.get(), (long) n);
            return null;
        }, Report.WORK_MILLIS);
        Report.expect("entries", delivered.size(), n);
        Report.expect("more than once", delivered.values().stream().filter(times -> times > 1).count(), 0L);
    }

    /** A consumer vanishes with 60 of 100 entries. Another one claims these, and acknowledges all but ten. */
    private void claim() {
        List<String> ids = IntStream.range(0, 100).mapToObj(i -> client.add(alone, "alone" + i)).toList();
        Report.expect("XREADGROUP", client.read(alone, "gone", 60), ids.subList(0, 60));
        Report.expect("XPENDING", client.pending(alone), List.of(60L, ids.get(0), ids.get(59), Map.of("gone", 60L)));
        List<String> claimed = new ArrayList<>();
        String start = "0-0";
        do {
            StreamClient.Claimed some = client.claim(alone, "heir", start, 25);
            claimed.addAll(some.ids());
            start = some.next();
        } while (!start.equals("0-0"));
        Report.expect("XAUTOCLAIM", claimed, ids.subList(0, 60));
        Report.expect("XACK", client.ack(alone, claimed.subList(10, 60)), 50L);
        Report.expect("XPENDING", client.pending(alone), List.of(10L, ids.get(0), ids.get(9), Map.of("heir", 10L)));
        Report.expect("XINFO GROUPS", client.group(alone), new StreamClient.Group(10, 40, 60));
    }
}
