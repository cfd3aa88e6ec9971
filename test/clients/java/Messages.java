import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Channels, pops that wait and a library's cache: what takes more than one connection. */
final class Messages {
    private static final int SENT = 20; // messages
    private static final int CLUSTERED = 4; // channels, of several nodes
    private static final long HEARD_SECONDS = 10;
    private static final double SHORTLY = 0.1; // seconds until a pop of an empty list gives up
    private static final double LONG = 10; // seconds for what is pushed

    private final Client client;
    private final String prefix;

    Messages(Client client, String prefix) {
        this.client = client;
        this.prefix = prefix;
    }

    /** What a listener hears: the channel and the text, behind the pattern if it listens to one. */
    private static final class Ear {
        private final BlockingQueue<List<String>> heard = new LinkedBlockingQueue<>();

        void hear(String... words) {
            heard.add(List.of(words));
        }

        /** Expects messages, each once and in order. */
        void expect(List<List<String>> messages) throws InterruptedException {
            for (List<String> message : messages) {
                Report.expect("a listener", heard.poll(HEARD_SECONDS, TimeUnit.SECONDS), message);
            }
        }
    }

    private static List<String> texts() {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < SENT; i++) {
            texts.add("message" + i);
        }
        return texts;
    }

    void publish() throws Exception {
        String channel = prefix + "news", pattern = prefix + "ne*";
        Ear plain = new Ear(), matching = new Ear();
        client.subscribe(channel, plain::hear);
        client.psubscribe(pattern, matching::hear);
        for (String text : texts()) {
            Report.expect("PUBLISH", client.publish(channel, text), 2L);
        }
        plain.expect(texts().stream().map(text -> List.of(channel, text)).toList());
        matching.expect(texts().stream().map(text -> List.of(pattern, channel, text)).toList());
    }

    /** Who listens to a channel of a shard channel's name hears other messages. */
    void shardPublish(ShardClient shards) throws Exception {
        String channel = prefix + "shard";
        Ear shard = new Ear(), plain = new Ear();
        shards.ssubscribe(channel, shard::hear);
        client.subscribe(channel, plain::hear);
        for (String text : texts()) {
            Report.expect("SPUBLISH", shards.spublish(channel, text), 1L);
        }
        shard.expect(texts().stream().map(text -> List.of(channel, text)).toList());
        Report.expect("PUBLISH", client.publish(channel, "plain"), 1L);
        plain.expect(List.of(List.of(channel, "plain")));
    }

    /** Listens at nodes, and publishes at all of them, until nobody listens. */
    void clusterPublish() throws Exception {
        String[] node = Report.node();
        Client.Cluster cluster = client.openCluster(node[0], Integer.parseInt(node[1]));
        String pattern = prefix + "nodes*";
        Ear matching = new Ear();
        Report.Step punsubscribe = cluster.psubscribe(pattern, matching::hear);
        for (int i = 0; i < CLUSTERED; i++) {
            String channel = prefix + "nodes" + i;
            Ear plain = new Ear();
            Report.Step unsubscribe = cluster.subscribe(channel, plain::hear);
            List<String> texts = texts();
            for (String text : texts) {
                Report.expect("PUBLISH", cluster.publish(channel, text), 2L);
            }
            Report.expect("PUBLISH", cluster.publishAtAll(channel, "at all"), List.of(2L, 2L, 2L));
            texts.addAll(List.of("at all", "at all", "at all"));
            plain.expect(texts.stream().map(text -> List.of(channel, text)).toList());
            unsubscribe.run();
            Report.expect("PUBLISH", cluster.publish(channel, "last"), 1L);
            texts.add("last");
            matching.expect(texts.stream().map(text -> List.of(pattern, channel, text)).toList());
        }
        punsubscribe.run();
        Report.expect("PUBLISH", cluster.publish(prefix + "nodes0", "unheard"), 0L);
    }

    /** Pops of an empty list until the time is up, and then of what another connection pushes. */
    void blocking() throws Exception {
        String none = prefix + "none", queue = prefix + "{wait}:queue", done = prefix + "{wait}:done";
        String board = prefix + "waited";
        long begin = System.nanoTime();
        Report.expect("BLPOP of an empty list", client.popFirst(SHORTLY, none), null);
        Report.expect("its time is up", System.nanoTime() - begin >= SHORTLY * 1e9, true);
        Pushed pushed = new Pushed(() -> client.push(queue, "a"));
        Report.expect("BLPOP", client.popFirst(LONG, none, queue), List.of(queue, "a"));
        pushed.end();
        pushed = new Pushed(() -> client.push(queue, "b", "c"));
        Report.expect("BLMOVE", client.awaitMove(queue, done, LONG), "b");
        pushed.end();
        Report.expect("the source", client.items(queue), List.of("c"));
        Report.expect("the target", client.items(done), List.of("b"));
        pushed = new Pushed(() -> client.rank(board, Map.of("Ada", 1.5)));
        Report.expect("BZPOPMIN", client.awaitLowest(board, LONG), List.of(board, "Ada", "1.5"));
        pushed.end();
    }

    /** Pushes in a thread of its own, as soon as a client is blocked. */
    private final class Pushed {
        private final Thread thread;
        private Exception failure;

        Pushed(Report.Step push) {
            thread = new Thread(() -> {
                try {
                    Report.untilItWorks(() -> {
                        List<String> lines = client.info().lines().toList();
                        Report.expect("a client is blocked", lines.contains("blocked_clients:1"), true);
                        return null;
                    });
                    push.run();
                } catch (Exception e) {
                    failure = e;
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        void end() throws Exception {
            thread.join();
            if (failure != null) {
                throw failure;
            }
        }
    }

    /** Reads through the library's cache what another connection changes. */
    void tracking() throws Exception {
        String key = prefix + "tracked";
        Client.Cache cache = client.openCache();
        for (int turn = 0; turn < 5; turn++) {
            String value = "value" + turn;
            client.set(key, value, 100);
            Report.untilItWorks(() -> { // until the invalidation has come
                Report.expect("a cached GET", cache.get(key), value);
                return null;
            });
            Report.untilItWorks(() -> { // until the value is kept
                Report.expect("the cache has it", cache.has(key), true);
                Report.expect("a cached GET", cache.get(key), value);
                return null;
            });
        }
    }
}
