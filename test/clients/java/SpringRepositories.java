import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.data.annotation.Id;
import org.springframework.data.domain.Page;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.geo.Distance;
import org.springframework.data.geo.Metrics;
import org.springframework.data.geo.Point;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.PartialUpdate;
import org.springframework.data.redis.core.RedisHash;
import org.springframework.data.redis.core.RedisKeyExpiredEvent;
import org.springframework.data.redis.core.RedisKeyValueAdapter;
import org.springframework.data.redis.core.RedisKeyValueAdapter.EnableKeyspaceEvents;
import org.springframework.data.redis.core.RedisKeyValueTemplate;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.core.TimeToLive;
import org.springframework.data.redis.core.index.GeoIndexed;
import org.springframework.data.redis.core.index.Indexed;
import org.springframework.data.redis.core.mapping.RedisMappingContext;
import org.springframework.data.redis.repository.support.RedisRepositoryFactory;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.data.repository.ListCrudRepository;
import org.springframework.data.repository.PagingAndSortingRepository;

/**
 * Spring Data's repositories in Redis: an entity is a hash, each indexed property has a set for
 * each of its values, and what expires is removed from these sets by whoever hears of it. Queries
 * of several properties are SINTER and SUNION over several slots.
 */
final class SpringRepositories {
    private static final long TTL_SECONDS = 100;
    private static final int MANY = 60;

    @RedisHash("people")
    static class Person {
        @Id
        String id;
        @Indexed
        String town;
        @Indexed
        String trade;
        @GeoIndexed
        Point place;
        int visits;
        List<String> friends = new ArrayList<>();
        @TimeToLive
        Long seconds;

        static Person of(String id, String town, String trade) {
            Person person = new Person();
            person.id = id;
            person.town = town;
            person.trade = trade;
            person.friends.add("friend of " + id);
            return person;
        }
    }

    interface People extends ListCrudRepository<Person, String>, PagingAndSortingRepository<Person, String> {
        List<Person> findByTown(String town);

        List<Person> findByTownAndTrade(String town, String trade);

        List<Person> findByTownOrTrade(String town, String trade);

        List<Person> findByPlaceNear(Point place, Distance distance);
    }

    private final GenericApplicationContext context = new GenericApplicationContext();
    private final RedisTemplate<String, String> redis = new RedisTemplate<>();
    private final RedisKeyValueTemplate template;
    private final People people;
    private final Map<String, Integer> expired = new ConcurrentHashMap<>(); // how often, by id and trade

    SpringRepositories(String host, int port) {
        LettuceConnectionFactory factory = new LettuceConnectionFactory(host, port);
        factory.start();
        redis.setConnectionFactory(factory);
        redis.setDefaultSerializer(RedisSerializer.string());
        redis.afterPropertiesSet();
        RedisTemplate<Object, Object> objects = new RedisTemplate<>();
        objects.setConnectionFactory(factory);
        objects.afterPropertiesSet();
        RedisMappingContext mapping = new RedisMappingContext();
        context.registerBean(RedisKeyValueAdapter.class, () -> {
            RedisKeyValueAdapter adapter = new RedisKeyValueAdapter(objects, mapping);
            adapter.setEnableKeyspaceEvents(EnableKeyspaceEvents.ON_STARTUP);
            adapter.setKeyspaceNotificationsConfigParameter("Egx"); // as Spring Session's, which has the same cluster
            return adapter;
        });
        context.addApplicationListener(event -> {
            if (event instanceof RedisKeyExpiredEvent<?> of && of.getValue() instanceof Person person) {
                expired.merge(person.id + " " + person.trade, 1, Integer::sum);
            }
        });
        context.refresh();
        template = new RedisKeyValueTemplate(context.getBean(RedisKeyValueAdapter.class), mapping);
        people = new RedisRepositoryFactory(template).getRepository(People.class);
    }

    void run() {
        Report.step("crud", this::crud);
        Report.step("index", this::index);
        Report.step("expire", this::expire);
        Report.step("replace", this::replace);
        Report.step("crash", this::crash);
    }

    private static Set<String> ids(Iterable<Person> of) {
        Set<String> ids = new HashSet<>();
        of.forEach(person -> ids.add(person.id));
        return ids;
    }

    private Person find(String id) {
        return people.findById(id).orElse(null);
    }

    private void crud() {
        String id = people.save(Person.of(null, "Rome", "baker")).id;
        Person found = find(id);
        Report.expect("found", List.of(found.town, found.trade, found.friends), List.of("Rome", "baker", List.of("friend of null")));
        found.town = "Oslo";
        people.save(found);
        Report.expect("in the old town", ids(people.findByTown("Rome")), Set.of());
        Report.expect("in the new town", ids(people.findByTown("Oslo")), Set.of(id));
        template.update(new PartialUpdate<>(id, Person.class).set("visits", 7).set("town", "Bern").del("friends"));
        Person updated = find(id);
        Report.expect("updated", List.of(updated.visits, updated.town, updated.friends.size()), List.of(7, "Bern", 0));
        Report.expect("in its town", ids(people.findByTown("Bern")), Set.of(id));
        Report.expect("there", List.of(people.existsById(id), people.existsById("none"), people.count()), List.of(true, false, 1L));
        people.deleteById(id);
        Report.expect("deleted", find(id), null);
        Report.expect("in its town", ids(people.findByTown("Bern")), Set.of());
        Report.expect("keys left", redis.keys("people*"), Set.of());
    }

