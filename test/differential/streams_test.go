package differential

import (
	"slices"
	"strconv"
)

// stream returns a command on a stream. IDs are numbers close to the last one, so that commands
// meet the same entries. No reply depends on the time: an entry has been idle for less than 100 s,
// and for at least 0.
func (g *composer) stream() []string {
	key := g.keyOf("x")
	switch n := g.IntN(100); {
	case n < 1:
		return []string{"DEL", key}
	case n < 24:
		return g.xadd(key)
	case n < 28:
		return append([]string{"XTRIM", key}, g.trimming()...)
	case n < 33:
		return g.ids("XDEL", key)
	case n < 35:
		return []string{"XLEN", key}
	case n < 42:
		return g.xrange(key)
	case n < 46:
		return g.xread()
	case n < 48:
		return g.xsetid(key)
	case n < 57:
		return g.xgroup(key)
	case n < 71:
		return g.xreadgroup()
	case n < 77:
		return g.ids("XACK", key, g.group())
	case n < 83:
		return g.xpending(key)
	case n < 89:
		return g.xclaim(key)
	case n < 93:
		return g.xautoclaim(key)
	}
	return g.xinfo(key)
}

func (g *composer) group() string    { return "g" + g.pick("1", "1", "1", "2", "3") }
func (g *composer) consumer() string { return g.pick(consumers...) }

var consumers = []string{"ann", "bob", "cy"}

// id is the ID of an entry, seldom none at all.
func (g *composer) id() string {
	if g.chance(40) {
		return g.pick("", "x", "-", "+", "1-", "-1", "1-x", "18446744073709551615-18446744073709551615", "18446744073709551616", "0-0", "01-1", "1-1-1")
	}
	back := g.IntN(40) - 2
	if g.grows {
		back = g.IntN(400)
	}
	id := strconv.Itoa(max(0, g.stamp/2-back))
	if g.chance(4) {
		return id
	}
	return id + "-" + strconv.Itoa(g.IntN(3))
}

func (g *composer) ids(args ...string) []string {
	return g.some(args, func() []string { return []string{g.id()} })
}

// xadd appends an entry, most often behind those that are there.
func (g *composer) xadd(key string) []string {
	args := []string{"XADD", key}
	if g.chance(8) {
		args = append(args, g.pick("NOMKSTREAM", "nomkstream"))
	}
	if g.chance(6) {
		args = append(args, g.trimming()...)
	}
	g.stamp++
	switch n := g.IntN(12); {
	case n == 0:
		args = append(args, g.id())
	case n < 3:
		args = append(args, strconv.Itoa(g.stamp/2)+"-*")
	default:
		args = append(args, strconv.Itoa(g.stamp/2)+"-"+strconv.Itoa(g.stamp%2+1))
	}
	if g.chance(3) { // fields of equal names
		args = append(args, "name", g.element(), "number", strconv.Itoa(g.IntN(1000)))
	} else {
		args = g.some(args, func() []string { return []string{g.element(), g.element()} })
	}
	if g.chance(25) {
		args = args[:len(args)-1]
	}
	return args
}

// trimming is exact: how much of a stream is near enough depends on how it is stored.
func (g *composer) trimming() []string {
	args := []string{"MAXLEN", g.pick("0", "3", "10", "10", "50", "200", "1000", g.index())}
	if g.chance(2) {
		args = []string{"MINID", g.id()}
	}
	switch {
	case g.chance(3):
		args = slices.Insert(args, 1, "=")
	case g.chance(12):
		args = append(slices.Insert(args, 1, g.pick("=", "x", "-")), "LIMIT", g.index())
	}
	return args
}

func (g *composer) bound(open string) string {
	switch g.IntN(5) {
	case 0:
		return "(" + g.id()
	case 1, 2:
		return open
	}
	return g.id()
}

func (g *composer) xrange(key string) []string {
	args := []string{"XRANGE", key, g.bound("-"), g.bound("+")}
	if g.chance(2) {
		args = []string{"XREVRANGE", key, g.bound("+"), g.bound("-")}
	}
	if g.chance(2) {
		args = append(args, g.pick("COUNT", "count", "x"), g.count())
	}
	return args
}

// streams appends keys, and an ID of each.
func (g *composer) streams(args []string, id func() string) []string {
	n := 1 + g.IntN(3)
	args = append(args, "STREAMS")
	for range n {
		args = append(args, g.keyOf("x"))
	}
	for range n {
		args = append(args, id())
	}
	if g.chance(30) {
		args = args[:len(args)-1]
	}
	return args
}

func (g *composer) xread() []string {
	args := []string{"XREAD"}
	if g.chance(2) {
		args = append(args, "COUNT", g.count())
	}
	return g.streams(args, func() string {
		if g.chance(8) {
			return g.pick("$", ">")
		}
		return g.id()
	})
}

