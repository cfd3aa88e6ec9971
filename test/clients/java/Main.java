import java.util.Map;

/** Runs one of Java's libraries: Main LIBRARY HOST:PORT. */
public final class Main {
    interface Program {
        void run(String host, int port) throws Exception;
    }

    private static final Map<String, Program> PROGRAMS = Map.of(
            "jedis", (host, port) -> new Scenario(new JedisClient(host, port), "jedis").run(),
            "lettuce", (host, port) -> new Scenario(new LettuceClient(host, port), "lettuce").run(),
            "spring-cache", (host, port) -> new SpringCache(host, port).run());

    private static final Map<String, Class<?>> LIBRARIES = Map.of(
            "jedis", redis.clients.jedis.UnifiedJedis.class,
            "lettuce", io.lettuce.core.RedisClient.class,
            "spring-cache", org.springframework.data.redis.cache.RedisCacheManager.class);

    public static void main(String[] args) throws Exception {
        Report.version(LIBRARIES.get(args[0]));
        String[] address = args[1].split(":");
        PROGRAMS.get(args[0]).run(address[0], Integer.parseInt(address[1]));
        System.exit(0); // whatever threads a library leaves
    }
}
