package cluster

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// loads is FUNCTION LOAD of a library whose function name adds n to a key.
func loads(name string, n int) string {
	return fmt.Sprintf(`FUNCTION LOAD REPLACE "#!lua name=%s\nredis.register_function('%s', function(keys) return redis.call('INCRBY', keys[1], %d) end)"`, name, name, n)
}

// TestFunctions: once FUNCTION LOAD is answered, whoever calls the function through any member finds it, wherever the
// keys are, those behind it in a pipeline too. Members that join or return later have it, and when all members have
// been replaced it is still there.
func TestFunctions(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--copies", "2"}})
	one, two := harness.DialWire(t, c.Proxy(0).Addr), harness.DialWire(t, c.Proxy(1).Addr)
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	harness.AwaitLevel(t, c.Proxy(1).Addr)
	rounds, keys := 10, 60
	if testing.Short() {
		rounds, keys = 3, 20
	}
	calls := func(w *harness.Wire, name, want string) {
		t.Helper()
		for i := range keys { // of all nodes
			w.Do(fmt.Sprintf("DEL k%d", i))
			if got := strings.TrimSpace(string(w.Do(fmt.Sprintf("FCALL %s 1 k%d", name, i)))); got != want {
				t.Fatalf("FCALL %s of key %d answers %s, want %s", name, i, got, want)
			}
		}
	}
	for i := range rounds {
		one.Want(loads("add", i+1), `"add"`)
		calls(two, "add", fmt.Sprintf(":%d", i+1))
		two.Want(loads("add", 100*i), `"add"`)
		calls(one, "add", fmt.Sprintf(":%d", 100*i))
	}
	// In a pipeline, what follows a change sees it.
	for i := range 2 * rounds {
		var input strings.Builder
		input.WriteString("SET n 0\r\n" + loads("piped", i) + "\r\n")
		for j := range 20 {
			fmt.Fprintf(&input, "FCALL piped 1 n%d-%d\r\n", i, j)
		}
		input.WriteString("FUNCTION DELETE piped\r\nFCALL piped 1 n\r\nFUNCTION LIST LIBRARYNAME piped\r\n")
		one.Send([]byte(input.String()))
		want := []string{"+OK", "$5\r\npiped"}
		for range 20 {
			want = append(want, fmt.Sprintf(":%d", i))
		}
		for at, w := range append(want, "+OK", "-ERR Function not found", "*0") {
			if got := strings.TrimSuffix(string(one.Next()), "\r\n"); got != w {
				t.Fatalf("reply %d of pipeline %d is %q, want %q", at, i, got, w)
			}
		}
	}
	// Two clients change functions at the same time, at different proxies.
	for i := range 10 {
		one.Send([]byte(loads(fmt.Sprintf("a%d", i), 1) + "\r\n"))
		two.Send([]byte(loads(fmt.Sprintf("b%d", i), 1) + "\r\n"))
		if a, b := string(one.Next()), string(two.Next()); a[0] != '$' || b[0] != '$' {
			t.Fatalf("changes at the same time answer %q, %q", a, b)
		}
	}
	if got := string(one.Do("FUNCTION STATS")); !strings.Contains(got, ":21\r\n") {
		t.Errorf("FUNCTION STATS answers %q, want 21 libraries", got)
	}

	// Members are replaced, one after the other: all of them, but in a short run.
	one.Want(loads("add", 7), `"add"`)
	n4 := harness.NewMember(t, "node", "n4")
	n4.Flags = c.Node(0).Flags
	n4.Start()
	c.Members = append(c.Members, n4)
	harness.DialWire(t, n4.Addr).Want("FUNCTION LIST LIBRARYNAME nosuch", "(empty array)")
	replaced, dying := c.Members[:len(c.Members)-1], c.ByRole("node")[:2]
	if testing.Short() { // a node and a proxy; then the second node dies, by now mostly the oldest, and so the coordinator
		replaced, dying = []*harness.Member{c.Node(0), c.Proxy(0)}, dying[1:]
	}
	for _, m := range replaced {
		m.Term(30 * time.Second)
		c.Converge(harness.ReadyTimeout)
		m.Start()
		c.Converge(harness.ReadyTimeout)
	}
	for _, m := range c.ByRole("proxy") {
		calls(harness.DialWire(t, m.Addr), "add", ":7")
	}
	for _, m := range c.ByRole("node") {
		if got := string(harness.DialWire(t, m.Addr).Do("FUNCTION STATS")); !strings.Contains(got, ":21\r\n") {
			t.Errorf("%s answers %q", m.ID, got)
		}
	}
	// The death of a node, also of the coordinator, loses no function, and keeps nobody from changing them for long.
	w := harness.DialWire(t, c.Proxy(0).Addr)
	for i, m := range dying {
		m.Kill()
		harness.Eventually(t, harness.ReadyTimeout, "functions can be changed", func() bool {
			return strings.HasPrefix(string(w.Do(loads("add", 8+i))), "$")
		})
		c.Converge(harness.ReadyTimeout)
		calls(harness.DialWire(t, c.Proxy(1).Addr), "add", fmt.Sprintf(":%d", 8+i))
		m.Start()
		c.Converge(harness.ReadyTimeout)
	}
	if got := string(w.Do("FUNCTION STATS")); !strings.Contains(got, ":21\r\n") {
		t.Errorf("FUNCTION STATS answers %q, want 21 libraries", got)
	}
	w.Want("FUNCTION KILL", "(error) NOTBUSY No scripts in execution right now.")
	w.Want("FUNCTION FLUSH", "OK")
	harness.DialWire(t, c.Proxy(1).Addr).Want("FCALL add 1 k1", "(error) ERR Function not found")
}

