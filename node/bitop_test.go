package node

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// oracleCombine says for one byte of each source what BITOP makes of them.
func oracleCombine(op combination, sources []byte) (result byte) {
	for bit := range 8 {
		set := 0
		for _, s := range sources {
			set += int(s >> bit & 1)
		}
		first, others := sources[0]>>bit&1 == 1, set-int(sources[0]>>bit&1) > 0
		var on bool
		switch op {
		case inAll:
			on = set == len(sources)
		case inAny:
			on = set > 0
		case inOdd:
			on = set%2 == 1
		case inNone:
			on = !first
		case inFirstOnly:
			on = first && !others
		case inOthersOnly:
			on = !first && others
		case inFirstAndMore:
			on = first && others
		case inOne:
			on = set == 1
		}
		if on {
			result |= 1 << bit
		}
	}
	return result
}

func longestOf(sources [][]byte) (length int) {
	for _, s := range sources {
		length = max(length, len(s))
	}
	return length
}

// oracleFill is the result for whole sources, the longest of which gives its length.
func oracleFill(op combination, sources [][]byte) []byte {
	result, column := make([]byte, longestOf(sources)), make([]byte, len(sources))
	for i := range result {
		for j, s := range sources {
			if column[j] = 0; i < len(s) {
				column[j] = s[i]
			}
		}
		result[i] = oracleCombine(op, column)
	}
	return result
}

func TestCombinations(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	inputs := 4_000
	if testing.Short() {
		inputs = 400
	}
	for i := range inputs {
		op := inAll + combination(r.IntN(int(inOne)))
		longest := 100
		if i%100 == 0 {
			longest = 3 * combineStep
		}
		sources := make([][]byte, 1+r.IntN(5))
		if op == inNone {
			sources = sources[:1]
		}
		for j := range sources {
			sources[j] = randomBits(r, longest)
		}
		want := oracleFill(op, sources)
		got := make([]byte, len(want))
		for j := range got {
			got[j] = byte(r.Uint32()) // what was there must not matter
		}
		if cut := r.IntN(len(got) + 1); r.IntN(2) == 0 {
			op.fill(got[:cut], sources, 0)
			op.fill(got[cut:], sources, cut)
		} else {
			op.fill(got, sources, 0)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %s of %x is %x, want %x", seed, combinationNames[op], sources, got, want)
		}
	}
}

// TestLargeCombinations: results that a goroutine makes, from values of all sizes, also into one of them.
func TestLargeCombinations(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory, c.StallLimit = 512<<20, time.Minute })
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
	f := func(op combination, dest string, keys ...string) {
		t.Helper()
		var sources [][]byte
		for _, key := range keys {
			sources = append(sources, values[key])
		}
		want := make([]byte, longestOf(sources))
		op.fill(want, sources, 0)
		c.want(fmt.Sprintf("BITOP %s %s %s", combinationNames[op], dest, strings.Join(keys, " ")), fmt.Sprintf("(integer) %d", len(want)))
		c.wantBig("GET "+dest, want, "BIG")
		c.want("TTL "+dest, "(integer) -1")
		c.want("DEL "+dest, "(integer) 1")
		if values[dest] != nil {
			set()
		}
	}
	for op := inAll; op <= inOne; op++ {
		if op == inNone {
			f(op, "{t}x", "{t}a")
			f(op, "{t}a", "{t}a")
			continue
		}
		f(op, "{t}x", "{t}a", "{t}b")
		f(op, "{t}x", "{t}c", "{t}b", "{t}no", "{t}d", "{t}b")
		f(op, "{t}b", "{t}b", "{t}a", "{t}c")
	}
	f(inOdd, "{t}x", strings.Fields(strings.Repeat("{t}d {t}e ", 50)+"{t}a")...)
	f(inAny, "{t}x", strings.Fields(strings.Repeat("{t}e ", 9_000))...) // the result is small, its sources' copies are not
	if used, now := settled(t, n), n.engine.Outside(); used > before+(256<<10) || now > outside+(1<<20) {
		t.Errorf("%d bytes are used and %d outside, %d and %d before", used, now, before, outside)
	}
	if st := n.engine.Stats(); st.Pinned != 0 {
		t.Errorf("%d bytes are pinned", st.Pinned)
	}
	if err := put(n, "{t}h", "v", engine.TypeHash); err != nil {
		t.Fatal(err)
	}
	c.want("BITOP OR {t}x {t}a {t}h", "(error) "+errWrongType)
	c.want("EXISTS {t}x", "(integer) 0")
}

// TestCombineWhatChanges: the result is of one moment between request and reply, though a source changes all the time.
func TestCombineWhatChanges(t *testing.T) {
	const size = 1 << 20
	n := startNode(t, func(c *Config) { c.Memory, c.StallLimit = 512<<20, time.Minute })
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
