package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

type goRedis struct{ c *redis.Client }

func openGoRedis(_ context.Context, addr string) (client, error) {
	return goRedis{redis.NewClient(&redis.Options{Addr: addr})}, nil
}

func (g goRedis) ping(ctx context.Context) error { return g.c.Ping(ctx).Err() }

func (g goRedis) get(ctx context.Context, key string) (string, bool, error) {
	v, err := g.c.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	return v, err == nil, err
}

func (g goRedis) set(ctx context.Context, key, value string, ttl time.Duration) error {
	return g.c.Set(ctx, key, value, ttl).Err()
}

func (g goRedis) ttl(ctx context.Context, key string) (time.Duration, error) {
	return g.c.TTL(ctx, key).Result()
}

func (g goRedis) setMany(ctx context.Context, pairs []string) error {
	return g.c.MSet(ctx, pairs).Err()
}

func (g goRedis) getMany(ctx context.Context, keys []string) ([]string, error) {
	found, err := g.c.MGet(ctx, keys...).Result()
	values := make([]string, len(found))
	for i := range found {
		values[i], _ = found[i].(string)
	}
	return values, err
}

func (g goRedis) del(ctx context.Context, keys []string) (int64, error) {
	return g.c.Del(ctx, keys...).Result()
}

func (g goRedis) scan(ctx context.Context, pattern string) (keys []string, err error) {
	i := g.c.Scan(ctx, 0, pattern, 100).Iterator()
	for i.Next(ctx) {
		keys = append(keys, i.Val())
	}
	return keys, i.Err()
}

func (g goRedis) incr(ctx context.Context, key string) (int64, error) {
	return g.c.Incr(ctx, key).Result()
}

func (g goRedis) expire(ctx context.Context, key string, ttl time.Duration) (bool, error) {
	return g.c.Expire(ctx, key, ttl).Result()
}

func (g goRedis) setAbsent(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	return g.c.SetNX(ctx, key, value, ttl).Result()
}

func (g goRedis) deleteIfEqual(ctx context.Context, key, value string) (deleted bool, err error) {
	err = g.c.Watch(ctx, func(tx *redis.Tx) error {
		if held, err := tx.Get(ctx, key).Result(); err != nil || held != value {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Del(ctx, key).Err() })
		deleted = err == nil
		return err
	}, key)
	return deleted, err
}

func (g goRedis) pipeline(ctx context.Context, keys []string) (values []string, err error) {
	var gets []*redis.StringCmd
	_, err = g.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			p.Set(ctx, k, k, 0)
			gets = append(gets, p.Get(ctx, k))
		}
		return nil
	})
	for _, get := range gets {
		values = append(values, get.Val())
	}
	return values, err
}

func (g goRedis) setFields(ctx context.Context, key string, fields map[string]string) (int64, error) {
	return g.c.HSet(ctx, key, fields).Result()
}

func (g goRedis) addToField(ctx context.Context, key, field string, n int64) (int64, error) {
	return g.c.HIncrBy(ctx, key, field, n).Result()
}

func (g goRedis) fields(ctx context.Context, key string) (map[string]string, error) {
	return g.c.HGetAll(ctx, key).Result()
}

func (g goRedis) expireField(ctx context.Context, key, field string, ttl time.Duration) ([]int64, error) {
	return g.c.HExpire(ctx, key, ttl, field).Result()
}

func (g goRedis) walkFields(ctx context.Context, key string) (map[string]string, error) {
	fields := map[string]string{}
	i := g.c.HScan(ctx, key, 0, "", 0).Iterator()
	for i.Next(ctx) {
		field := i.Val()
		i.Next(ctx)
		fields[field] = i.Val()
	}
	return fields, i.Err()
}

func (g goRedis) add(ctx context.Context, key string, members []string) (int64, error) {
	return g.c.SAdd(ctx, key, members).Result()
}

func (g goRedis) common(ctx context.Context, keys []string) ([]string, error) {
	return g.c.SInter(ctx, keys...).Result()
}

func (g goRedis) walkMembers(ctx context.Context, key string) (members []string, err error) {
	i := g.c.SScan(ctx, key, 0, "", 0).Iterator()
	for i.Next(ctx) {
		members = append(members, i.Val())
	}
	return members, i.Err()
}

