package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/mediocregopher/radix/v4"
)

type radixPool struct {
	c    radix.Client
	addr string
}

func openRadix(ctx context.Context, addr string) (client, error) {
	c, err := (radix.PoolConfig{}).New(ctx, "tcp", addr)
	return radixPool{c, addr}, err
}

func (r radixPool) ping(ctx context.Context) error { return r.c.Do(ctx, radix.Cmd(nil, "PING")) }

func (r radixPool) get(ctx context.Context, key string) (value string, found bool, err error) {
	maybe := radix.Maybe{Rcv: &value}
	err = r.c.Do(ctx, radix.Cmd(&maybe, "GET", key))
	return value, err == nil && !maybe.Null, err
}

func (r radixPool) set(ctx context.Context, key, value string, ttl time.Duration) error {
	return r.c.Do(ctx, radix.FlatCmd(nil, "SETEX", key, seconds(ttl), value))
}

func (r radixPool) ttl(ctx context.Context, key string) (time.Duration, error) {
	var n int
	err := r.c.Do(ctx, radix.Cmd(&n, "TTL", key))
	return time.Duration(n) * time.Second, err
}

func (r radixPool) setMany(ctx context.Context, pairs []string) error {
	return r.c.Do(ctx, radix.Cmd(nil, "MSET", pairs...))
}

func (r radixPool) getMany(ctx context.Context, keys []string) (values []string, err error) {
	err = r.c.Do(ctx, radix.Cmd(&values, "MGET", keys...))
	return values, err
}

func (r radixPool) del(ctx context.Context, keys []string) (n int64, err error) {
	err = r.c.Do(ctx, radix.Cmd(&n, "DEL", keys...))
	return n, err
}

func (r radixPool) scan(ctx context.Context, pattern string) (keys []string, err error) {
	s := radix.ScannerConfig{Command: "SCAN", Pattern: pattern, Count: 100}.New(r.c)
	var key string
	for s.Next(ctx, &key) {
		keys = append(keys, key)
	}
	return keys, s.Close()
}

func (r radixPool) incr(ctx context.Context, key string) (n int64, err error) {
	err = r.c.Do(ctx, radix.Cmd(&n, "INCR", key))
	return n, err
}

func (r radixPool) expire(ctx context.Context, key string, ttl time.Duration) (set bool, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&set, "EXPIRE", key, seconds(ttl)))
	return set, err
}

func (r radixPool) setAbsent(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	var maybe radix.Maybe
	err := r.c.Do(ctx, radix.FlatCmd(&maybe, "SET", key, value, "NX", "EX", seconds(ttl)))
	return err == nil && !maybe.Null, err
}

func (r radixPool) deleteIfEqual(ctx context.Context, key, value string) (deleted bool, err error) {
	err = r.c.Do(ctx, radix.WithConn(key, func(ctx context.Context, c radix.Conn) error {
		var held string
		if err := c.Do(ctx, radix.Cmd(nil, "WATCH", key)); err != nil {
			return err
		}
		if err := c.Do(ctx, radix.Cmd(&held, "GET", key)); err != nil {
			return err
		}
		if held != value {
			return c.Do(ctx, radix.Cmd(nil, "UNWATCH"))
		}
		var reply radix.Maybe
		p := radix.NewPipeline()
		p.Append(radix.Cmd(nil, "MULTI"))
		p.Append(radix.Cmd(nil, "DEL", key))
		p.Append(radix.Cmd(&reply, "EXEC"))
		err := c.Do(ctx, p)
		deleted = err == nil && !reply.Null
		return err
	}))
	return deleted, err
}

func (r radixPool) pipeline(ctx context.Context, keys []string) ([]string, error) {
	values := make([]string, len(keys))
	p := radix.NewPipeline()
	for i, k := range keys {
		p.Append(radix.Cmd(nil, "SET", k, k))
		p.Append(radix.Cmd(&values[i], "GET", k))
	}
	return values, r.c.Do(ctx, p)
}

func (r radixPool) setFields(ctx context.Context, key string, fields map[string]string) (n int64, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&n, "HSET", key, fields))
	return n, err
}

func (r radixPool) addToField(ctx context.Context, key, field string, by int64) (n int64, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&n, "HINCRBY", key, field, by))
	return n, err
}

func (r radixPool) fields(ctx context.Context, key string) (fields map[string]string, err error) {
	err = r.c.Do(ctx, radix.Cmd(&fields, "HGETALL", key))
	return fields, err
}

func (r radixPool) expireField(ctx context.Context, key, field string, ttl time.Duration) (set []int64, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&set, "HEXPIRE", key, seconds(ttl), "FIELDS", 1, field))
	return set, err
}

func (r radixPool) walkFields(ctx context.Context, key string) (map[string]string, error) {
	found, err := r.walk(ctx, "HSCAN", key)
	fields := map[string]string{}
	for i := 0; i+1 < len(found); i += 2 {
		fields[found[i]] = found[i+1]
	}
	return fields, err
}

func (r radixPool) walkMembers(ctx context.Context, key string) ([]string, error) {
	return r.walk(ctx, "SSCAN", key)
}

