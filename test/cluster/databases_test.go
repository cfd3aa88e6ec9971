package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// dbKeys is how many keys a database has in these tests.
const dbKeys = 300

// fillDatabase writes the keys of a database, in one pipeline. Their values say of which one they are.
func fillDatabase(t testing.TB, addr string, database int) {
	t.Helper()
	w := harness.DialWire(t, addr)
	defer w.Conn.Close()
	var input strings.Builder
	fmt.Fprintf(&input, "SELECT %d\r\n", database)
	for i := range dbKeys {
		fmt.Fprintf(&input, "SET k%d %d:%d\r\n", i, database, i)
	}
	w.Send([]byte(input.String()))
	for range dbKeys + 1 {
		if got := string(w.Next()); got != "+OK\r\n" {
			t.Fatalf("SET in database %d answers %q", database, got)
		}
	}
}

// wantDatabase checks that a database has its keys.
func wantDatabase(t testing.TB, addr string, database int) {
	t.Helper()
	w := harness.DialWire(t, addr)
	defer w.Conn.Close()
	w.Want(fmt.Sprint("SELECT ", database), "OK")
	words := [][]byte{[]byte("MGET")}
	for i := range dbKeys {
		words = append(words, fmt.Appendf(nil, "k%d", i))
	}
	w.Send(resp.AppendRequest(nil, words...))
	reply, want := w.Next(), resp.AppendArray(nil, dbKeys)
	for i := range dbKeys {
		want = resp.AppendBulk(want, fmt.Appendf(nil, "%d:%d", database, i))
	}
	if string(reply) != string(want) {
		t.Errorf("MGET in database %d answers %.200q…, want %.200q…", database, reply, want)
	}
}

// TestDatabases: each database has its own keys, whatever becomes of the nodes that have them and of the proxies.
func TestDatabases(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, NodeFlags: []string{"--copies", "2"}})
	one, two := c.Proxy(0).Addr, c.Proxy(1).Addr
	harness.AwaitLevel(t, one)
	harness.AwaitLevel(t, two)
	used := []int{0, 1, 7, 15}
	for _, database := range used {
		fillDatabase(t, one, database)
	}
	check := func() {
		t.Helper()
		for _, database := range used {
			wantDatabase(t, two, database)
		}
		w := harness.DialWire(t, two)
		defer w.Conn.Close()
		for _, database := range used {
			w.Want(fmt.Sprint("SELECT ", database), "OK")
			w.Want("DBSIZE", fmt.Sprintf("(integer) %d", dbKeys))
		}
		w.Want("SELECT 2", "OK")
		w.Want("DBSIZE", "(integer) 0")
		w.Want("KEYS *", "(empty array)")
		w.Want("RANDOMKEY", "(nil)")
		info := string(w.Do("INFO keyspace"))
		for _, database := range used {
			if line := fmt.Sprintf("\r\ndb%d:keys=%d,", database, dbKeys); !strings.Contains(info, line) {
				t.Errorf("INFO keyspace lacks %q:\n%s", line, info)
			}
		}
	}
	check()

	// A walk through one database finds each of its keys, and no others.
	w := harness.DialWire(t, one)
	w.Want("SELECT 7", "OK")
	w.Want("SET only-here x", "OK")
	found := map[string]bool{}
	for cursor := "0"; ; {
		words := strings.Fields(string(w.Do("SCAN " + cursor + " COUNT 50")))
		cursor = words[2]
		for i := 5; i < len(words); i += 2 {
			found[words[i]] = true
		}
		if cursor == "0" {
			break
		}
	}
	if len(found) != dbKeys+1 || !found["only-here"] {
		t.Errorf("SCAN of a database finds %d keys, want %d", len(found), dbKeys+1)
	}
	w.Want("MOVE only-here 1", "(integer) 1")
	w.Want("SELECT 1", "OK")
	w.Want("GET only-here", `"x"`)
	w.Want("COPY only-here {only-here}2 DB 15", "(integer) 1")
	w.Want("DEL only-here", "(integer) 1")
	w.Want("SELECT 15", "OK")
	w.Want("DEL {only-here}2", "(integer) 1")

	// Partitions move.
	c.AwaitCopies(harness.ReadyTimeout)
	n4 := harness.NewMember(t, "node", "n4")
	n4.Flags = c.Node(0).Flags
	n4.Start()
	c.Members = append(c.Members, n4)
	c.Converge(harness.ReadyTimeout)
	c.AwaitCopies(harness.ReadyTimeout)
	check()
	// A node dies, and followers take over.
	c.Node(1).Kill()
	c.Converge(harness.ReadyTimeout)
	check()
	// A proxy is replaced while clients are connected to the other one.
	c.Proxy(1).Term(30 * time.Second)
	c.Proxy(1).Start()
	harness.AwaitLevel(t, two)
	check()
	w.Want("GET k1", `"15:1"`) // a connection keeps its database through all of that

	// FLUSHDB deletes one of them, FLUSHALL all.
	w.Want("SELECT 7", "OK")
	w.Want("FLUSHDB", "OK")
	w.Want("DBSIZE", "(integer) 0")
	used = slices.DeleteFunc(used, func(database int) bool { return database == 7 })
	check()
	w.Want("FLUSHALL", "OK")
	for _, database := range used {
		w.Want(fmt.Sprint("SELECT ", database), "OK")
		w.Want("DBSIZE", "(integer) 0")
	}
}

