import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.distributed.BucketProxy;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.lettuce.core.RedisClient;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.springframework.data.redis.connection.RedisConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.PatternTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.FindByIndexNameSessionRepository;
import org.springframework.session.Session;
import org.springframework.session.SessionRepository;
import org.springframework.session.data.redis.RedisIndexedSessionRepository;
import org.springframework.session.data.redis.RedisSessionRepository;
import org.springframework.session.data.redis.config.ConfigureNotifyKeyspaceEventsAction;
import org.springframework.session.events.AbstractSessionEvent;
import org.springframework.session.events.SessionCreatedEvent;
import org.springframework.session.events.SessionDeletedEvent;
import org.springframework.session.events.SessionExpiredEvent;

/**
 * Spring Session's two repositories, wired as its configuration classes do, and Bucket4j beside them: what a web
 * application has. A login gives the session another name, by RENAME between slots.
 */
final class SpringSessions {
    private static final Duration TTL = Duration.ofSeconds(100);
    private static final int MANY = 1_000_000; // tokens

    private final RedisTemplate<String, Object> redis = new RedisTemplate<>();
    private final RedisSessionRepository simple;
    private final RedisIndexedSessionRepository indexed;
    private final Map<String, Integer> events = new ConcurrentHashMap<>(); // how often, by kind and session
    private final RedisClient lettuce;
    private final ExecutorService pool = Executors.newFixedThreadPool(6);

    SpringSessions(String host, int port) throws Exception {
        lettuce = RedisClient.create("redis://" + host + ":" + port);
        LettuceConnectionFactory factory = new LettuceConnectionFactory(host, port);
        factory.start();
        redis.setConnectionFactory(factory);
        redis.setKeySerializer(RedisSerializer.string());
        redis.setHashKeySerializer(RedisSerializer.string());
        redis.afterPropertiesSet();
        simple = new RedisSessionRepository(redis);
        simple.setRedisKeyNamespace("simple"); // both have the same otherwise
        simple.setDefaultMaxInactiveInterval(TTL);
        indexed = new RedisIndexedSessionRepository(redis);
        indexed.setDefaultMaxInactiveInterval(TTL);
        indexed.setApplicationEventPublisher(event -> count((AbstractSessionEvent) event));
        try (RedisConnection connection = factory.getConnection()) {
            new ConfigureNotifyKeyspaceEventsAction().configure(connection);
        }
        RedisMessageListenerContainer container = new RedisMessageListenerContainer();
        container.setConnectionFactory(factory);
        container.addMessageListener(indexed, List.of(new ChannelTopic(indexed.getSessionDeletedChannel()),
                new ChannelTopic(indexed.getSessionExpiredChannel())));
        container.addMessageListener(indexed, new PatternTopic(indexed.getSessionCreatedChannelPrefix() + "*"));
        container.afterPropertiesSet();
        container.start();
        indexed.afterPropertiesSet();
    }

    private void count(AbstractSessionEvent event) {
        events.merge(event.getClass().getSimpleName() + " " + event.getSessionId(), 1, Integer::sum);
    }

    /** Waits until each session has had an event of the kind, and checks that it had one. */
    private void expectOne(Class<? extends AbstractSessionEvent> kind, List<String> sessions) throws Exception {
        String what = kind.getSimpleName();
        List<String> names = sessions.stream().map(id -> what + " " + id).toList();
        Report.untilItWorks(() -> {
            Report.expect(what, names.stream().filter(events::containsKey).count(), (long) names.size());
            return null;
        }, Report.WORK_MILLIS);
        Report.expect(what + " twice", names.stream().filter(name -> events.get(name) != 1).count(), 0L);
    }

    void run() {
        Report.step("session", () -> session(simple));
        Report.step("index", () -> {
            List<String> sessions = IntStream.range(0, 30).mapToObj(i -> login(i % 3 == 0 ? "ann" : "bob")).toList();
            expectOne(SessionCreatedEvent.class, sessions);
            Report.expect("sessions of ann", indexed.findByPrincipalName("ann").size(), 10);
            RedisIndexedSessionRepository.RedisSession session = indexed.findById(sessions.get(0));
            session.changeSessionId();
            indexed.save(session);
            Report.expect("sessions of ann", indexed.findByPrincipalName("ann").containsKey(session.getId()), true);
            Report.expect("session by its old name", indexed.findById(sessions.get(0)), null);
            sessions.subList(1, 30).forEach(indexed::deleteById);
            expectOne(SessionDeletedEvent.class, sessions.subList(1, 30));
            Report.expect("sessions of ann", indexed.findByPrincipalName("ann").keySet(),
                    Set.of(session.getId()));
        });
        Report.step("expire", () -> {
            RedisIndexedSessionRepository.RedisSession session = indexed.createSession();
            session.setMaxInactiveInterval(Duration.ofSeconds(1));
            indexed.save(session);
            expectOne(SessionExpiredEvent.class, List.of(session.getId()));
            Report.expect("expired session", indexed.findById(session.getId()), null);
        });
        Report.step("rate-limit", this::limit);
        Report.step("replace", this::replace);
        Report.step("crash", this::crash);
    }

