package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// client has the operations that the scenario needs, each done in the library's own way.
type client interface {
	ping(ctx context.Context) error
	get(ctx context.Context, key string) (value string, found bool, err error)
	set(ctx context.Context, key, value string, ttl time.Duration) error
	ttl(ctx context.Context, key string) (time.Duration, error)
	setMany(ctx context.Context, pairs []string) error
	// getMany returns "" for a missing key.
	getMany(ctx context.Context, keys []string) ([]string, error)
	del(ctx context.Context, keys []string) (int64, error)
	scan(ctx context.Context, pattern string) ([]string, error)
	incr(ctx context.Context, key string) (int64, error)
	expire(ctx context.Context, key string, ttl time.Duration) (bool, error)
	setAbsent(ctx context.Context, key, value string, ttl time.Duration) (bool, error)
	deleteIfEqual(ctx context.Context, key, value string) (bool, error)
	// pipeline sends SET and GET of each key at once, and returns the replies to the GETs.
	pipeline(ctx context.Context, keys []string) ([]string, error)

	collections
	messages
	waiting
}

type scenario struct {
	ctx    context.Context
	client client
	prefix string
}

const (
	ttl              = 100 * time.Second
	pipelined        = 500 // SETs, and as many GETs
	reconnectTimeout = 20 * time.Second
)

// run goes through the steps. Those of shard channels and of tracking are left out for a library without an API for it.
func (s *scenario) run() {
	_, shards := s.client.(sharded)
	_, caches := s.client.(caching)
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"connect", func() error { return s.client.ping(s.ctx) }},
		{"get-or-set", s.getOrSet},
		{"many", s.many},
		{"delete", s.deleteMany},
		{"scan", s.scanAndDelete},
		{"rate-limit", s.rateLimit},
		{"lock", s.lock},
		{"pipeline", s.pipelines},
		{"hash", s.hash},
		{"set", s.set},
		{"sorted-set", s.sortedSet},
		{"list", s.list},
		{"geo", s.geo},
		{"publish", s.publish},
		{"shard-publish", s.publishToShard},
		{"blocking", s.blocking},
		{"tracking", s.tracking},
		{"reconnect", s.reconnect},
	} {
		if step.name == "shard-publish" && !shards || step.name == "tracking" && !caches {
			continue
		}
		if err := step.run(); err != nil {
			fmt.Printf("FAIL %s: %v\n", step.name, err)
		} else {
			fmt.Println("ok", step.name)
		}
	}
}

func (s *scenario) key(name string) string { return s.prefix + name }

func (s *scenario) keys(name string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, s.key(fmt.Sprint(name, i)))
	}
	return keys
}

// load sets each key to its own name, and returns the pairs.
func (s *scenario) load(keys []string) error {
	var pairs []string
	for _, k := range keys {
		pairs = append(pairs, k, "value of "+k)
	}
	return s.client.setMany(s.ctx, pairs)
}

func (s *scenario) getOrSet() error {
	key := s.key("cached")
	if _, found, err := s.client.get(s.ctx, key); err != nil || found {
		return fmt.Errorf("GET of a missing key: found %v, %w", found, err)
	}
	if err := s.client.set(s.ctx, key, "computed\r\n\x00", ttl); err != nil {
		return fmt.Errorf("SET: %w", err)
	}
	if v, found, err := s.client.get(s.ctx, key); err != nil || v != "computed\r\n\x00" {
		return fmt.Errorf("GET is %q, %v, %w", v, found, err)
	}
	if left, err := s.client.ttl(s.ctx, key); err != nil || left <= 0 || left > ttl {
		return fmt.Errorf("TTL is %v, %w", left, err)
	}
	return nil
}

func (s *scenario) many() error {
	keys := s.keys("many", 100)
	if err := s.load(keys); err != nil {
		return fmt.Errorf("MSET: %w", err)
	}
	asked := append([]string{s.key("missing")}, keys...)
	values, err := s.client.getMany(s.ctx, asked)
	if err != nil || len(values) != len(asked) {
		return fmt.Errorf("MGET of %d keys gives %d, %w", len(asked), len(values), err)
	}
	if values[0] != "" {
		return fmt.Errorf("MGET gives %q for a missing key", values[0])
	}
	for i, k := range keys {
		if values[i+1] != "value of "+k {
			return fmt.Errorf("MGET gives %q for %s", values[i+1], k)
		}
	}
	return nil
}