    /** Everybody has one of 5 towns and one of 3 trades. */
    private void index() {
        people.saveAll(IntStream.range(0, MANY).mapToObj(i -> {
            Person person = Person.of("p" + i, "town" + i % 5, "trade" + i % 3);
            person.place = new Point(13 + i * 0.1, 38);
            return person;
        }).toList());
        Report.expect("of a town", people.findByTown("town2").size(), MANY / 5);
        Report.expect("of a town and a trade", ids(people.findByTownAndTrade("town2", "trade1")), Set.of("p7", "p22", "p37", "p52"));
        Report.expect("of a town or a trade", people.findByTownOrTrade("town2", "trade1").size(), MANY / 5 + MANY / 3 - 4);
        Report.expect("near", ids(people.findByPlaceNear(new Point(13, 38), new Distance(20, Metrics.KILOMETERS))),
                Set.of("p0", "p1", "p2"));
        Set<String> paged = new HashSet<>();
        for (int i = 0; i < MANY / 20; i++) {
            Page<Person> page = people.findAll(PageRequest.of(i, 20));
            Report.expect("pages", List.of(page.getTotalPages(), page.getNumberOfElements()), List.of(MANY / 20, 20));
            paged.addAll(ids(page));
        }
        Report.expect("in pages", paged.size(), MANY);
        people.deleteAllById(List.of("p7", "p8"));
        Report.expect("of a town and a trade", ids(people.findByTownAndTrade("town2", "trade1")), Set.of("p22", "p37", "p52"));
        people.deleteAll();
        Report.expect("left", List.of(people.count(), people.findByTown("town2").size()), List.of(0L, 0));
    }

    /** What expires is told once, with what it was, and is in no index then. */
    private void expire() throws Exception {
        Person lasting = Person.of("long", "Pisa", "smith");
        lasting.seconds = TTL_SECONDS;
        people.save(lasting);
        Report.expectTtl(find("long").seconds, TTL_SECONDS);
        Report.expectTtl(redis.getExpire("people:long"), TTL_SECONDS);
        Person brief = Person.of("brief", "Pisa", "smith");
        brief.seconds = 1L;
        people.save(brief);
        Report.untilItWorks(() -> {
            Report.expect("expired", expired, Map.of("brief smith", 1));
            Report.expect("of a town", ids(people.findByTown("Pisa")), Set.of("long"));
            return null;
        }, Report.WORK_MILLIS);
        Report.expect("count", people.count(), 1L);
        people.deleteAll();
    }

    private void replace() throws Exception {
        int n = Report.whileReplaced(i -> {
            people.save(Person.of("r" + i, "town" + i % 5, "trade" + i % 3));
            Person before = find("r" + i / 2);
            before.visits++;
            before.town = "visited";
            people.save(before);
            Report.expect("visits", find(before.id).visits, before.visits);
        });
        Report.expect("count", people.count(), (long) n);
        Set<String> visited = IntStream.rangeClosed(0, (n - 1) / 2).mapToObj(i -> "r" + i).collect(Collectors.toSet());
        Report.expect("visited", ids(people.findByTown("visited")), visited);
        Set<String> all = IntStream.range(0, n).mapToObj(i -> "r" + i).collect(Collectors.toSet());
        Report.expect("all", ids(people.findAll()), all);
        Report.expect("visits", people.findByTown("visited").stream().mapToInt(person -> person.visits).sum(), n);
    }

    /** Who was saved is there and in the indexes, but those of a node's last moments. */
    private void crash() throws Exception {
        Map<String, Long> saved = new ConcurrentHashMap<>(); // when each was
        int n = Report.whileCrashed(i -> Report.succeeds(() -> {
            people.save(Person.of("c" + i, "crashed", "trade" + i % 3));
            saved.put("c" + i, System.currentTimeMillis());
        }));
        Set<String> found = saved.keySet().stream().filter(id -> people.findById(id).isPresent()).collect(Collectors.toSet());
        Set<String> listed = ids(people.findByTown("crashed"));
        List<Long> lost = saved.entrySet().stream().filter(e -> !found.contains(e.getKey())).map(Map.Entry::getValue).toList();
        List<Long> hidden = saved.entrySet().stream().filter(e -> found.contains(e.getKey()) && !listed.contains(e.getKey()))
                .map(Map.Entry::getValue).toList();
        Report.count(String.format("%d entities: %d refused, %d lost, %d not in their index", n, n - saved.size(),
                lost.size(), hidden.size()));
        Report.expect("lost", lost.stream().filter(at -> !Report.inLastMoments(at)).count(), 0L);
        Report.expect("not in their index", hidden.stream().filter(at -> !Report.inLastMoments(at)).count(), 0L);
    }
}
