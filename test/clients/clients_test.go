package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	redigo "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestClients runs one conversation with every client library, unmodified and with its defaults,
// through a proxy. Libraries that know Redis Cluster also run it against a node.
func TestClients(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	proxy, node := c.Proxy(0).Addr, c.Node(1).Addr
	harness.AwaitLevel(t, proxy)
	c.AwaitCopies(harness.ReadyTimeout) // a client at a node is told to try again while a partition is taken over
	for name, do := range map[string]harness.Doer{
		"go-redis":                     harness.GoRedisDoer(harness.GoRedis(t, &redis.Options{Addr: proxy})),
		"go-redis RESP2":               harness.GoRedisDoer(harness.GoRedis(t, &redis.Options{Addr: proxy, Protocol: 2})),
		"go-redis cluster, proxy":      harness.GoRedisDoer(harness.GoRedisCluster(t, proxy, nil)),
		"go-redis cluster, node":       harness.GoRedisDoer(harness.GoRedisCluster(t, node, nil)),
		"redigo":                       redigoDoer(t, proxy),
		"rueidis":                      rueidisDoer(t, rueidis.ClientOption{InitAddress: []string{proxy}}),
		"rueidis RESP2":                rueidisDoer(t, rueidis.ClientOption{InitAddress: []string{proxy}, AlwaysRESP2: true}),
		"rueidis single client":        rueidisDoer(t, rueidis.ClientOption{InitAddress: []string{proxy}, ForceSingleClient: true}),
		"rueidis cluster through node": rueidisDoer(t, rueidis.ClientOption{InitAddress: []string{node}}),
	} {
		t.Run(name, func(t *testing.T) { harness.Converse(t, strings.ReplaceAll(name, " ", "-"), do) })
	}
}

// redigoDoer uses one connection of redigo's Dial.
func redigoDoer(t testing.TB, addr string) harness.Doer {
	conn, err := redigo.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return func(_ context.Context, commands ...[]any) ([]string, error) {
		for _, c := range commands {
			if err := conn.Send(c[0].(string), c[1:]...); err != nil {
				return nil, err
			}
		}
		if err := conn.Flush(); err != nil {
			return nil, err
		}
		var texts []string
		for range commands {
			v, err := conn.Receive()
			var refused redigo.Error
			if errors.As(err, &refused) {
				v = error(refused)
			} else if err != nil {
				return nil, err
			}
			texts = append(texts, harness.ReplyText(v))
		}
		return texts, nil
	}
}

// rueidisDoer keeps rueidis's defaults: it tracks (CLIENT TRACKING ON OPTIN), for which it needs RESP3.
func rueidisDoer(t testing.TB, o rueidis.ClientOption) harness.Doer {
	o.DisableCache = o.AlwaysRESP2
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return func(ctx context.Context, commands ...[]any) ([]string, error) {
		var built rueidis.Commands
		for _, c := range commands {
			words := make([]string, len(c))
			for i := range c {
				words[i] = fmt.Sprint(c[i])
			}
			b := client.B().Arbitrary(words[0])
			if len(words) > 1 {
				b = b.Keys(words[1]).Args(words[2:]...)
			}
			built = append(built, b.Build())
		}
		var texts []string
		for _, r := range client.DoMulti(ctx, built...) {
			v, err := r.ToAny()
			refused, isRefusal := rueidis.IsRedisErr(err)
			switch {
			case rueidis.IsRedisNil(err):
				v = nil
			case isRefusal:
				v = errors.New(refused.Error())
			case err != nil:
				return nil, err
			}
			texts = append(texts, harness.ReplyText(v))
		}
		return texts, nil
	}
}

// TestClusterClientFollowsMoves checks that a Redis Cluster client learns by MOVED that partitions
// have a new owner, and uses it.
func TestClusterClientFollowsMoves(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 0)
	c.Node(2).Kill()
	c.Converge(harness.ReadyTimeout)
	client := harness.GoRedisCluster(t, c.Node(0).Addr, nil)
	probe := func() {
		t.Helper()
		for i := range 300 {
			k := fmt.Sprint("key", i)
			if err := client.Set(t.Context(), k, i, 0).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := client.Get(t.Context(), k).Int(); err != nil || got != i {
				t.Fatalf("GET %s is %d, %v", k, got, err)
			}
		}
	}
	probe() // with two nodes
	c.Node(2).Start()
	c.Converge(harness.ReadyTimeout)
	probe()
	if s, err := c.Node(2).Status(); err != nil || s.Members[0].Keys == 0 {
		t.Errorf("the new node has no keys: %v, %v", s.Members, err)
	}
}

// TestRueidisCaches: rueidis's client-side cache answers reads, and forgets what others change.
func TestRueidisCaches(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 1)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	for name, addr := range map[string]string{"proxy": c.Proxy(0).Addr, "nodes": c.Node(0).Addr} {
		t.Run(name, func(t *testing.T) {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			writer := harness.GoRedisCluster(t, addr, nil)
			ctx := context.Background()
			get := func(key string) (value string, cached bool) {
				t.Helper()
				reply := client.DoCache(ctx, client.B().Get().Key(key).Cache(), time.Minute)
				value, err := reply.ToString()
				if err != nil {
					t.Fatal(err)
				}
				return value, reply.IsCacheHit()
			}
			for i := range 20 {
				key := fmt.Sprint(name, i)
				for turn := range 3 {
					want := fmt.Sprint(turn)
					if err := writer.Set(ctx, key, want, 0).Err(); err != nil {
						t.Fatal(err)
					}
					harness.Eventually(t, 10*time.Second, "the cache forgets", func() bool {
						value, _ := get(key)
						return value == want
					})
					harness.Eventually(t, 10*time.Second, "the cache answers", func() bool {
						_, cached := get(key)
						return cached
					})
				}
			}
		})
	}
}
