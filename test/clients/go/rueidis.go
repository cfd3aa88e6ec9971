package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// A proxy answers CLUSTER SLOTS like a single node that has all slots. So rueidis takes it for a
// cluster and refuses commands of several slots; it offers helpers for them.
type rueidisClient struct {
	c    rueidis.Client
	addr string
}

// openRueidis keeps the defaults: rueidis tracks what it caches.
func openRueidis(_ context.Context, addr string) (client, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	return rueidisClient{c, addr}, err
}

func (r rueidisClient) ping(ctx context.Context) error {
	return r.c.Do(ctx, r.c.B().Ping().Build()).Error()
}

func (r rueidisClient) get(ctx context.Context, key string) (string, bool, error) {
	v, err := r.c.Do(ctx, r.c.B().Get().Key(key).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return "", false, nil
	}
	return v, err == nil, err
}

func (r rueidisClient) set(ctx context.Context, key, value string, ttl time.Duration) error {
	return r.c.Do(ctx, r.c.B().Set().Key(key).Value(value).Ex(ttl).Build()).Error()
}

func (r rueidisClient) ttl(ctx context.Context, key string) (time.Duration, error) {
	n, err := r.c.Do(ctx, r.c.B().Ttl().Key(key).Build()).AsInt64()
	return time.Duration(n) * time.Second, err
}

func (r rueidisClient) setMany(ctx context.Context, pairs []string) error {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	for _, err := range rueidis.MSet(r.c, ctx, values) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r rueidisClient) getMany(ctx context.Context, keys []string) ([]string, error) {
	found, err := rueidis.MGet(r.c, ctx, keys)
	values := make([]string, len(keys))
	for i, k := range keys {
		m := found[k]
		values[i], _ = m.ToString()
	}
	return values, err
}

func (r rueidisClient) del(ctx context.Context, keys []string) (int64, error) {
	var deleted int64
	for _, reply := range r.c.DoMulti(ctx, r.deletions(keys)...) {
		n, err := reply.AsInt64()
		if err != nil {
			return deleted, err
		}
		deleted += n
	}
	return deleted, nil
}

func (r rueidisClient) deletions(keys []string) (commands rueidis.Commands) {
	for _, k := range keys {
		commands = append(commands, r.c.B().Del().Key(k).Build())
	}
	return commands
}

func (r rueidisClient) scan(ctx context.Context, pattern string) (keys []string, err error) {
	scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return r.c.Do(ctx, r.c.B().Scan().Cursor(cursor).Match(pattern).Count(100).Build()).AsScanEntry()
	})
	for key := range scanner.Iter() {
		keys = append(keys, key)
	}
	return keys, scanner.Err()
}

func (r rueidisClient) incr(ctx context.Context, key string) (int64, error) {
	return r.c.Do(ctx, r.c.B().Incr().Key(key).Build()).AsInt64()
}

func (r rueidisClient) expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return r.c.Do(ctx, r.c.B().Expire().Key(key).Seconds(int64(ttl/time.Second)).Build()).AsBool()
}

func (r rueidisClient) setAbsent(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	err := r.c.Do(ctx, r.c.B().Set().Key(key).Value(value).Nx().Ex(ttl).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return false, nil
	}
	return err == nil, err
}

func (r rueidisClient) deleteIfEqual(ctx context.Context, key, value string) (bool, error) {
	n, err := r.c.Do(ctx, r.c.B().Arbitrary("DELIFEQ").Keys(key).Args(value).Build()).AsInt64()
	return n == 1, err
}

func (r rueidisClient) pipeline(ctx context.Context, keys []string) (values []string, err error) {
	var commands rueidis.Commands
	for _, k := range keys {
		commands = append(commands, r.c.B().Set().Key(k).Value(k).Build(), r.c.B().Get().Key(k).Build())
	}
	for i, reply := range r.c.DoMulti(ctx, commands...) {
		v, err := reply.ToString()
		if err != nil {
			return nil, err
		}
		if i%2 == 1 {
			values = append(values, v)
		}
	}
	return values, nil
}

