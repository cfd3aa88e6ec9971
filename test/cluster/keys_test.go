package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestWholeKeys checks commands on whole keys through a proxy with three nodes.
func TestWholeKeys(t *testing.T) {
	t.Parallel()
	addr := harness.StartCluster(t, 3, 1).Proxy(0).Addr
	t.Run("random keys are of all", func(t *testing.T) { randomKeys(t, addr) })
	t.Run("large values move", func(t *testing.T) { moveLargeValues(t, addr) })
	t.Run("HyperLogLogs are carried", func(t *testing.T) { carrySketches(t, addr) })
	t.Run("collections are copied by their scans", func(t *testing.T) { copyByScan(t, addr) })
}

// moveLargeValues copies, renames, dumps and restores values of any size.
func moveLargeValues(t *testing.T, addr string) {
	w := harness.DialWire(t, addr)
	request := func(args ...[]byte) []byte {
		reply := w.Ask(args...)
		if b, ok := resp.DecodeBulk(reply); ok {
			return b
		}
		return reply
	}
	random := rand.New(rand.NewPCG(1, 1))
	for _, size := range []int{10, 100_000, 300_000, 5 << 20} {
		v := make([]byte, size)
		for i := range v {
			v[i] = byte(random.Uint32())
		}
		request([]byte("SET"), []byte("{k}a"), v, []byte("EXAT"), []byte("33177117420"))
		w.Want("COPY {k}a {k}b REPLACE", "(integer) 1")
		w.Want("RENAME {k}a {k}c", "OK")
		w.Want("EXISTS {k}a", "(integer) 0")
		payload := bytes.Clone(request([]byte("DUMP"), []byte("{k}b")))
		for i := range 5 { // on several nodes
			key := fmt.Appendf(nil, "elsewhere%d", i)
			if got := request([]byte("RESTORE"), key, []byte("33177117420000"), payload, []byte("ABSTTL"), []byte("REPLACE")); string(got) != "OK" {
				t.Fatalf("RESTORE of %d bytes answers %.100q", size, got)
			}
			if !bytes.Equal(request([]byte("GET"), key), v) {
				t.Errorf("%d bytes: %s has something else", size, key)
			}
		}
		for _, key := range []string{"{k}b", "{k}c"} {
			if !bytes.Equal(request([]byte("GET"), []byte(key)), v) {
				t.Errorf("%d bytes: %s has something else", size, key)
			}
			w.Want("EXPIRETIME "+key, "(integer) 33177117420")
		}
	}
}

// randomKeys checks that RANDOMKEY sooner or later returns keys of all nodes.
func randomKeys(t *testing.T, addr string) {
	const keys = 30
	w := harness.DialWire(t, addr)
	w.Want("RANDOMKEY", "(nil)")
	for i := range keys {
		w.Want(fmt.Sprintf("SET key:%d v", i), "OK")
	}
	seen := map[string]bool{}
	for range keys * 40 {
		seen[conversation.Text(w.Do("RANDOMKEY"))] = true
	}
	if len(seen) != keys {
		t.Errorf("%d keys of %d were returned", len(seen), keys)
	}
}

// carrySketches checks that a HyperLogLog counts the same after GET from one server and SET to
// another, from Redis to Dunlin and back.
func carrySketches(t *testing.T, addr string) {
	ours, real := harness.DialWire(t, addr), harness.DialWire(t, redistest.Start(t))
	for _, size := range []int{3, 500, 20_000} {
		for _, way := range [][2]*harness.Wire{{ours, real}, {real, ours}} {
			from, to := way[0], way[1]
			from.Do("DEL {h}a")
			for i := 0; i < size; i += 500 {
				line := "PFADD {h}a"
				for j := i; j < min(i+500, size); j++ {
					line += fmt.Sprintf(" %d", j)
				}
				from.Do(line)
			}
			value, _ := resp.DecodeBulk(from.Do("GET {h}a"))
			to.Ask([]byte("SET"), []byte("{h}b"), value)
			from.Do("PFMERGE {h}c {h}a")
			count := conversation.Text(from.Do("PFCOUNT {h}a"))
			for _, line := range []string{"PFCOUNT {h}b", "PFCOUNT {h}b {h}nothing"} {
				to.Want(line, count)
			}
			to.Do("PFMERGE {h}c {h}b")
			if a, b := from.Do("GET {h}c"), to.Do("GET {h}c"); !bytes.Equal(a, b) {
				t.Errorf("%d elements: unions differ", size)
			}
			from.Do("DEL {h}c")
			to.Do("DEL {h}c")
		}
	}
}