func (g *composer) xreadgroup() []string {
	args := []string{"XREADGROUP", "GROUP", g.group(), g.consumer()}
	if g.chance(2) {
		args = append(args, "COUNT", g.count())
	}
	if g.chance(5) {
		args = append(args, "NOACK")
	}
	return g.streams(args, func() string {
		if g.chance(3) {
			return g.id()
		}
		return ">"
	})
}

func (g *composer) xsetid(key string) []string {
	g.stamp += g.IntN(5)
	args := []string{"XSETID", key, strconv.Itoa(g.stamp/2+1) + "-5"}
	if g.chance(4) {
		args[2] = g.id()
	}
	if g.chance(2) {
		args = append(args, "ENTRIESADDED", g.pick("1000000", "1", "-1", "x"), "MAXDELETEDID", g.id())
	}
	return args
}

// xgroup returns a command on a group. A group always has all consumers: Redis makes those that get nothing only from
// 7.2 on.
func (g *composer) xgroup(key string) []string {
	group, last := g.group(), g.pick("0", "0", "$", g.id())
	made := func(consumers ...string) {
		for _, consumer := range consumers {
			g.due = append(g.due, []string{"XGROUP", "CREATECONSUMER", key, group, consumer})
		}
	}
	switch n := g.IntN(20); {
	case n < 9:
		args := []string{"XGROUP", g.pick("CREATE", "create"), key, group, last}
		if g.chance(2) {
			args = append(args, "MKSTREAM")
		}
		if g.chance(4) {
			args = append(args, "ENTRIESREAD", g.pick("0", "5", "-1", "-2", "x"))
		}
		made(consumers...)
		return args
	case n < 12:
		return []string{"XGROUP", "SETID", key, group, last}
	case n < 14:
		return []string{"XGROUP", "DESTROY", key, group}
	case n < 17:
		return []string{"XGROUP", "CREATECONSUMER", key, group, g.consumer()}
	}
	consumer := g.consumer()
	made(consumer)
	return []string{"XGROUP", "DELCONSUMER", key, group, consumer}
}

// longAgo and justNow are limits of idle times: no entry has been idle for so long, and each for at least so long.
const longAgo, justNow = "100000000", "0"

func (g *composer) xpending(key string) []string {
	args := []string{"XPENDING", key, g.group()}
	if g.chance(3) {
		return args
	}
	if g.chance(4) {
		args = append(args, "IDLE", g.pick(longAgo, justNow, "x", "-1"))
	}
	args = append(args, g.bound("-"), g.bound("+"), g.count())
	if g.chance(3) {
		args = append(args, g.consumer())
	}
	return args
}

func (g *composer) xclaim(key string) []string {
	args := g.ids("XCLAIM", key, g.group(), g.consumer(), g.pick(justNow, justNow, justNow, longAgo, "x", "-5"))
	for g.chance(2) {
		args = append(args, [][]string{
			{"JUSTID"}, {"FORCE"}, {"RETRYCOUNT", g.pick("0", "7", "x")}, {"IDLE", g.pick("0", "5000")}, {"TIME", "1"}, {"LASTID", g.id()},
		}[g.IntN(6)]...)
	}
	return args
}

func (g *composer) xautoclaim(key string) []string {
	args := []string{"XAUTOCLAIM", key, g.group(), g.consumer(), g.pick(justNow, justNow, longAgo), g.id()}
	if g.chance(2) {
		args = append(args, "COUNT", g.pick("1", "2", "10", "0", "x"))
	}
	if g.chance(3) {
		args = append(args, "JUSTID")
	}
	return args
}

func (g *composer) xinfo(key string) []string {
	switch g.IntN(4) {
	case 0:
		return []string{"XINFO", "CONSUMERS", key, g.group()}
	case 1:
		return []string{"XINFO", "GROUPS", key}
	case 2:
		return []string{"XINFO", "STREAM", key}
	}
	args := []string{"XINFO", "STREAM", key, "FULL"}
	if g.chance(2) {
		args = append(args, "COUNT", g.pick("0", "1", "3", "20"))
	}
	return args
}

// timeless is a reply about a stream without the times in it, and without what depends on how it is stored.
func (r reply) timeless() reply {
	return r.without("idle", "inactive", "seen-time", "active-time", "radix-tree-keys", "radix-tree-nodes")
}

// without is a reply without what stands behind some names, and without these.
func (r reply) without(names ...string) reply {
	items := r.items
	r.items = nil
	for i := 0; i < len(items); i++ {
		if slices.Contains(names, items[i].text) {
			i++
			continue
		}
		r.items = append(r.items, items[i].without(names...))
	}
	return r
}

// idleless is a reply of entries that are pending, each with its ID, perhaps its consumer, a time, and its deliveries,
// without that time.
func (r reply) idleless() reply {
	for _, one := range r.items {
		if n := len(one.items); n >= 3 && one.items[n-1].kind == ':' && one.items[n-2].kind == ':' {
			one.items[n-2].text = "time"
		}
		one.idleless()
	}
	return r
}