func (r rueidisClient) setFields(ctx context.Context, key string, fields map[string]string) (int64, error) {
	c := r.c.B().Hset().Key(key).FieldValue()
	for field, value := range fields {
		c = c.FieldValue(field, value)
	}
	return r.c.Do(ctx, c.Build()).AsInt64()
}

func (r rueidisClient) addToField(ctx context.Context, key, field string, n int64) (int64, error) {
	return r.c.Do(ctx, r.c.B().Hincrby().Key(key).Field(field).Increment(n).Build()).AsInt64()
}

func (r rueidisClient) fields(ctx context.Context, key string) (map[string]string, error) {
	return r.c.Do(ctx, r.c.B().Hgetall().Key(key).Build()).AsStrMap()
}

func (r rueidisClient) expireField(ctx context.Context, key, field string, ttl time.Duration) ([]int64, error) {
	c := r.c.B().Hexpire().Key(key).Seconds(int64(ttl / time.Second)).Fields().Numfields(1).Field(field).Build()
	return r.c.Do(ctx, c).AsIntSlice()
}

func (r rueidisClient) walkFields(ctx context.Context, key string) (map[string]string, error) {
	fields := map[string]string{}
	scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return r.c.Do(ctx, r.c.B().Hscan().Key(key).Cursor(cursor).Build()).AsScanEntry()
	})
	for field, value := range scanner.Iter2() {
		fields[field] = value
	}
	return fields, scanner.Err()
}

func (r rueidisClient) add(ctx context.Context, key string, members []string) (int64, error) {
	return r.c.Do(ctx, r.c.B().Sadd().Key(key).Member(members...).Build()).AsInt64()
}

func (r rueidisClient) common(ctx context.Context, keys []string) ([]string, error) {
	return r.c.Do(ctx, r.c.B().Sinter().Key(keys...).Build()).AsStrSlice()
}

func (r rueidisClient) walkMembers(ctx context.Context, key string) (members []string, err error) {
	scanner := rueidis.NewScanner(func(cursor uint64) (rueidis.ScanEntry, error) {
		return r.c.Do(ctx, r.c.B().Sscan().Key(key).Cursor(cursor).Build()).AsScanEntry()
	})
	for member := range scanner.Iter() {
		members = append(members, member)
	}
	return members, scanner.Err()
}

func (r rueidisClient) rank(ctx context.Context, key string, scores map[string]float64) (int64, error) {
	c := r.c.B().Zadd().Key(key).ScoreMember()
	for member, score := range scores {
		c = c.ScoreMember(score, member)
	}
	return r.c.Do(ctx, c.Build()).AsInt64()
}

func (r rueidisClient) raise(ctx context.Context, key, member string, by float64) (float64, error) {
	return r.c.Do(ctx, r.c.B().Zincrby().Key(key).Increment(by).Member(member).Build()).AsFloat64()
}

func (r rueidisClient) best(ctx context.Context, key string, n int64) (best []scored, err error) {
	c := r.c.B().Zrange().Key(key).Min("0").Max(strconv.FormatInt(n-1, 10)).Rev().Withscores().Build()
	members, err := r.c.Do(ctx, c).AsZScores()
	for _, m := range members {
		best = append(best, scored{m.Member, m.Score})
	}
	return best, err
}

func (r rueidisClient) push(ctx context.Context, key string, items []string) (int64, error) {
	return r.c.Do(ctx, r.c.B().Rpush().Key(key).Element(items...).Build()).AsInt64()
}

func (r rueidisClient) move(ctx context.Context, from, to string) (string, error) {
	return r.c.Do(ctx, r.c.B().Lmove().Source(from).Destination(to).Left().Right().Build()).ToString()
}

