package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Doer sends commands in one pipeline and returns their replies as texts (see ReplyText). Each
// client library under test is wrapped in one.
type Doer func(ctx context.Context, commands ...[]any) ([]string, error)

// Converse runs a conversation of commands, replies of 3 MiB and a pipeline of 2,000 commands, and
// fails the test for each unexpected reply. Its keys begin with name, which must be unique among
// callers that share a cluster.
func Converse(t *testing.T, name string, do Doer) {
	key := func(s string) string { return name + ":" + s }
	want := func(reply string, command ...any) {
		t.Helper()
		got, err := do(t.Context(), command)
		if err != nil || got[0] != reply {
			t.Errorf("%.80q answers %.80q, %v, want %.80q", command, got, err, reply)
		}
	}

	want("OK", "SET", key("k"), "v")
	want("v", "GET", key("k"))
	want("(nil)", "GET", key("missing"))
	want("1", "EXISTS", key("k"))
	want("11", "INCRBY", key("n"), "11")
	want("1", "EXPIRE", key("n"), "100")
	want("100", "TTL", key("n"))
	want("(nil)", "SET", key("k"), "w", "NX")
	want("1", "DEL", key("k"))
	want("(error) value is not an integer or out of range", "INCRBY", key("n"), "x")
	want("(error) wrong number of arguments for 'setex' command", "SETEX", key("k"), "1")
	want("(error) unknown command 'NOSUCH', with args beginning with: 'a' ", "NOSUCH", "a")
	want("OK", "MSET", key("{t}a"), "1", key("{t}b"), "2")
	want("[2 (nil) 1]", "MGET", key("{t}b"), key("{t}missing"), key("{t}a"))

	binary := make([]byte, 3<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range binary {
		binary[i] = byte(r.Uint32())
	}
	for _, value := range []string{"", "\x00\r\n\xff", string(binary)} {
		want("OK", "SET", key("binary"), value)
		want(value, "GET", key("binary"))
	}
	pipeline(t, key, do)
}

// pipeline sends writes and reads of keys of all nodes in one pipeline. Their replies must come in
// the order of the commands.
func pipeline(t *testing.T, key func(string) string, do Doer) {
	t.Helper()
	var commands [][]any
	var want []string
	for i := range 500 {
		k, v := key(fmt.Sprint("p", i)), strings.Repeat("x", i%50)+fmt.Sprint(i)
		commands = append(commands, []any{"SET", k, v}, []any{"GET", k}, []any{"APPEND", k, "!"}, []any{"GET", k})
		want = append(want, "OK", v, fmt.Sprint(len(v)+1), v+"!")
	}
	got, err := do(t.Context(), commands...)
	if err != nil {
		t.Fatalf("pipeline: %v", err)
	}
	for i := range commands {
		if got[i] != want[i] {
			t.Fatalf("in a pipeline, %q answers %q, want %q", commands[i], got[i], want[i])
		}
	}
}

// ReplyText returns a reply as text, whatever type a library returns it in.
func ReplyText(v any) string {
	switch v := v.(type) {
	case nil:
		return "(nil)"
	case []byte:
		return string(v)
	case string:
		return v
	case error:
		// Rueidis shows errors without their general code.
		return "(error) " + strings.TrimPrefix(v.Error(), "ERR ")
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = ReplyText(v[i])
		}
		return fmt.Sprint(items)
	}
	return fmt.Sprint(v)
}

// GoRedis returns a client that is closed when the test ends.
func GoRedis(t testing.TB, o *redis.Options) *redis.Client {
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// GoRedisCluster returns a Redis Cluster client that asks addr first, and is closed when the test
// ends. secure may be nil.
func GoRedisCluster(t testing.TB, addr string, secure *tls.Config) *redis.ClusterClient {
	// The client's default, three redirects, may be used up before a take-over on a busy machine
	// ends.
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, TLSConfig: secure, MaxRedirects: 8})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// GoRedisDoer wraps a go-redis client in a Doer.
func GoRedisDoer(client redis.UniversalClient) Doer {
	return func(ctx context.Context, commands ...[]any) ([]string, error) {
		replies, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, c := range commands {
				p.Do(ctx, c...)
			}
			return nil
		})
		var texts []string
		for _, r := range replies {
			v, err := r.(*redis.Cmd).Result()
			var refused redis.Error
			switch {
			case errors.Is(err, redis.Nil):
				v = nil
			case errors.As(err, &refused):
				v = err
			case err != nil:
				return nil, err
			}
			texts = append(texts, ReplyText(v))
		}
		if len(texts) == 0 {
			return nil, err
		}
		return texts, nil
	}
}
