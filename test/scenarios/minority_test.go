package scenarios

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/test/harness"
)

const (
	minorityNodes = 2 // of five, with --min-members 3
	minorityCut   = 5 * time.Second
	minorityTry   = 200 * time.Millisecond // what a command may take
)

// TestMinorityServesNobody cuts two of five nodes off. Clients still reach all of them. With --min-members 3 the two
// must have stopped serving when the others serve their keys. Gossip finds the others dead one by one, so a node
// cannot wait until it has counted them.
func TestMinorityServesNobody(t *testing.T) {
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds, and loads the machine")
	}
	network := harness.InNetwork(t)
	if network == nil {
		return
	}
	c := harness.StartClusterWith(t, harness.StartOptions{
		Nodes: 5, Proxies: 1, NodeFlags: []string{"--copies", "1", "--min-members", "3"}, Network: network,
	})
	minority, majority := c.ByRole("node")[:minorityNodes], append(c.ByRole("node")[minorityNodes:], c.Proxy(0))

	keys := make([]string, minorityNodes)
	for i, m := range minority {
		keys[i] = keyOf(t, m)
	}
	harness.Cut(t, minority, majority)
	end := time.Now().Add(minorityCut)
	last, first := make([]time.Time, minorityNodes), make([]time.Time, minorityNodes)
	var writers sync.WaitGroup
	for i, m := range minority {
		writers.Go(func() {
			eachSet(t, m, keys[i], "minority", end, func(sent, _ time.Time) { last[i] = sent })
		})
		writers.Go(func() {
			eachSet(t, c.Proxy(0), keys[i], "majority", end, func(_, came time.Time) {
				if first[i].IsZero() {
					first[i] = came
				}
			})
		})
	}
	writers.Wait()
	for i, m := range minority {
		if last[i].IsZero() || first[i].IsZero() {
			t.Fatalf("the key of %s: last written there at %v, first by the majority at %v", m.ID, last[i], first[i])
		}
		t.Logf("%s served its key for the last time %v before the majority did for the first", m.ID, first[i].Sub(last[i]))
		if last[i].After(first[i]) {
			t.Errorf("%s served its key after the majority did", m.ID)
		}
	}

	harness.Heal(t, minority, majority)
	c.Converge(harness.ReadyTimeout)
	proxy := harness.GoRedis(t, &redis.Options{Addr: c.Proxy(0).Addr})
	for _, key := range keys {
		if got := proxy.Get(t.Context(), key).Val(); got == "minority" {
			t.Errorf("%s is %q after the cut, want what the majority wrote, or nothing", key, got)
		}
	}
}

// keyOf returns a key that the node owns.
func keyOf(t *testing.T, m *harness.Member) string {
	t.Helper()
	client := harness.GoRedis(t, &redis.Options{Addr: m.Addr})
	for i := range 1000 {
		key := fmt.Sprint("key", i)
		if client.Set(t.Context(), key, "before", 0).Err() == nil {
			return key
		}
	}
	t.Fatalf("%s owns none of 1,000 keys", m.ID)
	return ""
}

// eachSet writes a key again and again through a member, and tells when each write that succeeded was sent and when
// its reply came.
func eachSet(t *testing.T, m *harness.Member, key, value string, end time.Time, done func(sent, came time.Time)) {
	client := harness.GoRedis(t, &redis.Options{Addr: m.Addr, MaxRetries: -1, ReadTimeout: minorityTry})
	for time.Now().Before(end) {
		ctx, cancel := context.WithDeadline(t.Context(), end)
		sent := time.Now()
		err := client.Set(ctx, key, value, 0).Err()
		cancel()
		if err == nil {
			done(sent, time.Now())
		}
	}
}