func (g goRedis) rank(ctx context.Context, key string, scores map[string]float64) (int64, error) {
	var members []redis.Z
	for member, score := range scores {
		members = append(members, redis.Z{Score: score, Member: member})
	}
	return g.c.ZAdd(ctx, key, members...).Result()
}

func (g goRedis) raise(ctx context.Context, key, member string, by float64) (float64, error) {
	return g.c.ZIncrBy(ctx, key, by, member).Result()
}

func (g goRedis) best(ctx context.Context, key string, n int64) (best []scored, err error) {
	args := redis.ZRangeArgs{Key: key, Start: 0, Stop: n - 1, Rev: true}
	members, err := g.c.ZRangeArgsWithScores(ctx, args).Result()
	for _, m := range members {
		best = append(best, scored{m.Member.(string), m.Score})
	}
	return best, err
}

func (g goRedis) push(ctx context.Context, key string, items []string) (int64, error) {
	return g.c.RPush(ctx, key, items).Result()
}

func (g goRedis) move(ctx context.Context, from, to string) (string, error) {
	return g.c.LMove(ctx, from, to, "LEFT", "RIGHT").Result()
}

func (g goRedis) items(ctx context.Context, key string) ([]string, error) {
	return g.c.LRange(ctx, key, 0, -1).Result()
}

func (g goRedis) place(ctx context.Context, key string, t town) error {
	return g.c.GeoAdd(ctx, key, &redis.GeoLocation{Name: t.name, Longitude: t.longitude, Latitude: t.latitude}).Err()
}

func (g goRedis) apart(ctx context.Context, key, a, b string) (float64, error) {
	return g.c.GeoDist(ctx, key, a, b, "km").Result()
}

func (g goRedis) near(ctx context.Context, key string, longitude, latitude, radius float64) ([]string, error) {
	return g.c.GeoSearch(ctx, key, &redis.GeoSearchQuery{
		Longitude: longitude, Latitude: latitude, Radius: radius, RadiusUnit: "km", Sort: "ASC",
	}).Result()
}

func (g goRedis) listen(ctx context.Context, how listening, name string, hear func(message)) error {
	subscribe := map[listening]func(context.Context, ...string) *redis.PubSub{
		toChannel: g.c.Subscribe, toPattern: g.c.PSubscribe, toShard: g.c.SSubscribe,
	}[how]
	s := subscribe(ctx, name)
	if _, err := s.ReceiveTimeout(ctx, messageTimeout); err != nil {
		return err
	}
	go func() {
		for m := range s.Channel() {
			hear(message{m.Pattern, m.Channel, m.Payload})
		}
	}()
	return nil
}

func (g goRedis) publish(ctx context.Context, channel, text string) (int64, error) {
	return g.c.Publish(ctx, channel, text).Result()
}

func (g goRedis) publishToShard(ctx context.Context, channel, text string) (int64, error) {
	return g.c.SPublish(ctx, channel, text).Result()
}

func (g goRedis) popFirst(ctx context.Context, keys []string, timeout time.Duration) ([]string, error) {
	popped, err := g.c.BLPop(ctx, timeout, keys...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return popped, err
}

func (g goRedis) awaitMove(ctx context.Context, from, to string, timeout time.Duration) (string, error) {
	return g.c.BLMove(ctx, from, to, "LEFT", "RIGHT", timeout).Result()
}

func (g goRedis) awaitLowest(ctx context.Context, key string, timeout time.Duration) (string, scored, error) {
	z, err := g.c.BZPopMin(ctx, timeout, key).Result()
	if err != nil {
		return "", scored{}, err
	}
	return z.Key, scored{z.Member.(string), z.Score}, nil
}

func (g goRedis) info(ctx context.Context) (string, error) { return g.c.Info(ctx, "clients").Result() }

func (g goRedis) openCache(ctx context.Context) (func(key string) (string, bool, error), error) {
	c := redis.NewClient(&redis.Options{
		Addr: g.c.Options().Addr, ClientSideCacheConfig: &redis.ClientSideCacheConfig{MaxEntries: 100},
	})
	return func(key string) (string, bool, error) {
		hits := c.CSCStats().Hits
		value, err := c.Get(ctx, key).Result()
		return value, c.CSCStats().Hits > hits, err
	}, nil
}
