package main

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

// redigo is used through its pool, because the pool replaces broken connections.
type redigo struct{ pool *redis.Pool }

func openRedigo(_ context.Context, addr string) (client, error) {
	return redigo{&redis.Pool{MaxIdle: 3, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) }}}, nil
}

func (r redigo) do(command string, args ...any) (any, error) {
	c := r.pool.Get()
	defer c.Close()
	return c.Do(command, args...)
}

func seconds(ttl time.Duration) int { return int(ttl / time.Second) }

func (r redigo) ping(context.Context) error {
	_, err := r.do("PING")
	return err
}

func (r redigo) get(_ context.Context, key string) (string, bool, error) {
	v, err := redis.String(r.do("GET", key))
	if errors.Is(err, redis.ErrNil) {
		return "", false, nil
	}
	return v, err == nil, err
}

func (r redigo) set(_ context.Context, key, value string, ttl time.Duration) error {
	_, err := r.do("SETEX", key, seconds(ttl), value)
	return err
}

func (r redigo) ttl(_ context.Context, key string) (time.Duration, error) {
	n, err := redis.Int(r.do("TTL", key))
	return time.Duration(n) * time.Second, err
}

func (r redigo) setMany(_ context.Context, pairs []string) error {
	_, err := r.do("MSET", redis.Args{}.AddFlat(pairs)...)
	return err
}

func (r redigo) getMany(_ context.Context, keys []string) ([]string, error) {
	return redis.Strings(r.do("MGET", redis.Args{}.AddFlat(keys)...))
}

func (r redigo) del(_ context.Context, keys []string) (int64, error) {
	return redis.Int64(r.do("DEL", redis.Args{}.AddFlat(keys)...))
}

func (r redigo) scan(_ context.Context, pattern string) (keys []string, err error) {
	for cursor := "0"; ; {
		reply, err := redis.Values(r.do("SCAN", cursor, "MATCH", pattern))
		if err != nil {
			return nil, err
		}
		var found []string
		if _, err := redis.Scan(reply, &cursor, &found); err != nil {
			return nil, err
		}
		if keys = append(keys, found...); cursor == "0" {
			return keys, nil
		}
	}
}

func (r redigo) incr(_ context.Context, key string) (int64, error) {
	return redis.Int64(r.do("INCR", key))
}

func (r redigo) expire(_ context.Context, key string, ttl time.Duration) (bool, error) {
	return redis.Bool(r.do("EXPIRE", key, seconds(ttl)))
}

func (r redigo) setAbsent(_ context.Context, key, value string, ttl time.Duration) (bool, error) {
	_, err := redis.String(r.do("SET", key, value, "NX", "EX", seconds(ttl)))
	if errors.Is(err, redis.ErrNil) {
		return false, nil
	}
	return err == nil, err
}

func (r redigo) deleteIfEqual(_ context.Context, key, value string) (bool, error) {
	c := r.pool.Get()
	defer c.Close() // also ends the watch
	if _, err := c.Do("WATCH", key); err != nil {
		return false, err
	}
	if held, err := redis.String(c.Do("GET", key)); err != nil || held != value {
		return false, err
	}
	_ = c.Send("MULTI")
	_ = c.Send("DEL", key)
	reply, err := redis.Values(c.Do("EXEC"))
	return len(reply) == 1, err
}

func (r redigo) pipeline(_ context.Context, keys []string) (values []string, err error) {
	c := r.pool.Get()
	defer c.Close()
	for _, k := range keys {
		_ = c.Send("SET", k, k)
		_ = c.Send("GET", k)
	}
	replies, err := redis.Values(c.Do("")) // flushes, and receives everything
	for i := 1; i < len(replies); i += 2 {
		v, _ := redis.String(replies[i], nil)
		values = append(values, v)
	}
	return values, err
}
