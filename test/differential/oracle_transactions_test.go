package differential

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// TestOracleTransactions is like TestOracle, for requests that a proxy does not simply forward:
// transactions and watched keys, values for the large lanes, and between them MGET over all nodes,
// in both protocol versions.
func TestOracleTransactions(t *testing.T) {
	t.Parallel()
	batches := 60
	if testing.Short() {
		batches = 12
	}
	startOracle(t).compare(t, batches, func(i uint64, rng *rand.Rand) func() [][][]byte {
		g := &transactor{generator: generator{rng, tagInShard(i), new(int)}, spread: fmt.Sprintf("spread%d:", i)}
		next := g.setUp
		return func() [][][]byte {
			batch := next()
			next = g.batch
			return batch
		}
	})
}

// tagInShard returns a hash tag whose partition shares no shard with the keys of another
// connection. Keys of a shard share counters of changes, so a transaction could be aborted although
// none of its watched keys has changed.
func tagInShard(i uint64) string {
	for n := 0; ; n++ {
		if tag := fmt.Sprintf("{c%d.%d}:", i, n); uint64(ring.PartitionOf([]byte(tag))%4) == i {
			return tag
		}
	}
}

// transactor generates pipelines with transactions. All keys that it writes share a slot.
type transactor struct {
	generator
	spread string // keys that are only read, on all nodes
	lines  [][][]byte
}

func (g *transactor) add(words ...string) {
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	g.lines = append(g.lines, args)
}

func (g *transactor) setUp() [][][]byte {
	g.lines = nil
	for i := range 8 {
		g.add("SET", g.spread+strconv.Itoa(i), strings.Repeat(strconv.Itoa(i), 1<<(2*i+3)))
	}
	return g.lines
}

func (g *transactor) batch() [][][]byte {
	g.lines = nil
	for range 1 + g.IntN(20) {
		switch g.IntN(8) {
		case 0:
			g.watch()
			fallthrough
		case 1, 2:
			g.transaction()
		case 3:
			g.oddity()
		default:
			for range 1 + g.IntN(8) {
				g.command()
			}
		}
	}
	return g.lines
}

// command adds a command that may be queued.
func (g *transactor) command() {
	switch g.IntN(30) {
	case 0:
		g.add("SET", g.key(), strings.Repeat("0123456789", 10_000+g.IntN(30_000)))
	case 1:
		if g.IntN(4) == 0 {
			g.add("SET", g.key(), strings.Repeat("9876543210", 110_000+g.IntN(50_000)))
		}
	case 2, 3, 4:
		g.add("GET", g.key())
	case 5:
		g.add("ECHO", g.value())
	default:
		words := g.request()
		// The keys of MSETNX are in another slot, and APPEND makes values grow without end.
		if words[0] != "MSETNX" && words[0] != "APPEND" {
			g.add(words...)
		}
	}
}

// apart adds a command on keys of all nodes.
func (g *transactor) apart() {
	words := []string{"MGET"}
	for range 1 + g.IntN(10) {
		words = append(words, g.spread+strconv.Itoa(g.IntN(9)))
	}
	g.add(words...)
}

// watch adds WATCH and perhaps, before MULTI, a command that may change a watched key.
func (g *transactor) watch() {
	k := g.key()
	g.add("WATCH", k, g.key())
	switch g.IntN(6) {
	case 0:
		g.add("SET", k, g.value())
	case 1:
		g.add("DEL", k)
	case 2:
		g.add("UNWATCH")
		g.add("SET", k, g.value())
	case 3:
		g.add("GET", k)
	case 4:
		g.apart()
	}
}

func (g *transactor) transaction() {
	g.add("MULTI")
	for range g.IntN(10) {
		if g.IntN(40) == 0 {
			g.oddity()
		}
		if g.IntN(6) == 0 {
			g.add("PING", "x")
		}
		g.command()
	}
	if g.IntN(8) == 0 {
		g.add("DISCARD")
		return
	}
	g.add("EXEC")
}

func (g *transactor) oddity() {
	switch g.IntN(8) {
	case 0:
		g.add("EXEC")
	case 1:
		g.add("DISCARD")
	case 2:
		g.add("EXEC", "now")
	case 3:
		g.add("UNWATCH")
	case 4:
		g.add("RESET")
	case 5:
		g.add("MULTI", "x")
	case 6:
		g.add("WATCH")
	default:
		g.add("SELECT", g.database())
	}
}