// TestFunctionsOfGoRedis: an ordinary client library loads, lists, calls, saves and restores functions, and understands
// what is answered. It has the machine to itself: beside other clusters a node was silent for so long that a change's
// outcome was unknown, which the library hands to the application.
func TestFunctionsOfGoRedis(t *testing.T) {
	c := harness.StartCluster(t, 2, 1)
	addr := c.Proxy(0).Addr
	harness.AwaitLevel(t, addr)
	for _, protocol := range []int{2, 3} {
		r := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
		defer r.Close()
		ctx := t.Context()
		const code = "#!lua name=shop\n" +
			"redis.register_function{function_name='stock', description='what is left', flags={'no-writes'}, " +
			"callback=function(keys) return redis.call('GET', keys[1]) end}"
		if name, err := r.FunctionLoadReplace(ctx, code).Result(); err != nil || name != "shop" {
			t.Errorf("FunctionLoad: %q, %v", name, err)
		}
		want := redis.Library{Name: "shop", Engine: "LUA", Code: code,
			Functions: []redis.Function{{Name: "stock", Description: "what is left", Flags: []string{"no-writes"}}}}
		list, err := r.FunctionList(ctx, redis.FunctionListQuery{LibraryNamePattern: "sh*", WithCode: true}).Result()
		if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], want) {
			t.Errorf("FunctionList: %+v, %v", list, err)
		}
		r.Set(ctx, "k", "7", 0)
		if got, err := r.FCallRO(ctx, "stock", []string{"k"}).Text(); err != nil || got != "7" {
			t.Errorf("FCallRO: %q, %v", got, err)
		}
		stats, err := r.FunctionStats(ctx).Result()
		if engines := stats.Engines; err != nil || stats.Running() || len(engines) != 1 || engines[0].FunctionsCount != 1 {
			t.Errorf("FunctionStats: %+v, %v", stats, err)
		}
		dump, err := r.FunctionDump(ctx).Result()
		if err != nil || r.FunctionFlush(ctx).Err() != nil {
			t.Errorf("FunctionDump: %v", err)
		}
		if got, err := r.FunctionRestore(ctx, dump).Result(); err != nil || got != "OK" {
			t.Errorf("FunctionRestore: %q, %v", got, err)
		}
		if got, err := r.FCall(ctx, "stock", []string{"k"}).Text(); err != nil || got != "7" {
			t.Errorf("FCall: %q, %v", got, err)
		}
		if err = r.FunctionKill(ctx).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOTBUSY ") {
			t.Errorf("FunctionKill: %v", err)
		}
	}
}