func (r radixPool) walk(ctx context.Context, command, key string) (found []string, err error) {
	s := radix.ScannerConfig{Command: command, Key: key}.New(r.c)
	var one string
	for s.Next(ctx, &one) {
		found = append(found, one)
	}
	return found, s.Close()
}

func (r radixPool) add(ctx context.Context, key string, members []string) (n int64, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&n, "SADD", key, members))
	return n, err
}

func (r radixPool) common(ctx context.Context, keys []string) (members []string, err error) {
	err = r.c.Do(ctx, radix.Cmd(&members, "SINTER", keys...))
	return members, err
}

func (r radixPool) rank(ctx context.Context, key string, scores map[string]float64) (n int64, err error) {
	args := []any{key}
	for member, score := range scores {
		args = append(args, score, member)
	}
	err = r.c.Do(ctx, radix.FlatCmd(&n, "ZADD", args...))
	return n, err
}

func (r radixPool) raise(ctx context.Context, key, member string, by float64) (score float64, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&score, "ZINCRBY", key, by, member))
	return score, err
}

func (r radixPool) best(ctx context.Context, key string, n int64) (best []scored, err error) {
	var flat []string // RESP2
	err = r.c.Do(ctx, radix.FlatCmd(&flat, "ZRANGE", key, 0, n-1, "REV", "WITHSCORES"))
	for i := 0; i+1 < len(flat) && err == nil; i += 2 {
		score, _ := strconv.ParseFloat(flat[i+1], 64)
		best = append(best, scored{flat[i], score})
	}
	return best, err
}

func (r radixPool) push(ctx context.Context, key string, items []string) (n int64, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&n, "RPUSH", key, items))
	return n, err
}

func (r radixPool) move(ctx context.Context, from, to string) (moved string, err error) {
	err = r.c.Do(ctx, radix.Cmd(&moved, "LMOVE", from, to, "LEFT", "RIGHT"))
	return moved, err
}

func (r radixPool) items(ctx context.Context, key string) (items []string, err error) {
	err = r.c.Do(ctx, radix.Cmd(&items, "LRANGE", key, "0", "-1"))
	return items, err
}

func (r radixPool) place(ctx context.Context, key string, t town) error {
	return r.c.Do(ctx, radix.FlatCmd(nil, "GEOADD", key, t.longitude, t.latitude, t.name))
}

func (r radixPool) apart(ctx context.Context, key, a, b string) (km float64, err error) {
	err = r.c.Do(ctx, radix.Cmd(&km, "GEODIST", key, a, b, "km"))
	return km, err
}

func (r radixPool) near(
	ctx context.Context, key string, longitude, latitude, radius float64,
) (names []string, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&names, "GEOSEARCH", key,
		"FROMLONLAT", longitude, latitude, "BYRADIUS", radius, "km", "ASC"))
	return names, err
}

// listen also publishes to itself until it hears that, because this library does not wait for the server's
// confirmation.
func (r radixPool) listen(ctx context.Context, how listening, name string, hear func(message)) error {
	c, err := radix.Dial(ctx, "tcp", r.addr)
	if err != nil {
		return err
	}
	s, probed := radix.PubSubConfig{}.New(c), name
	if how == toPattern {
		probed = strings.TrimSuffix(name, "*")
		err = s.PSubscribe(ctx, name)
	} else {
		err = s.Subscribe(ctx, name)
	}
	if err != nil {
		return err
	}
	err = untilItWorks(func() error {
		n, err := r.publish(ctx, probed, "probe")
		return want("listeners", n, 1, err)
	})
	go func() {
		for m, err := s.Next(ctx); err == nil; m, err = s.Next(ctx) {
			if text := string(m.Message); text != "probe" {
				hear(message{m.Pattern, m.Channel, text})
			}
		}
	}()
	return err
}

func (r radixPool) publish(ctx context.Context, channel, text string) (n int64, err error) {
	err = r.c.Do(ctx, radix.Cmd(&n, "PUBLISH", channel, text))
	return n, err
}

func (r radixPool) popFirst(ctx context.Context, keys []string, timeout time.Duration) (popped []string, err error) {
	err = r.c.Do(ctx, radix.FlatCmd(&radix.Maybe{Rcv: &popped}, "BLPOP", keys, timeout.Seconds()))
	return popped, err
}

// awaitMove takes a connection for itself: this library knows BLPOP and BZPOPMIN for commands that block, and BLMOVE
// not.
func (r radixPool) awaitMove(ctx context.Context, from, to string, timeout time.Duration) (moved string, err error) {
	err = r.c.Do(ctx, radix.WithConn(from, func(ctx context.Context, c radix.Conn) error {
		return c.Do(ctx, radix.FlatCmd(&moved, "BLMOVE", from, to, "LEFT", "RIGHT", timeout.Seconds()))
	}))
	return moved, err
}

func (r radixPool) awaitLowest(
	ctx context.Context, key string, timeout time.Duration,
) (from string, lowest scored, err error) {
	popped := radix.Tuple{&from, &lowest.member, &lowest.score}
	err = r.c.Do(ctx, radix.FlatCmd(&popped, "BZPOPMIN", key, timeout.Seconds()))
	return from, lowest, err
}

func (r radixPool) info(ctx context.Context) (text string, err error) {
	err = r.c.Do(ctx, radix.Cmd(&text, "INFO", "clients"))
	return text, err
}
