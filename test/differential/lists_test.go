package differential

import "strconv"

// list returns a command on a list.
func (g *composer) list() []string {
	key := g.keyOf("l")
	switch n := g.IntN(100); {
	case n < 20:
		return g.elements(g.pick("LPUSH", "RPUSH", "rpush"), key)
	case n < 24:
		return g.elements(g.pick("LPUSHX", "RPUSHX"), key)
	case n < 34:
		return []string{g.pick("LPOP", "RPOP"), key}
	case n < 40:
		return []string{g.pick("LPOP", "RPOP"), key, g.index()}
	case n < 44:
		return []string{"LLEN", key}
	case n < 50:
		return []string{"LINDEX", key, g.index()}
	case n < 56:
		return []string{"LSET", key, g.near(), g.value()}
	case n < 62:
		return []string{"LINSERT", key, g.pick("BEFORE", "AFTER", "after", "AFTER", "x"), g.element(), g.element()}
	case n < 70:
		return []string{"LRANGE", key, g.index(), g.index()}
	case n < 74:
		return []string{"LTRIM", key, g.index(), g.pick(g.index(), "-1", "-2", "300")}
	case n < 80:
		return []string{"LREM", key, g.index(), g.element()}
	case n < 88:
		args := []string{"LPOS", key, g.element()}
		for g.chance(2) {
			args = append(args, g.pick("RANK", "COUNT", "MAXLEN", "rank", "count", "x"), g.index())
		}
		return args
	case n < 92:
		return []string{"LMOVE", key, g.keyOf("l"), g.side(), g.side()}
	case n < 95:
		return []string{"RPOPLPUSH", key, g.keyOf("l")}
	}
	args := g.counted("LMPOP", "l")
	args = append(args, g.side())
	if g.chance(2) {
		args = append(args, g.pick("COUNT", "count", "x"), g.index())
	}
	return args
}

// near is an index that fits into 32 bits: Redis 8 cuts LSET's.
func (g *composer) near() string {
	if n := g.index(); len(n) < 10 {
		return n
	}
	return "0"
}

func (g *composer) side() string {
	if g.chance(40) {
		return g.pick("MIDDLE", "", "LEF", "AFTER")
	}
	return g.pick("LEFT", "RIGHT", "left", "Right")
}

// counted returns a command that names its keys behind their number.
func (g *composer) counted(name, kind string, before ...string) []string {
	n := 1 + g.IntN(3)
	given := strconv.Itoa(n)
	if g.chance(30) {
		given = g.pick("0", "-1", "x", "99", "01", "")
	}
	args := append(append([]string{name}, before...), given)
	for range n {
		args = append(args, g.keyOf(kind))
	}
	return args
}
