import java.util.List;
import java.util.function.BiConsumer;

/** What a library knows of streams and consumer groups, in its own way. The group is "workers". */
interface StreamClient {
    String GROUP = "workers";

    record Entry(String id, String name) {
    }

    /** Entries that were claimed, and where the next call begins. */
    record Claimed(String next, List<String> ids) {
    }

    /** How many entries are pending, are left to read, and were read. */
    record Group(long pending, long lag, long read) {
    }

    void createGroup(String key);

    String add(String key, String name);

    /** Reads new entries until the program ends, and calls work with a stream and what was read of it. */
    void consume(String consumer, List<String> keys, BiConsumer<String, List<Entry>> work);

    List<String> read(String key, String consumer, int count);

    long ack(String key, List<String> ids);

    Claimed claim(String key, String consumer, String start, int count);

    /** Returns the number of pending entries, the first ID, the last one and each consumer's number. */
    List<Object> pending(String key);

    Group group(String key);
}
