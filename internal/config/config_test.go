package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// say answers CONFIG SET or GET, written as words.
func (c *Config) say(t *testing.T, request string) string {
	t.Helper()
	args := conversation.Words(t, request)
	if string(args[1]) == "SET" {
		return string(c.Set(nil, args))
	}
	return string(c.AppendGet(nil, resp.RESP2, args))
}

func TestSettingsReachTheCaller(t *testing.T) {
	changes := 0
	c := New(Options{MaxClients: 7, Changed: func(*Config) { changes++ }})
	if n := c.MaxClients(); n != 7 || changes != 1 {
		t.Errorf("MaxClients() = %d after %d calls of Changed, want 7 after 1", n, changes)
	}
	c.say(t, "CONFIG SET maxclients 9 timeout 60")
	if n, d := c.MaxClients(), c.IdleTimeout(); n != 9 || d != time.Minute {
		t.Errorf("MaxClients(), IdleTimeout() = %d, %v, want 9, 1m", n, d)
	}
	c.say(t, "CONFIG SET slowlog-log-slower-than 5")
	c.say(t, "CONFIG SET slowlog-max-len 6")
	if micros, entries := c.SlowerThan(), c.SlowLogLen(); micros != 5 || entries != 6 || changes != 5 {
		t.Errorf("SlowerThan(), SlowLogLen() = %d, %d after %d calls of Changed, want 5, 6 after 5",
			micros, entries, changes)
	}
}

