package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// TestLargeCombinations: results that a goroutine makes, from values of all sizes, also into one of
// them.
func TestLargeCombinations(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 512 << 20 })
	c := dial(t, n.Addr())
	values := map[string][]byte{
		"{t}a": bigValue(300_000, 1), "{t}b": bigValue(300_007, 2), "{t}c": bigValue(200_000, 3),
		"{t}d": bigValue(60_000, 4), "{t}e": bigValue(100, 5), "{t}no": nil,
	}
	set := func() {
		for key, v := range values {
			if v != nil {
				c.wantBig("SET "+key+" BIG EX 100", v, "OK")
			}
		}
	}
	set()
	before, outside := settled(t, n), n.engine.Outside()
	f := func(op bitstring.Combination, dest string, keys ...string) {
		t.Helper()
		var sources [][]byte
		longest := 0
		for _, key := range keys {
			sources = append(sources, values[key])
			longest = max(longest, len(values[key]))
		}
		want := make([]byte, longest)
		op.Fill(want, sources, 0)
		c.want(fmt.Sprintf("BITOP %s %s %s", bitstring.CombinationNames[op], dest, strings.Join(keys, " ")), fmt.Sprintf("(integer) %d", len(want)))
		c.wantBig("GET "+dest, want, "BIG")
		c.want("TTL "+dest, "(integer) -1")
		c.want("DEL "+dest, "(integer) 1")
		if values[dest] != nil {
			set()
		}
	}
	for op := bitstring.And; op <= bitstring.One; op++ {
		if op == bitstring.Not {
			f(op, "{t}x", "{t}a")
			f(op, "{t}a", "{t}a")
			continue
		}
		f(op, "{t}x", "{t}a", "{t}b")
		f(op, "{t}x", "{t}c", "{t}b", "{t}no", "{t}d", "{t}b")
		f(op, "{t}b", "{t}b", "{t}a", "{t}c")
	}
	f(bitstring.Xor, "{t}x", strings.Fields(strings.Repeat("{t}d {t}e ", 50)+"{t}a")...)
	f(bitstring.Or, "{t}x", strings.Fields(strings.Repeat("{t}e ", 9_000))...) // the result is small, its sources' copies are not
	if used, now := settled(t, n), n.engine.Outside(); used > before+(256<<10) || now > outside+(1<<20) {
		t.Errorf("%d bytes are used and %d outside, %d and %d before", used, now, before, outside)
	}
	if st := n.engine.Stats(); st.Pinned != 0 {
		t.Errorf("%d bytes are pinned", st.Pinned)
	}
	if err := put(n, "{t}h", "v", engine.TypeHash); err != nil {
		t.Fatal(err)
	}
	c.want("BITOP OR {t}x {t}a {t}h", "(error) "+exec.ErrWrongType)
	c.want("EXISTS {t}x", "(integer) 0")
}

// TestManySources: sources that are gathered in several runs have the effect that all of them have
// in one, in each database and however often they are named.
func TestManySources(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t, func(c *Config) { c.Memory = 512 << 20 })
	c := dial(t, n.Addr())
	values := map[string][]byte{
		"{t}a": bigValue(300_000, 1), "{t}b": bigValue(70_007, 2), "{t}c": bigValue(60_000, 3), "{t}d": bigValue(100, 4),
		"{t}e": bigValue(30, 5), "{t}no": nil,
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, database := range []int{0, 3} {
		c.want(fmt.Sprint("SELECT ", database), "OK")
		for key, v := range values {
			if v != nil {
				c.wantBig("SET "+key+" BIG", v, "OK")
			}
		}
		before := n.engine.Outside()
		for op := bitstring.And; op <= bitstring.One; op++ {
			if op == bitstring.Not {
				continue
			}
			for range 4 {
				keys := strings.Fields(strings.Repeat([]string{"{t}d ", "{t}e ", "{t}no "}[rng.IntN(3)], 1025+rng.IntN(2)))
				for _, key := range strings.Fields("{t}a {t}b {t}c {t}d {t}e {t}no") {
					for range rng.IntN(7) {
						keys[rng.IntN(len(keys))] = key
					}
				}
				var sources [][]byte
				for _, key := range keys {
					sources = append(sources, values[key])
				}
				want := make([]byte, len(slices.MaxFunc(sources, func(a, b []byte) int { return len(a) - len(b) })))
				op.Fill(want, sources, 0)
				line := fmt.Sprintf("BITOP %s {t}x %s", bitstring.CombinationNames[op], strings.Join(keys, " "))
				if got := c.do(line); got != fmt.Sprintf("(integer) %d", len(want)) {
					t.Fatalf("seed %d, database %d: %.40s … is answered %s, want %d", seed, database, line, got, len(want))
				}
				c.wantBig("GET {t}x", want, "BIG")
			}
		}
		c.want("SADD {t}set member", "(integer) 1")
		c.want("BITOP OR {t}x"+strings.Repeat(" {t}a {t}b", 1025)+" {t}set", "(error) "+exec.ErrWrongType)
		if st := n.engine.Stats(); st.Pinned != 0 || n.engine.Outside() > before+1<<20 {
			t.Errorf("%d bytes are pinned and %d outside, %d before", st.Pinned, n.engine.Outside(), before)
		}
	}
}

// TestCombineWhatChanges: the result is of one moment between request and reply, though a source
// changes all the time.
func TestCombineWhatChanges(t *testing.T) {
	const size = 1 << 20
	n := startNode(t, func(c *Config) { c.Memory = 512 << 20 })
	stop := make(chan struct{})
	var writer sync.WaitGroup
	w, c := dial(t, n.Addr()), dial(t, n.Addr())
	w.want(fmt.Sprintf("SETBIT {t}zeros %d 0", size*8-1), "(integer) 0")
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				w.do("INCR {t}n")
			}
		}
	})
	number := func() (n int) {
		fmt.Sscanf(c.do("INCRBY {t}n 0"), "(integer) %d", &n)
		return n
	}
	for range 5 {
		before := number()
		c.want("BITOP OR {t}x {t}n {t}zeros", fmt.Sprintf("(integer) %d", size))
		after := number()
		c.send("GET {t}x")
		got, _ := resp.DecodeBulk(c.read())
		digits := bytes.TrimRight(got, "\x00")
		if n, err := strconv.Atoi(string(digits)); err != nil || n < before || n > after || len(got) != size {
			t.Fatalf("the result is %d bytes, %.100q, want a number from %d to %d", len(got), digits, before, after)
		}
	}
	close(stop)
	writer.Wait()
	if st := n.engine.Stats(); st.Pinned != 0 || st.Staged != 0 {
		t.Errorf("%d bytes are pinned, %d staged", st.Pinned, st.Staged)
	}
}
