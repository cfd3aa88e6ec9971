import io.lettuce.core.Consumer;
import io.lettuce.core.RedisClient;
import io.lettuce.core.StreamMessage;
import io.lettuce.core.XAutoClaimArgs;
import io.lettuce.core.XGroupCreateArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.XReadArgs.StreamOffset;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.models.stream.ClaimedMessages;
import io.lettuce.core.models.stream.PendingMessages;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

final class LettuceStreams implements StreamClient {
    private final RedisClient client;
    private final RedisCommands<String, String> commands;

    LettuceStreams(String host, int port) {
        client = RedisClient.create("redis://" + host + ":" + port);
        commands = client.connect().sync();
    }

    public void createGroup(String key) {
        commands.xgroupCreate(StreamOffset.latest(key), GROUP, XGroupCreateArgs.Builder.mkstream());
    }

    public String add(String key, String name) {
        return commands.xadd(key, Map.of("name", name));
    }

    /** Waits on a connection of its own: other commands would wait behind it. */
    public void consume(String consumer, List<String> keys, BiConsumer<String, List<Entry>> work) {
        RedisCommands<String, String> own = client.connect().sync();
        Report.loop(() -> {
            for (StreamMessage<String, String> m : newOf(own, keys, consumer, 10)) {
                work.accept(m.getStream(), List.of(new Entry(m.getId(), m.getBody().get("name"))));
            }
        });
    }

    public List<String> read(String key, String consumer, int count) {
        return newOf(commands, List.of(key), consumer, count).stream().map(StreamMessage::getId).toList();
    }

    @SuppressWarnings("unchecked")
    private static List<StreamMessage<String, String>> newOf(RedisCommands<String, String> commands, List<String> keys,
            String consumer, int count) {
        return commands.xreadgroup(Consumer.from(GROUP, consumer), XReadArgs.Builder.count(count).block(2000),
                keys.stream().map(StreamOffset::lastConsumed).toArray(StreamOffset[]::new));
    }

    public long ack(String key, List<String> ids) {
        return commands.xack(key, GROUP, ids.toArray(new String[0]));
    }

    public Claimed claim(String key, String consumer, String start, int count) {
        ClaimedMessages<String, String> some = commands.xautoclaim(key, new XAutoClaimArgs<String>()
                .consumer(Consumer.from(GROUP, consumer)).minIdleTime(0).startId(start).count(count));
        return new Claimed(some.getId(), some.getMessages().stream().map(StreamMessage::getId).toList());
    }

    public List<Object> pending(String key) {
        PendingMessages p = commands.xpending(key, GROUP);
        return List.of(p.getCount(), p.getMessageIds().getLower().getValue(), p.getMessageIds().getUpper().getValue(),
                p.getConsumerMessageCount());
    }

    /** Lettuce leaves the reply as it is: names and values. */
    public Group group(String key) {
        List<?> g = (List<?>) commands.xinfoGroups(key).get(0);
        return new Group((Long) after(g, "pending"), (Long) after(g, "lag"), (Long) after(g, "entries-read"));
    }

    private static Object after(List<?> reply, String name) {
        return reply.get(reply.indexOf(name) + 1);
    }
}
