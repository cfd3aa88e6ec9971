package differential

// set returns a command on a set.
func (g *composer) set() []string {
	key := g.keyOf("s")
	switch g.IntN(20) {
	case 0, 1, 2, 3, 4:
		if g.chance(3) { // a set of integers
			return g.some([]string{"SADD", key}, func() []string { return []string{g.integer()} })
		}
		return g.elements("SADD", key)
	case 5, 6:
		return g.elements("SREM", key)
	case 7:
		return []string{"SISMEMBER", key, g.element()}
	case 8:
		return g.elements("SMISMEMBER", key)
	case 9, 10:
		return []string{g.pick("SCARD", "SMEMBERS", "SMEMBERS"), key}
	case 11:
		if g.chance(4) {
			return []string{"SPOP", key, popsAll}
		}
		return []string{"SPOP", key, g.count()}[:g.oneOf(2, 3, 3)]
	case 12:
		return []string{"SRANDMEMBER", key, g.count()}[:g.oneOf(2, 3, 3)]
	case 13, 14:
		return []string{"SMOVE", key, g.keyOf("s"), g.element()}
	case 15:
		return g.scanned("SSCAN", key)
	case 16:
		args := g.counted("SINTERCARD", "s")
		if g.chance(2) {
			args = append(args, "LIMIT", g.index())
		}
		return args
	case 17, 18:
		return []string{g.pick("SINTER", "SUNION", "SDIFF"), key, g.keyOf("s"), g.keyOf("s")}[:2+g.IntN(3)]
	}
	return []string{g.pick("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), key, g.keyOf("s"), g.keyOf("s"),
		g.keyOf("s")}[:3+g.IntN(3)]
}

func (g *composer) integer() string {
	return g.pick("0", "-1", "32767", "32768", "-32769", "2147483647", "2147483648", "-2147483649",
		"9223372036854775807",
		"-9223372036854775808", "1", "2", "3", "100", "1000", "12345")
}
