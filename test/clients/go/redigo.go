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
	return r.walk("SCAN", "", "MATCH", pattern)
}

// walk follows a cursor: of the keys if key is "", else of the elements of one.
func (r redigo) walk(command, key string, options ...any) (found []string, err error) {
	for cursor := "0"; ; {
		args := redis.Args{}
		if key != "" {
			args = args.Add(key)
		}
		reply, err := redis.Values(r.do(command, args.Add(cursor).Add(options...)...))
		if err != nil {
			return nil, err
		}
		var some []string
		if _, err := redis.Scan(reply, &cursor, &some); err != nil {
			return nil, err
		}
		if found = append(found, some...); cursor == "0" {
			return found, nil
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

func (r redigo) setFields(_ context.Context, key string, fields map[string]string) (int64, error) {
	return redis.Int64(r.do("HSET", redis.Args{key}.AddFlat(fields)...))
}

func (r redigo) addToField(_ context.Context, key, field string, n int64) (int64, error) {
	return redis.Int64(r.do("HINCRBY", key, field, n))
}

func (r redigo) fields(_ context.Context, key string) (map[string]string, error) {
	return redis.StringMap(r.do("HGETALL", key))
}

func (r redigo) expireField(_ context.Context, key, field string, ttl time.Duration) ([]int64, error) {
	return redis.Int64s(r.do("HEXPIRE", key, seconds(ttl), "FIELDS", 1, field))
}

func (r redigo) walkFields(_ context.Context, key string) (map[string]string, error) {
	found, err := r.walk("HSCAN", key)
	fields := map[string]string{}
	for i := 0; i+1 < len(found); i += 2 {
		fields[found[i]] = found[i+1]
	}
	return fields, err
}

func (r redigo) walkMembers(_ context.Context, key string) ([]string, error) {
	return r.walk("SSCAN", key)
}

func (r redigo) add(_ context.Context, key string, members []string) (int64, error) {
	return redis.Int64(r.do("SADD", redis.Args{key}.AddFlat(members)...))
}

func (r redigo) common(_ context.Context, keys []string) ([]string, error) {
	return redis.Strings(r.do("SINTER", redis.Args{}.AddFlat(keys)...))
}

func (r redigo) rank(_ context.Context, key string, scores map[string]float64) (int64, error) {
	args := redis.Args{key}
	for member, score := range scores {
		args = args.Add(score, member)
	}
	return redis.Int64(r.do("ZADD", args...))
}

func (r redigo) raise(_ context.Context, key, member string, by float64) (float64, error) {
	return redis.Float64(r.do("ZINCRBY", key, by, member))
}

func (r redigo) best(_ context.Context, key string, n int64) (best []scored, err error) {
	values, err := redis.Values(r.do("ZRANGE", key, 0, n-1, "REV", "WITHSCORES"))
	for len(values) > 0 && err == nil {
		var s scored
		values, err = redis.Scan(values, &s.member, &s.score)
		best = append(best, s)
	}
	return best, err
}

func (r redigo) push(_ context.Context, key string, items []string) (int64, error) {
	return redis.Int64(r.do("RPUSH", redis.Args{key}.AddFlat(items)...))
}

func (r redigo) move(_ context.Context, from, to string) (string, error) {
	return redis.String(r.do("LMOVE", from, to, "LEFT", "RIGHT"))
}

func (r redigo) items(_ context.Context, key string) ([]string, error) {
	return redis.Strings(r.do("LRANGE", key, 0, -1))
}

func (r redigo) place(_ context.Context, key string, t town) error {
	_, err := r.do("GEOADD", key, t.longitude, t.latitude, t.name)
	return err
}

func (r redigo) apart(_ context.Context, key, a, b string) (float64, error) {
	return redis.Float64(r.do("GEODIST", key, a, b, "km"))
}

func (r redigo) near(_ context.Context, key string, longitude, latitude, radius float64) ([]string, error) {
	return redis.Strings(r.do("GEOSEARCH", key,
		"FROMLONLAT", longitude, latitude, "BYRADIUS", radius, "km", "ASC"))
}

func (r redigo) listen(_ context.Context, how listening, name string, hear func(message)) error {
	s := redis.PubSubConn{Conn: r.pool.Get()}
	subscribe := s.Subscribe
	if how == toPattern {
		subscribe = s.PSubscribe
	}
	if err := subscribe(name); err != nil {
		return err
	}
	if err, failed := s.ReceiveWithTimeout(messageTimeout).(error); failed { // else it is the confirmation
		return err
	}
	go func() {
		for {
			switch m := s.ReceiveWithTimeout(0).(type) { // without a limit
			case redis.Message:
				hear(message{m.Pattern, m.Channel, string(m.Data)})
			case error:
				return
			}
		}
	}()
	return nil
}

func (r redigo) publish(_ context.Context, channel, text string) (int64, error) {
	return redis.Int64(r.do("PUBLISH", channel, text))
}

func (r redigo) popFirst(_ context.Context, keys []string, timeout time.Duration) ([]string, error) {
	popped, err := redis.Strings(r.do("BLPOP", redis.Args{}.AddFlat(keys).Add(timeout.Seconds())...))
	if errors.Is(err, redis.ErrNil) {
		return nil, nil
	}
	return popped, err
}

func (r redigo) awaitMove(_ context.Context, from, to string, timeout time.Duration) (string, error) {
	return redis.String(r.do("BLMOVE", from, to, "LEFT", "RIGHT", timeout.Seconds()))
}

func (r redigo) awaitLowest(
	_ context.Context, key string, timeout time.Duration,
) (from string, lowest scored, err error) {
	popped, err := redis.Values(r.do("BZPOPMIN", key, timeout.Seconds()))
	if err == nil {
		_, err = redis.Scan(popped, &from, &lowest.member, &lowest.score)
	}
	return from, lowest, err
}

func (r redigo) info(context.Context) (string, error) { return redis.String(r.do("INFO", "clients")) }
