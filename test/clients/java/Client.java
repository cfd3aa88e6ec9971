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

    /** Hears the channel and the text of a message, behind the pattern if it has subscribed to one. */
    interface Listener {
        void hear(String... words);
    }

    /** Subscribes on a connection of its own, which stays open. Returns when the server has confirmed. */
    void subscribe(String channel, Listener listener) throws Exception;

    void psubscribe(String pattern, Listener listener) throws Exception;

    long publish(String channel, String text);

    /** The library's client of a cluster. */
    interface Cluster {
        /** Subscribes on a connection of its own. Returns what unsubscribes. */
        Report.Step subscribe(String channel, Listener listener) throws Exception;

        Report.Step psubscribe(String pattern, Listener listener) throws Exception;

        long publish(String channel, String text);

        /** Publishes at each node, and returns the counts. */
        List<Long> publishAtAll(String channel, String text);
    }

    Cluster openCluster(String host, int port);

    /** BLPOP: the key and the item, or null when the time is up, which is in seconds. */
    List<String> popFirst(double timeout, String... keys);

    /** BLMOVE. */
    String awaitMove(String from, String to, double timeout);

    /** BZPOPMIN: the key, the member and its score. */
    List<String> awaitLowest(String key, double timeout);

    /** The section that has the number of blocked clients. */
    String info();

    /** A library's client-side cache. */
    interface Cache {
        String get(String key);

        /** Whether the next get finds the key in the cache. It may read the key. */
        boolean has(String key);
    }

    /** Opens a cache, whose connection is another one than those of the other methods. */
    Cache openCache();
}
