package clients

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestClientsOfSentinel: clients that are configured for Redis Sentinel find the proxy, and find it again
// when it comes back.
func TestClientsOfSentinel(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	proxy, sentinel := c.Proxy(0), harness.FreeAddr(t)
	proxy.Term(harness.ReadyTimeout)
	proxy.Flags = append(proxy.Flags, "--sentinel-listen", sentinel)
	proxy.Start()
	harness.AwaitLevel(t, proxy.Addr)
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{sentinel}})
	t.Cleanup(func() { _ = failover.Close() })
	for name, do := range map[string]harness.Doer{
		"go-redis": harness.GoRedisDoer(failover),
		"rueidis": rueidisDoer(t, rueidis.ClientOption{
			InitAddress: []string{sentinel}, Sentinel: rueidis.SentinelOption{MasterSet: "mymaster"},
		}),
	} {
		harness.Converse(t, name+"-sentinel", do)
	}
	proxy.Term(harness.ReadyTimeout)
	proxy.Start()
	harness.Eventually(t, harness.ReadyTimeout, "go-redis finds the proxy again", func() bool {
		return failover.Set(t.Context(), "again", "v", 0).Err() == nil
	})
}
