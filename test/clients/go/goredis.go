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
