package main

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
)

// collections has the operations that the scenario needs on hashes, sets, sorted sets, lists and
// places.
type collections interface {
	setFields(ctx context.Context, key string, fields map[string]string) (int64, error)
	addToField(ctx context.Context, key, field string, n int64) (int64, error)
	fields(ctx context.Context, key string) (map[string]string, error)
	expireField(ctx context.Context, key, field string, ttl time.Duration) ([]int64, error)
	// walkFields is HSCAN, walkMembers SSCAN.
	walkFields(ctx context.Context, key string) (map[string]string, error)

	add(ctx context.Context, key string, members []string) (int64, error)
	common(ctx context.Context, keys []string) ([]string, error)
	walkMembers(ctx context.Context, key string) ([]string, error)

	rank(ctx context.Context, key string, scores map[string]float64) (int64, error)
	raise(ctx context.Context, key, member string, by float64) (float64, error)
	// best returns the n members with the highest scores.
	best(ctx context.Context, key string, n int64) ([]scored, error)

	push(ctx context.Context, key string, items []string) (int64, error)
	// move takes the first item of a list and puts it behind the last one of another.
	move(ctx context.Context, from, to string) (string, error)
	items(ctx context.Context, key string) ([]string, error)

	place(ctx context.Context, key string, t town) error
	// apart is in kilometres.
	apart(ctx context.Context, key, a, b string) (float64, error)
	// near returns the names within a radius in kilometres, the nearest first.
	near(ctx context.Context, key string, longitude, latitude, radius float64) ([]string, error)
}

// scored is a member of a sorted set.
type scored struct {
	member string
	score  float64
}

type town struct {
	name                string
	longitude, latitude float64
}

const walked = 300 // fields, and members

// expect returns an error unless a reply is what it should be.
func expect(what string, got, want any, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("%s gives %v, want %v", what, got, want)
	}
	return nil
}

func (s *scenario) hash() error {
	key, many := s.key("hash"), map[string]string{}
	for i := range walked {
		many[fmt.Sprint("field", i)] = fmt.Sprint(i)
	}
	n, err := s.client.setFields(s.ctx, key, map[string]string{"name": "Ada", "visits": "41"})
	if err := expect("HSET", n, int64(2), err); err != nil {
		return err
	}
	n, err = s.client.addToField(s.ctx, key, "visits", 1)
	if err := expect("HINCRBY", n, int64(42), err); err != nil {
		return err
	}
	all, err := s.client.fields(s.ctx, key)
	if err := expect("HGETALL", all, map[string]string{"name": "Ada", "visits": "42"}, err); err != nil {
		return err
	}
	set, err := s.client.expireField(s.ctx, key, "visits", ttl)
	if err := expect("HEXPIRE", set, []int64{1}, err); err != nil {
		return err
	}
	n, err = s.client.setFields(s.ctx, s.key("fields"), many)
	if err := expect("HSET", n, int64(walked), err); err != nil {
		return err
	}
	all, err = s.client.walkFields(s.ctx, s.key("fields"))
	return expect("HSCAN", all, many, err)
}

func (s *scenario) set() error {
	one, other, members := s.key("{set}:1"), s.key("{set}:2"), s.keys("member", walked)
	n, err := s.client.add(s.ctx, one, members)
	if err := expect("SADD", n, int64(walked), err); err != nil {
		return err
	}
	n, err = s.client.add(s.ctx, other, []string{members[1], members[2], "else"})
	if err := expect("SADD", n, int64(3), err); err != nil {
		return err
	}
	both, err := s.client.common(s.ctx, []string{one, other})
	slices.Sort(both)
	if err := expect("SINTER", both, members[1:3], err); err != nil {
		return err
	}
	found, err := s.client.walkMembers(s.ctx, one)
	slices.Sort(found)
	slices.Sort(members)
	return expect("SSCAN", slices.Compact(found), members, err)
}

func (s *scenario) sortedSet() error {
	key := s.key("board")
	n, err := s.client.rank(s.ctx, key, map[string]float64{"Ada": 1, "Bob": 2.5, "Cy": 3})
	if err := expect("ZADD", n, int64(3), err); err != nil {
		return err
	}
	score, err := s.client.raise(s.ctx, key, "Ada", 2)
	if err := expect("ZINCRBY", score, 3.0, err); err != nil {
		return err
	}
	best, err := s.client.best(s.ctx, key, 3)
	return expect("ZRANGE REV", best, []scored{{"Cy", 3}, {"Ada", 3}, {"Bob", 2.5}}, err)
}

func (s *scenario) list() error {
	queue, done := s.key("{list}:queue"), s.key("{list}:done")
	n, err := s.client.push(s.ctx, queue, []string{"a", "b", "c"})
	if err := expect("RPUSH", n, int64(3), err); err != nil {
		return err
	}
	moved, err := s.client.move(s.ctx, queue, done)
	if err := expect("LMOVE", moved, "a", err); err != nil {
		return err
	}
	left, err := s.client.items(s.ctx, queue)
	return expect("LRANGE", left, []string{"b", "c"}, err)
}

func (s *scenario) geo() error {
	key := s.key("towns")
	for _, t := range []town{{"Palermo", 13.361389, 38.115556}, {"Catania", 15.087269, 37.502669}} {
		if err := s.client.place(s.ctx, key, t); err != nil {
			return fmt.Errorf("GEOADD: %w", err)
		}
	}
	km, err := s.client.apart(s.ctx, key, "Palermo", "Catania")
	if err := expect("GEODIST", math.Round(km), 166.0, err); err != nil {
		return err
	}
	near, err := s.client.near(s.ctx, key, 15, 37, 200)
	return expect("GEOSEARCH", near, []string{"Catania", "Palermo"}, err)
}