// TestDatabasesAtNodes: a client of Redis Cluster selects a database at each node that it is connected to, and a node
// says for which databases it answers as a proxy does.
func TestDatabasesAtNodes(t *testing.T) {
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 2, Proxies: 1, Flags: []string{"--databases", "4"}})
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	fillDatabase(t, c.Proxy(0).Addr, 3)
	got := map[string]bool{}
	for _, m := range c.Members {
		w := harness.DialWire(t, m.Addr)
		w.Want("SELECT 4", "(error) ERR DB index is out of range")
		w.Want("CONFIG GET databases", "1) \"databases\"\n2) \"4\"")
		if m.Role == "proxy" {
			continue
		}
		w.Want("SELECT 3", "OK")
		for i := range dbKeys {
			key := fmt.Sprintf("k%d", i)
			switch reply := string(w.Do("GET " + key)); {
			case reply == fmt.Sprintf("$%d\r\n3:%d\r\n", len(fmt.Sprint("3:", i)), i):
				got[key] = true
			case !strings.HasPrefix(reply, "-MOVED "):
				t.Errorf("%s answers %q", m.ID, reply)
			}
		}
	}
	if len(got) != dbKeys {
		t.Errorf("the nodes have %d keys, want %d", len(got), dbKeys)
	}
}

// TestDatabasesOfPools: a client library selects by its options, and no connection of a pool ever sees the database of
// another one.
func TestDatabasesOfPools(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 2, 1)
	addr := c.Proxy(0).Addr
	harness.AwaitLevel(t, addr)
	var all sync.WaitGroup
	for _, database := range []int{0, 1, 2, 15} {
		o, err := redis.ParseURL(fmt.Sprintf("redis://%s/%d", addr, database))
		if err != nil {
			t.Fatal(err)
		}
		o.PoolSize, o.Protocol = 4, 2+database%2
		client := harness.GoRedis(t, o)
		for worker := range 4 {
			all.Go(func() {
				ctx := t.Context()
				for i := range 100 {
					key, value := fmt.Sprintf("k%d", worker), fmt.Sprint(database, " ", i)
					pipe := client.TxPipeline()
					pipe.Set(ctx, key, value, 0)
					get := pipe.Get(ctx, key)
					if _, err := pipe.Exec(ctx); err != nil || get.Val() != value {
						t.Errorf("database %d has %q, %v, want %q", database, get.Val(), err, value)
						return
					}
					if got, err := client.Get(ctx, key).Result(); err != nil || got != value {
						t.Errorf("database %d has %q, %v, want %q", database, got, err, value)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// TestDatabasesWaitAndTell: who waits for a key, and who is told of one, means that of one database.
func TestDatabasesWaitAndTell(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	one, two := c.Proxy(0).Addr, c.Proxy(1).Addr
	harness.AwaitLevel(t, one)
	harness.AwaitLevel(t, two)
	w := harness.DialWire(t, one)
	w.Want("CONFIG SET notify-keyspace-events KEA", "OK")
	told := subscribe(t, two, "SUBSCRIBE", "__keyevent@5__:set")
	for _, keys := range []string{"q", "a b c d"} { // of one slot, and of several
		waits := harness.DialWire(t, two)
		waits.Want("SELECT 5", "OK")
		waits.Send([]byte("BLPOP " + keys + " 0\r\n"))
		harness.Eventually(t, harness.ReadyTimeout, "the client waits", func() bool {
			return strings.Contains(string(harness.DialWire(t, two).Do("CLIENT LIST")), " flags=b db=5 ")
		})
		last := keys[len(keys)-1:]
		w.Want("SELECT 0", "OK")
		w.Want("RPUSH "+last+" zero", "(integer) 1")
		w.Want("SELECT 5", "OK")
		w.Want("RPUSH "+last+" five", "(integer) 1")
		if got, want := string(waits.Next()), "*2\r\n$1\r\n"+last+"\r\n$4\r\nfive\r\n"; got != want {
			t.Errorf("BLPOP answers %q, want %q", got, want)
		}
		w.Want("SELECT 0", "OK")
		w.Want("LPOP "+last, `"zero"`)
	}
	w.Want("SET k zero", "OK")
	w.Want("SELECT 5", "OK")
	w.Want("SET five x", "OK")
	if got := payload(told.Next()); got != "five" {
		t.Errorf("%s is told to be set", got)
	}
}
