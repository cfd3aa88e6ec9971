package test

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func goRedis(t testing.TB, o *redis.Options) *redis.Client {
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
