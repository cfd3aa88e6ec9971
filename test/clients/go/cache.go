package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
)

// page is what go-redis/cache keeps, as msgpack, and compressed if it is long.
type page struct {
	Title string
	Lines []string
}

func cacheSteps(addr string) []step {
	client := redis.NewClient(&redis.Options{Addr: addr})
	pages := cache.New(&cache.Options{Redis: client})
	near := cache.New(&cache.Options{Redis: client, LocalCache: cache.NewTinyLFU(1000, time.Minute)})
	long := page{"long", slices.Repeat([]string{"the same line"}, 200)}
	read := func(ctx context.Context, from *cache.Cache, key string) (string, error) {
		var got page
		err := from.Get(ctx, key, &got)
		return got.Title, err
	}
	missing := func(ctx context.Context, from *cache.Cache, key string) error {
		if _, err := read(ctx, from, key); !errors.Is(err, cache.ErrCacheMiss) {
			return fmt.Errorf("%s is there: %w", key, err)
		}
		return nil
	}

	getOrSet := func(ctx context.Context) error {
		if err := missing(ctx, pages, "page:long"); err != nil {
			return err
		}
		if err := pages.Set(&cache.Item{Ctx: ctx, Key: "page:long", Value: long, TTL: ttl}); err != nil {
			return err
		}
		var got page
		err := pages.Get(ctx, "page:long", &got)
		if err := want("lines", slices.Equal(got.Lines, long.Lines), true, err); err != nil {
			return err
		}
		left, err := client.TTL(ctx, "page:long").Result()
		if err := want("has a TTL", left > 0 && left <= ttl, true, err); err != nil {
			return err
		}
		// The key is there, so SetNX changes nothing, and SetXX does.
		set := []cache.Item{{SetNX: true, Value: page{Title: "new"}}, {SetXX: true, Value: page{Title: "replaced"}}}
		for i, title := range []string{"long", "replaced"} {
			set[i].Ctx, set[i].Key, set[i].TTL = ctx, "page:long", ttl
			if err := pages.Set(&set[i]); err != nil {
				return err
			}
			got, err := read(ctx, pages, "page:long")
			if err := want("title", got, title, err); err != nil {
				return err
			}
		}
		return nil
	}
	once := func(ctx context.Context) error {
		var computed atomic.Int64
		var wait sync.WaitGroup
		all := make([]error, 20)
		for i := range all {
			wait.Go(func() {
				var got page
				err := pages.Once(&cache.Item{Ctx: ctx, Key: "page:once", Value: &got, TTL: ttl,
					Do: func(*cache.Item) (any, error) {
						computed.Add(1)
						return &page{Title: "once"}, nil
					}})
				all[i] = want("title", got.Title, "once", err)
			})
		}
		wait.Wait()
		return errors.Join(want("times computed", computed.Load(), 1, nil), errors.Join(all...))
	}
	local := func(ctx context.Context) error {
		if err := near.Set(&cache.Item{Ctx: ctx, Key: "page:near", Value: page{Title: "old"}, TTL: ttl}); err != nil {
			return err
		}
		if err := pages.Set(&cache.Item{Ctx: ctx, Key: "page:near", Value: page{Title: "new"}, TTL: ttl}); err != nil {
			return err
		}
		got, err := read(ctx, near, "page:near")
		if err := want("what is near", got, "old", err); err != nil {
			return err
		}
		var far page
		err = near.GetSkippingLocalCache(ctx, "page:near", &far)
		return want("what is far", far.Title, "new", err)
	}
	remove := func(ctx context.Context) error {
		for _, key := range []string{"page:long", "page:once", "page:near"} {
			if err := errors.Join(near.Delete(ctx, key), missing(ctx, near, key)); err != nil {
				return err
			}
		}
		return nil
	}
	return []step{{"get-or-set", getOrSet}, {"once", once}, {"local", local}, {"delete", remove},
		behindRestart(func(ctx context.Context) error {
			if err := pages.Set(&cache.Item{Ctx: ctx, Key: "page:again", Value: page{Title: "again"}, TTL: ttl}); err != nil {
				return err
			}
			got, err := read(ctx, pages, "page:again")
			return want("title", got, "again", err)
		})}
}
