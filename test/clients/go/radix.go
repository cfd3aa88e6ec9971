package main

import (
	"context"
	"time"

	"github.com/mediocregopher/radix/v4"
)

type radixPool struct{ c radix.Client }

func openRadix(ctx context.Context, addr string) (client, error) {
	c, err := (radix.PoolConfig{}).New(ctx, "tcp", addr)
	return radixPool{c}, err
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
