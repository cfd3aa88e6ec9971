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

    long setFields(String key, Map<String, String> fields);

    long addToField(String key, String field, long n);

    Map<String, String> fields(String key);

    List<Long> expireField(String key, String field, long ttl);

    /** HSCAN to its end. */
    Map<String, String> walkFields(String key);

    long add(String key, String... members);

    Set<String> common(String... keys);

    /** SSCAN to its end. */
    Set<String> walkMembers(String key);

    long rank(String key, Map<String, Double> scores);

    double raise(String key, String member, double by);

    /** The n members with the highest scores, each as "member score". */
    List<String> best(String key, int n);

    long push(String key, String... items);

    /** Takes the first item of a list and puts it behind the last one of another. */
    String move(String from, String to);

    List<String> items(String key);

    long place(String key, String name, double longitude, double latitude);

    /** In kilometres. */
    double apart(String key, String a, String b);

    /** The names within a radius in kilometres, the nearest first. */
    List<String> near(String key, double longitude, double latitude, double radius);
}