// TestWithoutHooks is about a proxy, which has no memory limit of its own.
func TestWithoutHooks(t *testing.T) {
	c := New(Options{})
	f := func(request, want string) {
		t.Helper()
		if got := c.say(t, request); got != want+"\r\n" {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
	f("CONFIG SET maxmemory 1gb", "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set immutable config")
	f("CONFIG SET maxmemory-policy noeviction",
		"-ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - can't set immutable config")
	f("CONFIG GET maxmemory", "*2\r\n$9\r\nmaxmemory\r\n$1\r\n0")
	if got := string(c.ResetStat(nil)); got != "+OK\r\n" {
		t.Errorf("RESETSTAT: %q", got)
	}
}

func TestConcerns(t *testing.T) {
	f := func(request string, want Where) {
		t.Helper()
		if got := Concerns(conversation.Words(t, request)); got != want {
			t.Errorf("%s: %d, want %d", request, got, want)
		}
	}
	f("CONFIG GET maxmemory", ShowNodes)
	f("config get MAXMEMORY-POLICY", ShowNodes)
	f("CONFIG GET timeout *", ShowNodes)
	f("CONFIG GET timeout", ShowNodes)
	f("CONFIG GET maxclients", Here)
	f("CONFIG GET nosuch", Here)
	f("CONFIG SET maxmemory 1gb", SetNodes)
	f("CONFIG SET MaxMemory 1gb maxmemory-policy noeviction", SetNodes)
	f("CONFIG SET timeout 1 maxmemory 1gb", SetNodes)
	f("CONFIG SET maxclients 1 maxmemory 1gb", SetNodes)
	f("CONFIG SET maxmemory 1gb nosuch 1", SetNodes)
	f("CONFIG SET maxmemory 1gb maxclients", Here) // which refuses it
	f("CONFIG SET timeout 1", SetNodes)
	f("CONFIG SET maxclients 1", Here)
	f("CONFIG RESETSTAT", Here)
	f("CONFIG HELP", Here)
}

// TestPolicyNames checks that the hook gets Dunlin's name for every accepted name of Redis.
func TestPolicyNames(t *testing.T) {
	var got string
	c := New(Options{Policy: "volatile-ttl", SetPolicy: func(name string) error { got = name; return nil }})
	if v := c.Policy(0, 0, 1); v != "volatile-ttl" {
		t.Errorf("policy %q at the start, want volatile-ttl", v)
	}
	f := func(redis, want string) {
		t.Helper()
		if reply := c.say(t, "CONFIG SET maxmemory-policy "+redis); reply != "+OK\r\n" || got != want {
			t.Errorf("%s: %q, hook was given %q, want %q", redis, reply, got, want)
		}
	}
	f("allkeys-lru", "allkeys")
	f("ALLKEYS-LFU", "allkeys")
	f("allkeys-random", "allkeys")
	f("allkeys", "allkeys")
	f("volatile-ttl", "volatile-ttl")
	f("volatile-lru", "volatile-ttl")
	f("noeviction", "noeviction")
}

// TestPolicyOfNodes checks that the nodes' sums show which policy all have, or that policies
// differ.
func TestPolicyOfNodes(t *testing.T) {
	f := func(want string, names ...string) {
		t.Helper()
		var sum, squares int64
		for _, name := range names {
			n := New(Options{Policy: name}).PolicyNumber()
			sum, squares = sum+n, squares+n*n
		}
		if got := New(Options{}).Policy(sum, squares, int64(len(names))); got != want {
			t.Errorf("%q: %s, want %s", names, got, want)
		}
	}
	for _, p := range policies {
		f(p.redis, p.redis)
		f(p.redis, p.redis, p.redis, p.redis)
		if p.redis != "noeviction" {
			f(mixedPolicy, p.redis, "noeviction", p.redis)
		}
	}
	f(mixedPolicy, "volatile-lru", "volatile-random") // two of the policy in the middle have the same sum
}

// TestParametersOfTheCluster checks that parameters of the cluster go to SetCluster, all at once
// and after the others. ApplyCluster then applies them. Those that are not set have the values with
// which the process was started.
func TestParametersOfTheCluster(t *testing.T) {
	var asked map[string]string
	var refusal error
	limit := int64(5)
	c := New(Options{Policy: "volatile-ttl", MaxMemory: func() int64 { return limit },
		SetMaxMemory: func(n int64) error { limit = n; return nil }, SetPolicy: func(string) error { return nil },
		SetCluster: func(changes map[string]string) error { asked = changes; return refusal }})
	if got := c.say(t, "CONFIG SET timeout 60 maxmemory 7 maxmemory-policy noeviction"); got != "+OK\r\n" {
		t.Fatal(got)
	}
	want := map[string]string{"config/timeout": "60", "config/maxmemory-policy": "noeviction"}
	if !maps.Equal(asked, want) || limit != 7 || c.IdleTimeout() != 0 {
		t.Errorf("the cluster is asked for %v, want %v; maxmemory is %d, the timeout %v",
			asked, want, limit, c.IdleTimeout())
	}
	of := func(values map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { value, set := values[name]; return value, set }
	}
	if err := c.ApplyCluster(of(want)); err != nil || c.IdleTimeout() != time.Minute ||
		c.get("maxmemory-policy") != "noeviction" {
		t.Errorf("applied: %v, %v, %s", err, c.IdleTimeout(), c.get("maxmemory-policy"))
	}
	if value, known := c.ClusterValue("config/timeout"); !known || value != "60" {
		t.Errorf("the timeout is %q, %v", value, known)
	}
	if _, known := c.ClusterValue("config/maxclients"); known {
		t.Error("maxclients is the cluster's")
	}
	// A later build may have values that this one does not know.
	err := c.ApplyCluster(of(map[string]string{"config/timeout": "never", "config/slowlog-max-len": "9", "other/x": "1"}))
	if err == nil || c.IdleTimeout() != time.Minute || c.SlowLogLen() != 9 ||
		c.get("maxmemory-policy") != "volatile-ttl" {
		t.Errorf("applied: %v, %v, %d, %s", err, c.IdleTimeout(), c.SlowLogLen(), c.get("maxmemory-policy"))
	}
	refusal = errors.New("no")
	const failed = "-ERR CONFIG SET failed (possibly related to argument 'timeout') - "
	if got := c.say(t, "CONFIG SET maxmemory 8 timeout 1"); got != failed+"no\r\n" || limit != 7 {
		t.Errorf("%q, maxmemory %d", got, limit)
	}
	if got := string(c.SetHere(nil, conversation.Words(t, "CONFIG SET timeout 1 maxmemory 9"))); got != "+OK\r\n" || limit != 9 {
		t.Errorf("%q, maxmemory %d", got, limit)
	}
}

// TestConfigGetIsBounded: CONFIG GET of many patterns, or of a very long one, is refused before they
// are matched with the names of all parameters on a loop.
func TestConfigGetIsBounded(t *testing.T) {
	c := New(Options{})
	f := func(refused bool, patterns ...string) {
		t.Helper()
		args := [][]byte{[]byte("CONFIG"), []byte("GET")}
		for _, p := range patterns {
			args = append(args, []byte(p))
		}
		reply := string(c.AppendGet(nil, resp.RESP2, args))
		if got := reply == "-"+errManyPatterns+"\r\n"; got != refused {
			t.Errorf("CONFIG GET of %d patterns answers %.80q; want an error: %v", len(patterns), reply, refused)
		}
		if where := Concerns(args); refused && where != Here {
			t.Errorf("a proxy asks nodes for %d patterns that it refuses", len(patterns))
		}
	}
	f(false, "MaxMemory", "*")
	f(false, slices.Repeat([]string{"timeout"}, maxMatching/len(allNames))...)
	f(true, slices.Repeat([]string{"timeout"}, maxMatching/len(allNames)+1)...)
	f(true, slices.Repeat([]string{"x*"}, 1000)...)
	f(true, strings.Repeat("*a", 1<<20))
	f(true, slices.Repeat([]string{strings.Repeat("*a", 200)}, 100)...) // costly to compile
}
