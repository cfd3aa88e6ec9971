import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.params.XAutoClaimParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.resps.StreamEntry;
import redis.clients.jedis.resps.StreamGroupInfo;
import redis.clients.jedis.resps.StreamPendingSummary;

final class JedisStreams implements StreamClient {
    private final RedisClient jedis;

    JedisStreams(String host, int port) {
        jedis = RedisClient.create(host, port);
    }

    public void createGroup(String key) {
        jedis.xgroupCreate(key, GROUP, new StreamEntryID(), true);
    }

    public String add(String key, String name) {
        return jedis.xadd(key, StreamEntryID.NEW_ENTRY, Map.of("name", name)).toString();
    }

    public void consume(String consumer, List<String> keys, BiConsumer<String, List<Entry>> work) {
        Report.loop(() -> newOf(keys, consumer, 10).forEach(work));
    }

    public List<String> read(String key, String consumer, int count) {
        return newOf(List.of(key), consumer, count).get(key).stream().map(Entry::id).toList();
    }

    private Map<String, List<Entry>> newOf(List<String> keys, String consumer, int count) {
        Map<String, StreamEntryID> offsets = new HashMap<>();
        keys.forEach(key -> offsets.put(key, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
        Map<String, List<StreamEntry>> read = jedis.xreadGroupAsMap(GROUP, consumer,
                XReadGroupParams.xReadGroupParams().count(count).block(2000), offsets);
        Map<String, List<Entry>> found = new HashMap<>();
        if (read != null) {
            read.forEach((key, entries) -> found.put(key, entries.stream()
                    .map(e -> new Entry(e.getID().toString(), e.getFields().get("name"))).toList()));
        }
        return found;
    }

    public long ack(String key, List<String> ids) {
        return jedis.xack(key, GROUP, ids.stream().map(StreamEntryID::new).toArray(StreamEntryID[]::new));
    }

    public Claimed claim(String key, String consumer, String start, int count) {
        Map.Entry<StreamEntryID, List<StreamEntry>> some = jedis.xautoclaim(key, GROUP, consumer, 0,
                new StreamEntryID(start), XAutoClaimParams.xAutoClaimParams().count(count));
        return new Claimed(some.getKey().toString(), some.getValue().stream().map(e -> e.getID().toString()).toList());
    }

    public List<Object> pending(String key) {
        StreamPendingSummary p = jedis.xpending(key, GROUP);
        return List.of(p.getTotal(), p.getMinId().toString(), p.getMaxId().toString(), p.getConsumerMessageCount());
    }

    public Group group(String key) {
        StreamGroupInfo g = jedis.xinfoGroups(key).get(0);
        Map<String, Object> raw = g.getGroupInfo();
        return new Group(g.getPending(), (Long) raw.get("lag"), (Long) raw.get("entries-read"));
    }
}
