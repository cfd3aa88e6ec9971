package differential

import (
	"strconv"
	"strings"
)

// sortSetup makes what BY and GET of sort name. Elements that differ have different weights, so
// the order is that of any correct server.
func (g *composer) sortSetup() {
	for i := range 30 {
		n := strconv.Itoa(i)
		g.due = append(g.due,
			[]string{"SET", g.tag + "w:" + n, strconv.Itoa(i*7919%31) + g.pick("", ".5", "e0")},
			[]string{"SET", g.tag + "a:" + n, strconv.Itoa(i*i) + "x" + n},
			[]string{"HSET", g.tag + "f:" + n, "f", strconv.Itoa(100 - i), "name", strings.Repeat("n", i*i*i%3000)})
	}
	g.due = append(g.due,
		[]string{"RPUSH", g.tag + "x:5", "of another type"},
		[]string{"RPUSH", g.tag + "words", "b", "a", "10", "x", "", "0x1f", " 5", "nan", "inf"})
}

// sorts returns a SORT, or a command that changes what is sorted.
func (g *composer) sorts() []string {
	if !g.begun {
		g.begun = true
		g.sortSetup()
	}
	small := func() []string { return []string{strconv.Itoa(g.IntN(30))} }
	switch key := g.keyOf("q"); g.IntN(12) {
	case 0:
		return []string{"DEL", key}
	case 1:
		return g.some([]string{"RPUSH", g.tag + g.pick("q1", "q2")}, small)
	case 2:
		return g.some([]string{"SADD", g.tag + "qset"}, small)
	case 3:
		return g.some([]string{"ZADD", g.tag + "qzset"}, func() []string {
			return append([]string{g.score()}, small()...)
		})
	case 4, 5:
		return []string{"LRANGE", key, "0", "-1"}
	default:
		return g.sort(g.pick(key, key, key, key, g.tag+"qset", g.tag+"qzset", g.tag+"words", g.tag+"w:1", g.tag+"none"))
	}
}

func (g *composer) sort(key string) []string {
	args, name := []string{}, g.pick("SORT", "SORT", "sort", "SORT_RO")
	for g.IntN(3) > 0 {
		switch g.IntN(9) {
		case 0:
			args = append(args, g.pick("ASC", "DESC", "desc"))
		case 1:
			args = append(args, "ALPHA")
		case 2, 3:
			args = append(args, "LIMIT", g.index(), g.index())
		case 4:
			args = append(args, "BY", g.pick(g.tag+"w:*", g.tag+"f:*->f", g.tag+"x:*", g.tag+"w:*->f", "nosort",
				g.tag+"w"))
		case 5, 6:
			args = append(args, "GET", g.pick("#", g.tag+"w:*", g.tag+"a:*", g.tag+"f:*->name", g.tag+"f:*->none",
				g.tag+"x:*", g.tag+"w", g.tag+"f:*->"))
		case 7:
			args = append(args, "STORE", g.keyOf("q"))
		case 8:
			if g.chance(10) {
				args = append(args, g.pick("LIMIT", "x", "ASCII"))
			}
		}
	}
	if all := strings.Join(args, " "); strings.Contains(all, "x:*") || strings.Contains(all, "w:*->f") ||
		strings.HasSuffix(key, "words") ||
		strings.Contains(all, "ALPHA") && strings.Contains(all, "BY") { // elements without a weight are in any order
		args = append(args, "BY", "nosort")
	}
	return append([]string{name, key}, args...)
}
