import java.time.Duration;
import java.util.concurrent.Callable;
import org.springframework.cache.Cache;
import org.springframework.data.redis.cache.RedisCacheConfiguration;
import org.springframework.data.redis.cache.RedisCacheManager;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * Spring Data Redis's cache manager, over Lettuce as Spring Boot has it. By default its
 * put and clear return before they are done, so that what follows is waited for.
 */
final class SpringCache {
    private static final Duration TTL = Duration.ofSeconds(100);

    private final StringRedisTemplate redis;
    private final Cache cache;

    SpringCache(String host, int port) {
        LettuceConnectionFactory factory = new LettuceConnectionFactory(host, port);
        factory.start();
        redis = new StringRedisTemplate(factory);
        cache = RedisCacheManager.builder(factory)
                .cacheDefaults(RedisCacheConfiguration.defaultCacheConfig().entryTtl(TTL))
                .build().getCache("books");
    }

    void run() {
        Report.step("get-or-set", () -> {
            Report.expect("get", cache.get("first"), null);
            Report.expect("computed", cache.get("first", () -> "value"), "value");
            eventually("get", () -> cache.get("first", String.class), "value");
            Report.expect("kept", cache.get("first", () -> "another"), "value");
            Report.expectTtl(redis.getExpire("books::first"), TTL.toSeconds());
        });
        Report.step("put", () -> {
            cache.put("second", "old");
            cache.put("second", "new");
            eventually("get", () -> cache.get("second", String.class), "new");
            Report.expect("null", cache.get("nothing", () -> null), null);
            Report.expect("put if absent", cache.putIfAbsent("second", "other").get(), "new");
            Report.expect("put if absent", cache.putIfAbsent("third", "there"), null);
            Report.expect("get", cache.get("third", String.class), "there");
        });
        Report.step("evict", () -> {
            Report.expect("evict", cache.evictIfPresent("second"), true);
            Report.expect("evict again", cache.evictIfPresent("second"), false);
            cache.evict("third");
            eventually("get", () -> cache.get("third"), null);
        });
        Report.step("reconnect", () -> {
            Report.restarted();
            eventually("get", () -> {
                cache.put("first", "again");
                return cache.get("first", String.class);
            }, "again");
        });
        Report.step("clear", () -> {
            for (int i = 0; i < 150; i++) {
                cache.put("many" + i, i);
            }
            redis.opsForValue().set("other", "kept");
            eventually("KEYS", () -> redis.keys("books::*").size(), 152); // and "first", "nothing"
            cache.clear();
            eventually("KEYS", () -> redis.keys("books::*").size(), 0);
            Report.expect("another's key", redis.opsForValue().get("other"), "kept");
        });
    }

    private static void eventually(String what, Callable<?> got, Object want) throws Exception {
        Report.untilItWorks(() -> {
            Report.expect(what, got.call(), want);
            return null;
        });
    }
}
