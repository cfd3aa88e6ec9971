package differential

import "strconv"

// anyKey returns a key of a random type.
func (g *composer) anyKey() string { return g.keyOf(g.pick("h", "l", "s", "z", "g", "q", "k", "x")) }

// database is the number of a database: of one of few, so that keys of one name meet in them.
func (g *composer) database() string {
	if g.chance(12) {
		return g.pick("15", "16", "-1", "x")
	}
	return g.pick("0", "1", "2")
}

// whole returns a command on a key of any type, or selects a database.
func (g *composer) whole() []string {
	k := g.anyKey()
	switch g.IntN(27) {
	case 0, 1, 2, 3, 4, 5:
		return []string{g.pick("DEL", "UNLINK"), k, g.anyKey()}[:g.oneOf(2, 2, 3)]
	case 6:
		return []string{g.pick("EXISTS", "TOUCH"), k, g.anyKey(), k}[:g.oneOf(2, 3, 4)]
	case 7, 8:
		return []string{"TYPE", k}
	case 9, 10:
		return []string{g.pick("RENAME", "RENAMENX"), k, g.anyKey()}
	case 11, 12, 13:
		args := []string{"COPY", k, g.anyKey()}
		if g.chance(2) {
			args = append(args, "REPLACE")
		}
		if g.chance(3) {
			args = append(args, "DB", g.database())
		}
		return args
	case 14, 15, 16:
		name := g.pick("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT")
		when := g.moment(name)
		if g.chance(8) {
			when = g.pick("0", "-1", "x", "", "9223372036854775807", "-9223372036854775808")
		}
		return []string{name, k, when, g.pick("NX", "XX", "GT", "LT", "gt")}[:g.oneOf(3, 4)]
	case 17, 18:
		return []string{g.pick("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"), k}
	case 19:
		return []string{"PERSIST", k}
	case 20, 21:
		return []string{"OBJECT", "ENCODING", k}
	case 22:
		return []string{g.pick("DBSIZE", "RANDOMKEY", "KEYS"), "*"}[:1]
	case 23, 24:
		return []string{"MOVE", k, g.database()}
	case 25:
		return []string{"SELECT", g.database()}
	}
	return []string{"MEMORY", "USAGE", k}
}

// text returns a command on a string.
func (g *composer) text() []string {
	k := g.keyOf("k")
	switch g.IntN(12) {
	case 0, 1:
		return []string{"SET", k, g.value()}
	case 2:
		return append([]string{"SET", k, g.value()}, g.expiry()...)
	case 3, 4:
		return []string{"GET", k}
	case 5:
		return []string{g.pick("APPEND", "GETSET", "SETNX"), k, g.element()}
	case 6:
		return []string{g.pick("INCRBY", "DECRBY", "INCRBYFLOAT"), k, g.number()}
	case 7:
		return []string{"SETRANGE", k, strconv.Itoa(g.IntN(3000)), g.element()}
	case 8:
		return []string{"GETRANGE", k, g.index(), g.index()}
	case 9:
		return append([]string{"GETEX", k}, g.expiry()...)
	case 10:
		return []string{"MGET", k, g.anyKey(), g.anyKey()}
	}
	return []string{g.pick("GETDEL", "STRLEN"), k}
}

// any returns a command on a value of any type, or begins a transaction of such commands.
func (g *composer) any() []string {
	kinds := []func(*composer) []string{(*composer).hash, (*composer).list, (*composer).set, (*composer).sortedSet,
		(*composer).geo, (*composer).sorts, (*composer).stream, (*composer).text, (*composer).whole}
	one := func() []string { return kinds[g.IntN(len(kinds))](g) }
	if !g.chance(100) {
		return one()
	}
	for range g.IntN(12) {
		if args := one(); args[0] != "DBSIZE" && args[0] != "RANDOMKEY" && args[0] != "MEMORY" && g.isComparable(args) {
			g.due = append(g.due, args)
			g.settle(args)
		}
	}
	g.due = append(g.due, []string{g.pick("EXEC", "EXEC", "EXEC", "DISCARD")})
	return []string{"MULTI"}
}
