package differential

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestSort sends SORT with random options to a proxy with three nodes and to redis-server.
func TestSort(t *testing.T) {
	t.Parallel()
	o := startOracle(t)
	harness.AwaitLevel(t, o.proxy)
	o.compare(t, max(1, *listCommands/8/listBatch), func(i uint64, rng *rand.Rand) func() [][][]byte {
		return (&sortGenerator{Rand: rng, tag: "{s" + strconv.Itoa(int(i)) + "}"}).batch
	})
}

// sortGenerator generates a SORT among commands that make lists and what BY and GET name. Elements
// that differ have different weights, so the order is that of any correct server.
type sortGenerator struct {
	*rand.Rand
	tag   string
	begun bool
}

func (g *sortGenerator) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g *sortGenerator) batch() (requests [][][]byte) {
	add := func(words ...string) {
		var request [][]byte
		for _, word := range words {
			request = append(request, []byte(word))
		}
		requests = append(requests, request)
	}
	if !g.begun {
		g.begun = true
		for i := range 30 {
			n := strconv.Itoa(i)
			add("SET", g.tag+"w:"+n, strconv.Itoa(i*7919%31)+g.pick("", ".5", "e0"))
			add("SET", g.tag+"a:"+n, strconv.Itoa(i*i)+"x"+n)
			add("HSET", g.tag+"h:"+n, "f", strconv.Itoa(100-i), "name", strings.Repeat("n", i*i*i%3000))
		}
		add("RPUSH", g.tag+"x:5", "of another type")
		add("RPUSH", g.tag+"words", "b", "a", "10", "x", "", "0x1f", " 5", "nan", "inf")
	}
	for range listBatch {
		switch key := g.tag + g.pick("1", "2"); g.IntN(12) {
		case 0:
			add("DEL", key)
		case 1, 2:
			elements := []string{"RPUSH", key}
			for range 1 + g.IntN(g.pick2(20, 900)) {
				elements = append(elements, strconv.Itoa(g.IntN(30)))
			}
			add(elements...)
		default:
			add(g.sort(g.pick(key, key, key, key, g.tag+"words", g.tag+"w:1", g.tag+"none"))...)
			add("LRANGE", g.tag+"1", "0", "-1")
			add("LRANGE", g.tag+"2", "0", "-1")
		}
	}
	return requests
}

func (g *sortGenerator) pick2(often, seldom int) int {
	if g.IntN(8) == 0 {
		return seldom
	}
	return often
}

func (g *sortGenerator) sort(key string) []string {
	args, name := []string{}, g.pick("SORT", "SORT", "sort", "SORT_RO")
	for g.IntN(3) > 0 {
		switch g.IntN(9) {
		case 0:
			args = append(args, g.pick("ASC", "DESC", "desc"))
		case 1:
			args = append(args, "ALPHA")
		case 2, 3:
			args = append(args, "LIMIT", g.number(), g.number())
		case 4:
			args = append(args, "BY", g.pick(g.tag+"w:*", g.tag+"h:*->f", g.tag+"x:*", g.tag+"w:*->f", "nosort", g.tag+"w"))
		case 5, 6:
			args = append(args, "GET", g.pick("#", g.tag+"w:*", g.tag+"a:*", g.tag+"h:*->name", g.tag+"h:*->none", g.tag+"x:*", g.tag+"w", g.tag+"h:*->"))
		case 7:
			args = append(args, "STORE", g.tag+g.pick("1", "2", "stored"))
		case 8:
			if g.IntN(10) == 0 {
				args = append(args, g.pick("LIMIT", "x", "ASCII"))
			}
		}
	}
	if all := strings.Join(args, " "); strings.Contains(all, "x:*") || strings.Contains(all, "w:*->f") || strings.HasSuffix(key, "words") ||
		strings.Contains(all, "ALPHA") && strings.Contains(all, "BY") { // elements without a weight are in any order
		args = append(args, "BY", "nosort")
	}
	return append([]string{name, key}, args...)
}

func (g *sortGenerator) number() string {
	if g.IntN(30) == 0 {
		return g.pick("x", "", "9223372036854775807", "-9223372036854775808")
	}
	return strconv.Itoa(g.IntN(40) - 8)
}
