package node

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/rdb"
)

// signed is a payload with the foot that it needs.
func signed(payload []byte) []byte {
	body := payload[:len(payload)-rdb.FootSize]
	return rdb.AppendFoot(slices.Clone(body), rdb.Sum(0, body))
}

// wantHeld waits until values take so many bytes, and nothing else is kept.
func wantHeld(t *testing.T, n *Node, what string, bytes int64) {
	t.Helper()
	eventually(t, "all memory is given back of "+what, func() bool {
		st := n.engine.Stats()
		return st.Values+st.Parts == bytes && st.Leaving == 0 && st.Staged == 0
	})
}

func held(n *Node) int64 {
	st := n.engine.Stats()
	return st.Values + st.Parts
}

// TestRestoreOfBrokenStreams restores payloads in which bytes were changed. Whatever becomes of them, all
// memory is given back.
func TestRestoreOfBrokenStreams(t *testing.T) {
	forOneClient(t)
	n := startLeveled(t)
	c := dial(t, n.Addr())
	r := rand.New(rand.NewPCG(1, 7))
	c.run(streamCommands(r, "small", 30, true))
	c.run(streamCommands(r, "big", 1500, true))
	for i := range 2 {
		c.run([][]string{{"XADD", "long", "*", "a", strings.Repeat("x", 1<<20), "b", strings.Repeat("y", 100_000+i), "c", strings.Repeat("z", 5000)}})
	}
	wide := []string{"XADD", "long", "*"}
	for i := range 10_000 {
		wide = append(wide, strconv.Itoa(i), strings.Repeat("w", i%7))
	}
	c.run([][]string{wide, wide[:3003]}) // the second one has many strings and few bytes
	for _, key := range []string{"small", "big", "long"} {
		payload, before, refused := c.dumpOf(key), held(n), 0
		c.restore("k", payload)
		wantStream(t, key, streamOf(c, "k"), streamOf(c, key))
		c.want("DEL k", "(integer) 1")
		wantHeld(t, n, key, before)
		for range 30 {
			broken := slices.Clone(payload)
			for range 1 + r.IntN(2) {
				broken[r.IntN(len(broken)-rdb.FootSize)] ^= 1 << r.IntN(8)
			}
			if r.IntN(4) == 0 {
				broken = broken[:rdb.FootSize+1+r.IntN(len(broken)-rdb.FootSize-1)]
			}
			c.sendRaw(bigRequest(t, "RESTORE k 0 BIG REPLACE", signed(broken)))
			if c.next() != "OK" {
				refused++
				continue
			}
			c.do("XINFO STREAM k FULL COUNT 0")
			c.want("DEL k", "(integer) 1")
		}
		if refused == 0 {
			t.Errorf("%s: no payload was refused", key)
		}
		wantHeld(t, n, key, before)
	}
}

// TestRestoreOfStreamWithoutMemory: what does not fit is refused, and leaves nothing.
func TestRestoreOfStreamWithoutMemory(t *testing.T) {
	forOneClient(t)
	rich, poor := startLeveled(t, func(c *Config) { c.Memory = 256 << 20 }), startLeveled(t, func(c *Config) { c.Memory = 32 << 20 })
	c, p := dial(t, rich.Addr()), dial(t, poor.Addr())
	var all [][]string
	for i := range 6000 {
		all = append(all, []string{"XADD", "k", strconv.Itoa(i+1) + "-0", "field", strings.Repeat("v", 3000)})
	}
	c.run(all)
	payload := c.dumpOf("k")
	before := held(poor)
	p.sendRaw(bigRequest(t, "RESTORE k 0 BIG", payload))
	if got := p.next(); !strings.HasPrefix(got, "(error) OOM") {
		t.Fatalf("RESTORE answers %s", got)
	}
	p.want("EXISTS k", "(integer) 0")
	wantHeld(t, poor, "what did not fit", before)
}

// TestStreamsArriveForReaders: whoever waits for a stream gets one that is restored, copied or renamed.
func TestStreamsArriveForReaders(t *testing.T) {
	n := startLeveled(t)
	c, reader := dial(t, n.Addr()), dial(t, n.Addr())
	c.want("XADD {k}a 5-1 a b", `"5-1"`)
	payload := c.dumpOf("{k}a")
	for name, arrive := range map[string]func(){
		"RESTORE": func() { c.restore("{k}b", payload) },
		"COPY":    func() { c.want("COPY {k}a {k}b", "(integer) 1") },
		"RENAME": func() {
			c.want("COPY {k}a {k}c", "(integer) 1")
			c.want("RENAME {k}c {k}b", "OK")
		},
	} {
		reader.send("XREAD BLOCK 0 STREAMS {k}b 4-0")
		eventually(t, "the reader waits", func() bool { return strings.Contains(c.do("INFO clients"), "blocked_clients:1") })
		arrive()
		if got, want := reader.next(), "1) 1) \"{k}b\"\n   2) 1) 1) \"5-1\"\n         2) 1) \"a\"\n            2) \"b\""; got != want {
			t.Errorf("%s: the reader gets %s, want %s", name, got, want)
		}
		c.want("DEL {k}b", "(integer) 1")
	}
}
