package main

import (
	"context"
	"fmt"
)

// caching is for the libraries with a client-side cache.
type caching interface {
	// openCache opens connections for a cache, and returns what reads a key through the library's
	// cache, and reports whether the cache had it.
	openCache(ctx context.Context) (func(key string) (value string, hit bool, err error), error)
}

// tracking reads a key through the library's cache while another connection changes it.
func (s *scenario) tracking() error {
	key := s.key("tracked")
	read, err := s.client.(caching).openCache(s.ctx)
	if err != nil {
		return err
	}
	for turn := range 5 {
		value := fmt.Sprint("value ", turn)
		if err := s.client.set(s.ctx, key, value, ttl); err != nil {
			return fmt.Errorf("SET: %w", err)
		}
		for _, cached := range []bool{false, true} { // until the invalidation has come, and until the value is kept
			err := untilItWorks(func() error {
				got, hit, err := read(key)
				if err == nil && cached && !hit {
					err = fmt.Errorf("%q is not cached", got)
				}
				return expect("a cached GET", got, value, err)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
