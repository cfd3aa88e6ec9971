import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Runs one of Java's libraries: Main LIBRARY HOST:PORT. */
public final class Main {
    interface Program {
        void run(String host, int port) throws Exception;
    }

    private static final Map<String, Program> PROGRAMS = Map.of(
            "jedis", (host, port) -> new Scenario(new JedisClient(host, port), "jedis").run(),
            "lettuce", (host, port) -> new Scenario(new LettuceClient(host, port), "lettuce").run(),
            "spring-cache", (host, port) -> new SpringCache(host, port).run(),
            "jedis-streams", (host, port) -> new Streams(new JedisStreams(host, port), "jedis").run(),
            "lettuce-streams", (host, port) -> new Streams(new LettuceStreams(host, port), "lettuce").run(),
            "redisson", (host, port) -> new RedissonObjects(host, port).run(),
            "spring-session", (host, port) -> new SpringSessions(host, port).run(),
            "spring-repositories", (host, port) -> new SpringRepositories(host, port).run(),
            "spring-streams", (host, port) -> new Streams(new SpringStreams(host, port), "spring").run());

    private static final Map<String, List<Class<?>>> LIBRARIES = Map.of(
            "jedis", List.of(redis.clients.jedis.UnifiedJedis.class),
            "lettuce", List.of(io.lettuce.core.RedisClient.class),
            "redisson", List.of(org.redisson.Redisson.class),
            "spring-session", List.of(org.springframework.session.data.redis.RedisSessionRepository.class,
                    io.github.bucket4j.redis.lettuce.Bucket4jLettuce.class),
            "spring", List.of(org.springframework.data.redis.cache.RedisCacheManager.class));

    public static void main(String[] args) throws Exception {
        List<Class<?>> libraries = LIBRARIES.getOrDefault(args[0], LIBRARIES.get(args[0].split("-")[0]));
        System.out.println("version " + libraries.stream().map(Report::version).collect(Collectors.joining(", ")));
        String[] address = args[1].split(":");
        PROGRAMS.get(args[0]).run(address[0], Integer.parseInt(address[1]));
        System.exit(0); // whatever threads a library leaves
    }
}
