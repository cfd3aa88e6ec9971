package differential

import "strconv"

// sortedSet returns a command on a sorted set.
func (g *composer) sortedSet() []string {
	key := g.keyOf("z")
	switch n := g.IntN(100); {
	case n < 22:
		return g.zadd(key)
	case n < 25:
		return []string{"ZINCRBY", key, g.score(), g.element()}
	case n < 31:
		return g.elements("ZREM", key)
	case n < 35:
		return []string{"ZSCORE", key, g.element()}
	case n < 38:
		return g.elements("ZMSCORE", key)
	case n < 43:
		return []string{g.pick("ZRANK", "ZREVRANK"), key, g.element(),
			g.pick("WITHSCORE", "withscore", "WITHSCORES")}[:g.rankWords()]
	case n < 45:
		return []string{"ZCARD", key}
	case n < 48:
		return []string{"ZCOUNT", key, g.scoreBound(), g.scoreBound()}
	case n < 66:
		return g.sortedRange(key)
	case n < 70:
		return []string{g.pick("ZPOPMIN", "ZPOPMAX"), key, g.index()}[:g.oneOf(2, 3)]
	case n < 73:
		args := append(g.counted("ZMPOP", "z"), g.pick("MIN", "MAX", "min", "x"))
		if g.chance(2) {
			args = append(args, "COUNT", g.index())
		}
		return args
	case n < 75:
		return []string{"ZREMRANGEBYRANK", key, g.index(), g.index()}
	case n < 77:
		return []string{"ZREMRANGEBYSCORE", key, g.scoreBound(), g.scoreBound()}
	case n < 79:
		return []string{"ZRANDMEMBER", key, g.count(), "WITHSCORES"}[:g.oneOf(2, 3, 4)]
	case n < 81:
		return g.scanned("ZSCAN", key)
	case n < 86:
		return g.lexical()
	case n < 90:
		return g.rangeStore()
	}
	return g.sortedAlgebra()
}

// rankWords is how many words a ZRANK has: WITHSCORE came with Redis 7.2.
func (g *composer) rankWords() int {
	if g.version < 702 {
		return 3
	}
	return g.oneOf(3, 3, 4)
}

func (g *composer) zadd(key string) []string {
	args := []string{"ZADD", key}
	for _, option := range []string{"NX", "XX", "GT", "LT", "CH"} {
		if g.chance(8) {
			args = append(args, option)
		}
	}
	if g.chance(20) {
		return append(args, "INCR", g.score(), g.element())
	}
	args = g.some(args, func() []string { return []string{g.score(), g.element()} })
	if g.chance(40) {
		args = append(args, "x")
	}
	return args
}

func (g *composer) score() string {
	switch n := g.IntN(50); {
	case n == 0:
		return g.pick("nan", "abc", "", "1 ", "0x", "+", g.old(" 1"), g.old("1e400"), "--1", "1.2.3", "1_0")
	case n < 4:
		return g.pick("inf", "-inf", "+inf", "1e300", "-1e-300", "5e-324", "0.1", "1e21", "123456789012345678", "3.0",
			"1e5",
			"9007199254740993", "1e-400", g.old("0x10"))
	case n < 15:
		return strconv.FormatFloat(g.Float64()*200-100, 'f', 2, 64)
	case n < 20:
		return strconv.FormatFloat(g.Float64()*2e3-1e3, 'g', -1, 64)
	}
	return strconv.Itoa(g.IntN(20) - 8)
}

func (g *composer) scoreBound() string {
	if g.chance(8) {
		return g.pick("-inf", "+inf", "(inf", "inf", "", "(", "(-inf", "[1")
	}
	if g.chance(3) {
		return "(" + g.score()
	}
	return g.score()
}

func (g *composer) lexBound() string {
	switch g.IntN(8) {
	case 0:
		return "-"
	case 1:
		return "+"
	case 2:
		if g.chance(4) {
			return g.pick("", "x", "--", "[ ", "(", "[")
		}
	}
	return g.pick("[", "(") + g.element()
}

func (g *composer) limit(args []string) []string {
	if g.chance(3) {
		return append(args, g.pick("LIMIT", "limit"), g.index(), g.index())
	}
	return args
}

func (g *composer) withScores(args []string) []string {
	if g.chance(3) {
		return append(args, g.pick("WITHSCORES", "withscores"))
	}
	return args
}

func (g *composer) sortedRange(key string) []string {
	var args []string
	switch g.IntN(6) {
	case 0:
		args = []string{"ZRANGE", key, g.index(), g.index()}
		if g.chance(3) {
			args = append(args, "REV")
		}
		if g.chance(30) {
			args = append(args, "LIMIT", "0", "1")
		}
	case 1:
		args = []string{"ZRANGE", key, g.scoreBound(), g.scoreBound(), "BYSCORE"}
		if g.chance(3) {
			args = append(args, "REV")
		}
		args = g.limit(args)
	case 2:
		args = []string{"ZREVRANGE", key, g.index(), g.index()}
	default:
		args = g.limit([]string{g.pick("ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), key, g.scoreBound(), g.scoreBound()})
	}
	return g.withScores(args)
}

// lexical returns a command on a sorted set whose members mostly have one score.
func (g *composer) lexical() []string {
	key := g.tag + "zlex"
	switch g.IntN(10) {
	case 0, 1, 2:
		return g.some([]string{"ZADD", key}, func() []string { return []string{"0", g.element()} })
	case 3, 4:
		return g.limit([]string{g.pick("ZRANGEBYLEX", "ZREVRANGEBYLEX"), key, g.lexBound(), g.lexBound()})
	case 5, 6:
		args := []string{"ZRANGE", key, g.lexBound(), g.lexBound(), "BYLEX"}
		if g.chance(3) {
			args = append(args, "REV")
		}
		return g.limit(args)
	case 7, 8:
		return []string{"ZLEXCOUNT", key, g.lexBound(), g.lexBound()}
	}
	return []string{"ZREMRANGEBYLEX", key, g.lexBound(), g.lexBound()}
}

func (g *composer) rangeStore() []string {
	args := []string{"ZRANGESTORE", g.keyOf("z"), g.keyOf("z")}
	if g.chance(2) {
		args = append(args, g.index(), g.index())
	} else {
		args = append(args, g.scoreBound(), g.scoreBound(), "BYSCORE")
		args = g.limit(args)
	}
	if g.chance(4) {
		args = append(args, "REV")
	}
	return args
}

func (g *composer) sortedAlgebra() []string {
	name := g.pick("ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE")
	var before []string
	stores := len(name) > 7 && name != "ZINTERCARD"
	if stores {
		before = []string{g.keyOf("z")}
	}
	args := g.counted(name, g.pick("z", "z", "z", "s"), before...)
	keys := len(args) - 2 - len(before)
	switch name {
	case "ZINTERCARD":
		if g.chance(2) {
			args = append(args, "LIMIT", g.index())
		}
		return args
	case "ZDIFF", "ZDIFFSTORE":
	default:
		if g.chance(3) {
			args = append(args, "WEIGHTS")
			for range keys {
				args = append(args, g.pick("1", "2", "-1", "0.5", "0", "3", "inf", "-inf", g.score()))
			}
		}
		if g.chance(3) {
			args = append(args, "AGGREGATE", g.pick("SUM", "MIN", "MAX", "max", "min", "x"))
		}
	}
	if !stores || g.chance(20) {
		args = g.withScores(args)
	}
	return args
}
