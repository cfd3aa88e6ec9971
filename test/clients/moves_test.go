package clients

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestMovesShowClusterClientsNoError: go-redis, with its default of three redirects, and rueidis use the
// nodes while one of them joins, and leaves again. No command fails, and each is executed once.
func TestMovesShowClusterClientsNoError(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 0)
	c.Node(2).Term(harness.ReadyTimeout)
	c.Converge(harness.ReadyTimeout)
	addrs := []string{c.Node(0).Addr, c.Node(1).Addr}
	one := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadTimeout: harness.ReplyTimeout})
	defer one.Close()
	other, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: addrs, DisableCache: true, ConnWriteTimeout: harness.ReplyTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	var stop atomic.Bool
	var done, failed atomic.Int64
	var busy sync.WaitGroup
	use := func(name string, incr func(ctx context.Context, key string) (int64, error)) {
		busy.Go(func() {
			counts := make(map[string]int64)
			for i := 0; !stop.Load() && t.Context().Err() == nil; i++ {
				key := fmt.Sprint(name, i%1000)
				got, err := incr(t.Context(), key)
				if err != nil || got != counts[key]+1 {
					if failed.Add(1) < 10 {
						t.Errorf("INCR %s answers %d behind %d, %v", key, got, counts[key], err)
					}
				}
				if err == nil {
					counts[key] = got
				}
				done.Add(1)
			}
		})
	}
	for i := range 4 {
		use(fmt.Sprint("go-redis", i, ":"), func(ctx context.Context, key string) (int64, error) {
			return one.Incr(ctx, key).Result()
		})
		use(fmt.Sprint("rueidis", i, ":"), func(ctx context.Context, key string) (int64, error) {
			return other.Do(ctx, other.B().Incr().Key(key).Build()).AsInt64()
		})
	}
	defer busy.Wait()
	defer stop.Store(true)
	progress := func() {
		t.Helper()
		from := done.Load()
		harness.Eventually(t, harness.ReadyTimeout, "the clients go on", func() bool { return done.Load() > from+3000 })
	}
	progress()
	c.Node(2).Start()
	c.Converge(harness.ReadyTimeout)
	progress()
	c.Node(2).Term(30 * time.Second)
	c.Converge(harness.ReadyTimeout)
	progress()
	t.Logf("%d commands, %d failed", done.Load(), failed.Load())
}
