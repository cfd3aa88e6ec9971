package cluster

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// balance forwards connections to whichever proxy is ready, the first one first, as a load balancer does that asks
// /readyz. It returns the address at which it listens.
func balance(t *testing.T, proxies []*harness.Member) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { forward(client, proxies) })
		}
	})
	return l.Addr().String()
}

func forward(client net.Conn, proxies []*harness.Member) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", readyOf(proxies), harness.ReplyTimeout)
	if err != nil {
		return
	}
	defer server.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client) // ends with either end
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	up.Wait()
}

// readyOf returns the address of the first proxy that says it is ready. On a busy machine that may take a while.
func readyOf(proxies []*harness.Member) string {
	for begin := time.Now(); time.Since(begin) < harness.ReplyTimeout; {
		for _, p := range proxies {
			if _, err := harness.Get(p.Admin, "/readyz"); err == nil {
				return p.Addr
			}
		}
	}
	return ""
}

// TestGoRedisMovesFromADrainedProxy ends a proxy by SIGTERM while go-redis uses it without retries: the library is told
// to move, and none of its commands fails. One goroutine uses each client: with several, go-redis 9.23 may hand a
// connection that it moves to another goroutine before it is ready.
func TestGoRedisMovesFromADrainedProxy(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 1, 2)
	addr := balance(t, c.ByRole("proxy"))
	ctx := t.Context()
	var stop atomic.Bool
	var done atomic.Int64
	var busy sync.WaitGroup
	for i := range 4 {
		client := harness.GoRedis(t, &redis.Options{
			Addr: addr, Protocol: 3, MaxRetries: -1,
			DialTimeout: harness.ReplyTimeout, ReadTimeout: harness.ReplyTimeout, PoolTimeout: harness.ReplyTimeout,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeEnabled},
		})
		busy.Go(func() {
			for n := int64(1); !stop.Load() && ctx.Err() == nil; n++ {
				got, err := client.Incr(ctx, fmt.Sprint("moving:", i)).Result()
				if err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN") {
					n-- // the node stood still, and did not execute it
					continue
				}
				if err != nil || got != n {
					t.Errorf("INCR %d of client %d answers %d, %v", n, i, got, err)
					return
				}
				done.Add(1)
			}
		})
	}
	defer busy.Wait()
	defer stop.Store(true)
	progress := func() {
		t.Helper()
		from := done.Load()
		harness.Eventually(t, harness.ReadyTimeout, "the clients go on", func() bool {
			return done.Load() > from+100 || t.Failed()
		})
	}
	progress()
	c.Proxy(0).Term(30 * time.Second)
	progress()
}