    private <S extends Session> void session(SessionRepository<S> sessions) {
        S session = sessions.createSession();
        session.setAttribute("user", "ann");
        session.setAttribute("cart", List.of(1, 2, 3));
        sessions.save(session);
        String before = session.getId();
        Session found = sessions.findById(before);
        Report.expect("user", found.<String>getAttribute("user"), "ann");
        Report.expect("cart", found.<List<Integer>>getAttribute("cart"), List.of(1, 2, 3));
        Report.expectTtl(redis.getExpire("simple:sessions:" + before), TTL.toSeconds());
        String after = session.changeSessionId(); // as Spring Security does when somebody logs in
        sessions.save(session);
        Report.expect("session by its old name", sessions.findById(before), null);
        Report.expect("user", sessions.findById(after).<String>getAttribute("user"), "ann");
        sessions.deleteById(after);
        Report.expect("deleted session", sessions.findById(after), null);
    }

    private String login(String user) {
        RedisIndexedSessionRepository.RedisSession session = indexed.createSession();
        session.setAttribute(FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME, user);
        indexed.save(session);
        return session.getId();
    }

    /** A bucket of Bucket4j, which changes by compare-and-swap, in a script. No tokens come back in the test. */
    private BucketProxy bucket(String name, int tokens) {
        BucketConfiguration configuration = BucketConfiguration.builder()
                .addLimit(limit -> limit.capacity(tokens).refillIntervally(tokens, Duration.ofHours(1))).build();
        return Bucket4jLettuce.casBasedBuilder(lettuce).build().builder()
                .build(("bucket4j:" + name).getBytes(), () -> configuration);
    }

    private void limit() throws Exception {
        AtomicInteger allowed = new AtomicInteger();
        List<? extends Future<?>> all = IntStream.range(0, 6).mapToObj(worker -> pool.submit(() -> {
            BucketProxy bucket = bucket("few", 20);
            IntStream.range(0, 5).filter(i -> bucket.tryConsume(1)).forEach(i -> allowed.incrementAndGet());
        })).toList();
        for (Future<?> one : all) {
            one.get(Report.WORK_MILLIS, TimeUnit.MILLISECONDS);
        }
        Report.expect("allowed", allowed.get(), 20);
        Report.expect("left", bucket("few", 20).getAvailableTokens(), 0L);
    }

    /** Sessions are there, with one event each, and each token is taken once. */
    private void replace() throws Exception {
        BucketProxy bucket = bucket("many", MANY);
        List<String> sessions = new ArrayList<>();
        int n = Report.whileReplaced(i -> {
            Report.expect("tokens", bucket.tryConsumeAndReturnRemaining(1).getRemainingTokens(), MANY - 1L - i);
            sessions.add(login("cid"));
            RedisIndexedSessionRepository.RedisSession session = indexed.findById(sessions.get(i / 2));
            session.setAttribute("visits", i);
            indexed.save(session);
            Report.expect("visits", indexed.findById(session.getId()).<Integer>getAttribute("visits"), i);
        });
        expectOne(SessionCreatedEvent.class, sessions);
        Report.expect("sessions of cid", indexed.findByPrincipalName("cid").size(), n);
        sessions.forEach(indexed::deleteById);
        expectOne(SessionDeletedEvent.class, sessions);
    }

    /**
     * Sessions that were saved are there, in both repositories, but those of a node's last moments; no token is taken
     * twice otherwise, and no session is created, or its deletion told, twice.
     */
    private void crash() throws Exception {
        BucketProxy bucket = bucket("crash", MANY);
        Map<String, Long> ofIndex = new ConcurrentHashMap<>(); // when each was saved
        Map<String, Long> ofSimple = new ConcurrentHashMap<>();
        Map<Long, Long> tokens = new ConcurrentHashMap<>(); // when each was taken
        List<Long> twice = new ArrayList<>();
        int n = Report.whileCrashed(i -> {
            Report.succeeds(() -> {
                String id = login("dan");
                ofIndex.put(id, System.currentTimeMillis());
            });
            Report.succeeds(() -> {
                String id = created(simple);
                ofSimple.put(id, System.currentTimeMillis());
            });
            Report.succeeds(() -> {
                long left = bucket.tryConsumeAndReturnRemaining(1).getRemainingTokens();
                Long before = tokens.put(left, System.currentTimeMillis());
                if (before != null) {
                    twice.add(before);
                }
            });
        });
        int lost = lost(indexed, ofIndex) + lost(simple, ofSimple);
        Report.expect("tokens taken twice", twice.stream().filter(at -> !Report.inLastMoments(at)).count(), 0L);
        Report.expect("events of creation that came twice",
                ofIndex.keySet().stream().filter(id -> events.getOrDefault("SessionCreatedEvent " + id, 1) > 1).count(), 0L);
        Report.count(String.format("%d sessions: %d refused, %d lost; %d tokens: %d taken twice", 2 * n,
                2 * n - ofIndex.size() - ofSimple.size(), lost, tokens.size(), twice.size()));
    }

    private static <S extends Session> String created(SessionRepository<S> sessions) {
        S session = sessions.createSession();
        session.setAttribute("visits", 1);
        sessions.save(session);
        return session.getId();
    }

    private static int lost(SessionRepository<?> sessions, Map<String, Long> saved) {
        List<String> lost = saved.keySet().stream().filter(id -> sessions.findById(id) == null).toList();
        Report.expect("sessions lost", lost.stream().filter(id -> !Report.inLastMoments(saved.get(id))).count(), 0L);
        return lost.size();
    }
}
