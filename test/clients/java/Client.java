import java.util.List;
import java.util.Map;
import java.util.Set;

/** What the scenario asks of a library, each in the library's own way. */
interface Client {
    String ping();

    String get(String key);

    String set(String key, String value, long ttl);

    long ttl(String key);

    String setMany(Map<String, String> pairs);

    /** Has null for a key that is missing. */
    List<String> getMany(String... keys);

    long del(String... keys);

    Set<String> scan(String pattern);

    long incr(String key);

    boolean expire(String key, long ttl);

    boolean setAbsent(String key, String value, long ttl);

    boolean deleteIfEqual(String key, String value);

    /** Sends SET and GET of each key at once, and returns what the GETs said. */
    List<String> pipeline(List<String> keys) throws Exception;
}
