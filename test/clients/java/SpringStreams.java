import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.springframework.data.domain.Range;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.stream.Consumer;
import org.springframework.data.redis.connection.stream.MapRecord;
import org.springframework.data.redis.connection.stream.PendingMessage;
import org.springframework.data.redis.connection.stream.PendingMessagesSummary;
import org.springframework.data.redis.connection.stream.ReadOffset;
import org.springframework.data.redis.connection.stream.RecordId;
import org.springframework.data.redis.connection.stream.StreamInfo.XInfoGroup;
import org.springframework.data.redis.connection.stream.StreamOffset;
import org.springframework.data.redis.connection.stream.StreamReadOptions;
import org.springframework.data.redis.core.StreamOperations;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.stream.StreamMessageListenerContainer;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamMessageListenerContainerOptions;
import org.springframework.data.redis.stream.StreamMessageListenerContainer.StreamReadRequest;

/** Spring Data Redis's template and its listener container, over Lettuce. */
final class SpringStreams implements StreamClient {
    private final StreamOperations<String, String, String> streams;
    private final StreamMessageListenerContainer<String, MapRecord<String, String, String>> container;

    SpringStreams(String host, int port) {
        LettuceConnectionFactory factory = new LettuceConnectionFactory(host, port);
        factory.start();
        streams = new StringRedisTemplate(factory).opsForStream();
        container = StreamMessageListenerContainer.create(factory, StreamMessageListenerContainerOptions.builder()
                .batchSize(10).pollTimeout(Duration.ofSeconds(2)).build());
        container.start();
    }

    public void createGroup(String key) {
        streams.createGroup(key, ReadOffset.latest(), GROUP);
    }

    public String add(String key, String name) {
        return streams.add(key, Map.of("name", name)).getValue();
    }

    /** Without cancelOnError the container would give up a stream at the first error. */
    public void consume(String consumer, List<String> keys, BiConsumer<String, List<Entry>> work) {
        for (String key : keys) {
            container.register(StreamReadRequest.builder(StreamOffset.create(key, ReadOffset.lastConsumed()))
                    .consumer(Consumer.from(GROUP, consumer)).autoAcknowledge(false).cancelOnError(t -> false).build(),
                    m -> work.accept(key, List.of(new Entry(m.getId().getValue(), m.getValue().get("name")))));
        }
    }

    @SuppressWarnings("unchecked")
    public List<String> read(String key, String consumer, int count) {
        return streams.read(Consumer.from(GROUP, consumer), StreamReadOptions.empty().count(count),
                StreamOffset.create(key, ReadOffset.lastConsumed())).stream().map(m -> m.getId().getValue()).toList();
    }

    public long ack(String key, List<String> ids) {
        return streams.acknowledge(key, GROUP, ids.toArray(new String[0]));
    }

    /** There is no XAUTOCLAIM, so this claims what XPENDING shows of the consumer that is gone, to the last. */
    public Claimed claim(String key, String consumer, String start, int count) {
        RecordId[] left = streams.pending(key, Consumer.from(GROUP, "gone"), Range.unbounded(), count).stream()
                .map(PendingMessage::getId).toArray(RecordId[]::new);
        if (left.length == 0) {
            return new Claimed("0-0", List.of());
        }
        return new Claimed("more", streams.claim(key, GROUP, consumer, Duration.ZERO, left).stream()
                .map(m -> m.getId().getValue()).toList());
    }

    public List<Object> pending(String key) {
        PendingMessagesSummary p = streams.pending(key, GROUP);
        return List.of(p.getTotalPendingMessages(), p.minMessageId(), p.maxMessageId(),
                p.getPendingMessagesPerConsumer());
    }

    public Group group(String key) {
        XInfoGroup g = streams.groups(key).get(0);
        return new Group(g.pendingCount(), (Long) g.getRaw().get("lag"), (Long) g.getRaw().get("entries-read"));
    }
}
