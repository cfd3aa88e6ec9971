package differential

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

var listCommands = flag.Int("differential.lists", 4_000, "how many list commands the differential run compares")

// TestLists sends random commands on lists, some of them wrong, to a proxy with three nodes and to
// redis-server. Lists grow beyond a packed value and shrink again.
func TestLists(t *testing.T) {
	t.Parallel()
	o := startOracle(t)
	harness.AwaitLevel(t, o.proxy)
	o.compare(t, max(1, *listCommands/4/listBatch), func(i uint64, rng *rand.Rand) func() [][][]byte {
		return (&listGenerator{Rand: rng, prefix: "{l" + strconv.Itoa(int(i)) + "}"}).batch
	})
}

const listBatch = 50

// listGenerator generates commands on a few keys of one slot.
type listGenerator struct {
	*rand.Rand
	prefix string
	grows  bool
}

func (g *listGenerator) batch() (requests [][][]byte) {
	if g.IntN(4) == 0 {
		g.grows = !g.grows
	}
	for range listBatch {
		var request [][]byte
		for _, word := range g.request() {
			request = append(request, []byte(word))
		}
		requests = append(requests, request)
	}
	return requests
}

func (g *listGenerator) key() string {
	if g.IntN(60) == 0 {
		return g.prefix + "string"
	}
	return g.prefix + strconv.Itoa(g.IntN(4))
}

func (g *listGenerator) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g *listGenerator) element() string {
	switch g.IntN(30) {
	case 0:
		return strings.Repeat(g.pick("x", "yz", "0"), g.IntN(3000))
	case 1:
		return g.pick("", "-0", "007", "9223372036854775808", "-9223372036854775808", "1.5", "+1", "\r\n")
	case 2, 3, 4, 5, 6, 7:
		return "element:" + strconv.Itoa(g.IntN(20))
	}
	return strconv.Itoa(g.IntN(40) - 5)
}

// number is an index or a count, seldom none at all.
func (g *listGenerator) number() string {
	if g.IntN(25) == 0 {
		return g.pick("", "x", "1.0", " 1", "-", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
			"-9223372036854775807", "99999999999999999999999", "0", "-0", "01")
	}
	if g.IntN(4) == 0 {
		return strconv.Itoa(g.IntN(1000) - 500)
	}
	return strconv.Itoa(g.IntN(12) - 5)
}

// negatable is a number without the one that Redis 8 refuses and Redis 7.0 does not.
func (g *listGenerator) negatable() string {
	if n := g.number(); n != "-9223372036854775808" {
		return n
	}
	return "0"
}

func (g *listGenerator) elements() (args []string) {
	n := 1 + g.IntN(3)
	if g.grows && g.IntN(6) == 0 {
		n = g.IntN(700)
	}
	for range n {
		args = append(args, g.element())
	}
	return args
}

func (g *listGenerator) side() string {
	if g.IntN(40) == 0 {
		return g.pick("MIDDLE", "", "LEF", "AFTER")
	}
	return g.pick("LEFT", "RIGHT", "left", "Right")
}

func (g *listGenerator) request() []string {
	args := g.wellFormed()
	switch g.IntN(60) {
	case 0:
		return args[:1+g.IntN(len(args))]
	case 1:
		return append(args, g.pick("COUNT", "1", "x"))
	}
	return args
}

func (g *listGenerator) wellFormed() []string {
	key := g.key()
	n := g.IntN(100)
	if !g.grows && n < 20 {
		n += 20
	}
	switch {
	case n < 20:
		return append([]string{g.pick("LPUSH", "RPUSH", "rpush"), key}, g.elements()...)
	case n < 24:
		return append([]string{g.pick("LPUSHX", "RPUSHX"), key}, g.elements()...)
	case n < 34:
		return []string{g.pick("LPOP", "RPOP"), key}
	case n < 40:
		return []string{g.pick("LPOP", "RPOP"), key, g.number()}
	case n < 44:
		return []string{"LLEN", key}
	case n < 50:
		return []string{"LINDEX", key, g.number()}
	case n < 56:
		return []string{"LSET", key, g.number(), g.element()}
	case n < 62:
		return []string{"LINSERT", key, g.pick("BEFORE", "AFTER", "after", "AFTER", "x"), g.element(), g.element()}
	case n < 70:
		return []string{"LRANGE", key, g.number(), g.number()}
	case n < 74:
		return []string{"LTRIM", key, g.number(), g.pick(g.number(), "-1", "-2", "300")}
	case n < 80:
		return []string{"LREM", key, g.negatable(), g.element()}
	case n < 88:
		return g.pos(key)
	case n < 92:
		return []string{"LMOVE", key, g.key(), g.side(), g.side()}
	case n < 94:
		return []string{"RPOPLPUSH", key, g.key()}
	case n < 98:
		return g.mpop()
	case n < 99:
		return []string{g.pick("DEL", "TYPE", "EXISTS", "UNLINK"), key}
	}
	return []string{"SET", g.prefix + "string", "value"}
}

func (g *listGenerator) pos(key string) []string {
	args := []string{"LPOS", key, g.element()}
	for g.IntN(2) == 0 {
		args = append(args, g.pick("RANK", "COUNT", "MAXLEN", "rank", "count", "x"), g.negatable())
	}
	return args
}

func (g *listGenerator) mpop() []string {
	n := 1 + g.IntN(3)
	args := []string{"LMPOP", strconv.Itoa(n)}
	if g.IntN(20) == 0 {
		args[1] = g.pick("0", "-1", "x", "99", "01")
	}
	for range n {
		args = append(args, g.key())
	}
	args = append(args, g.side())
	if g.IntN(2) == 0 {
		args = append(args, g.pick("COUNT", "count", "x"), g.number())
	}
	return args
}