func (s *scenario) deleteMany() error {
	keys := s.keys("many", 100)
	if n, err := s.client.del(s.ctx, append(keys, s.key("missing"))); err != nil || n != 100 {
		return fmt.Errorf("DEL of 100 keys says %d, %w", n, err)
	}
	return nil
}

func (s *scenario) scanAndDelete() error {
	gone, kept := s.keys("scanned:", 300), s.keys("kept:", 10)
	if err := s.load(append(slices.Clone(gone), kept...)); err != nil {
		return fmt.Errorf("MSET: %w", err)
	}
	found, err := s.client.scan(s.ctx, s.key("scanned:*"))
	slices.Sort(found)
	found = slices.Compact(found) // SCAN may return a key twice
	slices.Sort(gone)
	if err != nil || !slices.Equal(found, gone) {
		return fmt.Errorf("SCAN finds %d of 300 keys, %w", len(found), err)
	}
	if n, err := s.client.del(s.ctx, found); err != nil || n != 300 {
		return fmt.Errorf("DEL of 300 keys says %d, %w", n, err)
	}
	if left, err := s.client.scan(s.ctx, s.key("kept:*")); err != nil || len(left) != 10 {
		return fmt.Errorf("SCAN finds %d of 10 keys that were kept, %w", len(left), err)
	}
	return nil
}

func (s *scenario) rateLimit() error {
	key := s.key("limited")
	for i := range int64(5) {
		n, err := s.client.incr(s.ctx, key)
		if err != nil || n != i+1 {
			return fmt.Errorf("INCR says %d, %w", n, err)
		}
		if n > 1 {
			continue
		}
		if set, err := s.client.expire(s.ctx, key, ttl); err != nil || !set {
			return fmt.Errorf("EXPIRE says %v, %w", set, err)
		}
	}
	if left, err := s.client.ttl(s.ctx, key); err != nil || left <= 0 || left > ttl {
		return fmt.Errorf("TTL is %v, %w", left, err)
	}
	return nil
}

func (s *scenario) lock() error {
	key := s.key("lock")
	if got, err := s.client.setAbsent(s.ctx, key, "mine", ttl); err != nil || !got {
		return fmt.Errorf("SET NX says %v, %w", got, err)
	}
	if got, err := s.client.setAbsent(s.ctx, key, "theirs", ttl); err != nil || got {
		return fmt.Errorf("the second SET NX says %v, %w", got, err)
	}
	if done, err := s.client.deleteIfEqual(s.ctx, key, "theirs"); err != nil || done {
		return fmt.Errorf("compare and delete by another says %v, %w", done, err)
	}
	if done, err := s.client.deleteIfEqual(s.ctx, key, "mine"); err != nil || !done {
		return fmt.Errorf("compare and delete says %v, %w", done, err)
	}
	if _, found, err := s.client.get(s.ctx, key); err != nil || found {
		return fmt.Errorf("the lock is still there: %v, %w", found, err)
	}
	return nil
}

func (s *scenario) pipelines() error {
	keys := s.keys("piped", pipelined)
	values, err := s.client.pipeline(s.ctx, keys)
	if err != nil {
		return err
	}
	if !slices.Equal(values, keys) { // each key holds its own name
		return errors.New("replies are not in the order of the commands")
	}
	return nil
}

// reconnect asks for a restart of the proxy. Commands may fail until it is back, and also later if
// the library notices the end of a connection only by a failing command; a pool may hold several
// such connections.
func (s *scenario) reconnect() error {
	if err := restarted("restart"); err != nil {
		return err
	}
	return untilItWorks(func() error {
		if err := s.setAndGet(); err != nil {
			return err
		}
		return s.pipelines()
	})
}

func (s *scenario) setAndGet() error {
	key := s.key("cached")
	if err := s.client.set(s.ctx, key, "again", ttl); err != nil {
		return fmt.Errorf("SET: %w", err)
	}
	if v, _, err := s.client.get(s.ctx, key); err != nil || v != "again" {
		return fmt.Errorf("GET is %q, %w", v, err)
	}
	return nil
}