func (r rueidisClient) items(ctx context.Context, key string) ([]string, error) {
	return r.c.Do(ctx, r.c.B().Lrange().Key(key).Start(0).Stop(-1).Build()).AsStrSlice()
}

func (r rueidisClient) place(ctx context.Context, key string, t town) error {
	c := r.c.B().Geoadd().Key(key).LongitudeLatitudeMember().
		LongitudeLatitudeMember(t.longitude, t.latitude, t.name).Build()
	return r.c.Do(ctx, c).Error()
}

func (r rueidisClient) apart(ctx context.Context, key, a, b string) (float64, error) {
	return r.c.Do(ctx, r.c.B().Geodist().Key(key).Member1(a).Member2(b).Km().Build()).AsFloat64()
}

func (r rueidisClient) near(
	ctx context.Context, key string, longitude, latitude, radius float64,
) (names []string, err error) {
	c := r.c.B().Geosearch().Key(key).Fromlonlat(longitude, latitude).Byradius(radius).Km().Asc().Build()
	found, err := r.c.Do(ctx, c).AsGeosearch()
	for _, f := range found {
		names = append(names, f.Name)
	}
	return names, err
}

func (r rueidisClient) listen(ctx context.Context, how listening, name string, hear func(message)) error {
	subscribe := map[listening]rueidis.Completed{
		toChannel: r.c.B().Subscribe().Channel(name).Build(),
		toPattern: r.c.B().Psubscribe().Pattern(name).Build(),
		toShard:   r.c.B().Ssubscribe().Channel(name).Build(),
	}[how]
	answer := make(chan error, 1)
	say := func(err error) {
		select {
		case answer <- err:
		default: // it is not the first
		}
	}
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) { say(nil) })
	go func() {
		say(r.c.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { hear(message{m.Pattern, m.Channel, m.Message}) }))
	}()
	return <-answer
}

func (r rueidisClient) publish(ctx context.Context, channel, text string) (int64, error) {
	return r.c.Do(ctx, r.c.B().Publish().Channel(channel).Message(text).Build()).AsInt64()
}

func (r rueidisClient) publishToShard(ctx context.Context, channel, text string) (int64, error) {
	return r.c.Do(ctx, r.c.B().Spublish().Channel(channel).Message(text).Build()).AsInt64()
}

func (r rueidisClient) popFirst(ctx context.Context, keys []string, timeout time.Duration) ([]string, error) {
	popped, err := r.c.Do(ctx, r.c.B().Blpop().Key(keys...).Timeout(timeout.Seconds()).Build()).AsStrSlice()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return popped, err
}

func (r rueidisClient) awaitMove(ctx context.Context, from, to string, timeout time.Duration) (string, error) {
	c := r.c.B().Blmove().Source(from).Destination(to).Left().Right().Timeout(timeout.Seconds()).Build()
	return r.c.Do(ctx, c).ToString()
}

func (r rueidisClient) awaitLowest(ctx context.Context, key string, timeout time.Duration) (string, scored, error) {
	popped, err := r.c.Do(ctx, r.c.B().Bzpopmin().Key(key).Timeout(timeout.Seconds()).Build()).ToArray()
	if err != nil || len(popped) != 3 {
		return "", scored{}, fmt.Errorf("%d elements, %w", len(popped), err)
	}
	from, _ := popped[0].ToString()
	member, _ := popped[1].ToString()
	score, err := popped[2].AsFloat64()
	return from, scored{member, score}, err
}

func (r rueidisClient) info(ctx context.Context) (string, error) {
	return r.c.Do(ctx, r.c.B().Info().Section("clients").Build()).ToString()
}

// openCache caches in a client of its own, so that another connection changes the keys.
func (r rueidisClient) openCache(ctx context.Context) (func(key string) (string, bool, error), error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.addr}})
	return func(key string) (string, bool, error) {
		reply := c.DoCache(ctx, c.B().Get().Key(key).Cache(), ttl)
		value, err := reply.ToString()
		return value, reply.IsCacheHit(), err
	}, err
}
