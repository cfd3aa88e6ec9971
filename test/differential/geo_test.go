package differential

import (
	"fmt"
	"strconv"
)

// geo returns a command on a sorted set of positions. No two members have one position, so every
// order by distance is that of any correct server.
func (g *composer) geo() []string {
	key := g.keyOf("g")
	switch n := g.IntN(100); {
	case n < 25:
		args := []string{"GEOADD", key}
		for _, option := range []string{"NX", "XX", "CH"} {
			if g.chance(16) {
				args = append(args, option)
			}
		}
		return g.some(args, func() []string { return append(g.position(), g.place()) })
	case n < 35:
		return []string{"GEODIST", key, g.place(), g.place(), g.unit()}[:g.oneOf(4, 5)]
	case n < 50:
		return g.some([]string{g.pick("GEOHASH", "GEOPOS"), key}, func() []string { return []string{g.place()} })
	case n < 53:
		return []string{"ZREM", key, g.place()}
	case n < 56:
		return []string{g.pick("ZCARD", "ZRANGE"), key, "0", "-1"}[:g.oneOf(2, 4)]
	case n < 80:
		return g.search(append([]string{"GEOSEARCH", key}, g.within()...), true)
	case n < 87:
		args := append([]string{"GEOSEARCHSTORE", g.tag + g.pick("g3", "distances"), key}, g.within()...)
		args = g.search(args, false)
		if args[1] == g.tag+"distances" {
			args = append(args, "STOREDIST")
		}
		return args
	case n < 90:
		return []string{g.pick("ZRANGE", "ZCARD"), g.tag + "distances", "0", "-1", "WITHSCORES"}[:g.oneOf(2, 4, 5)]
	case n < 95:
		args := append([]string{g.pick("GEORADIUS", "GEORADIUS_RO"), key}, g.position()...)
		return g.radius(append(args, g.distance(), g.unit()))
	}
	return g.radius([]string{g.pick("GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO"), key, g.place(), g.distance(), g.unit()})
}

func (g *composer) place() string { return "place:" + strconv.Itoa(g.IntN(60+300*g.IntN(2))) }

func (g *composer) position() []string {
	if g.chance(60) {
		return []string{g.pick("181", "x", "", "nan", "-180.1", "inf"), g.pick("0", "86", "85.06", "-90", "x")}
	}
	if g.chance(2) {
		return []string{fmt.Sprintf("%.6f", g.Float64()*20-10), fmt.Sprintf("%.6f", 40+g.Float64()*10)}
	}
	return []string{fmt.Sprintf("%.6f", g.Float64()*360-180), fmt.Sprintf("%.6f", g.Float64()*170-85)}
}

func (g *composer) unit() string {
	if g.chance(40) {
		return g.pick("xx", "", "meters")
	}
	return g.pick("m", "km", "KM", "ft", "mi")
}

func (g *composer) distance() string {
	if g.chance(30) {
		return g.pick("-1", "x", "inf", "nan", "")
	}
	return g.pick("0", "1", "100", "1000", "5000", "20000", "200", "3000.5", "50000", strconv.FormatFloat(g.Float64()*2000, 'g', -1, 64))
}

// within returns the centre and the extent of a search.
func (g *composer) within() (args []string) {
	if !g.chance(50) {
		args = append([]string{"FROMLONLAT"}, g.position()...)
		if g.chance(2) {
			args = []string{"FROMMEMBER", g.place()}
		}
	}
	switch {
	case g.chance(50):
		return args
	case g.chance(2):
		return append(args, "BYRADIUS", g.distance(), g.unit())
	}
	return append(args, "BYBOX", g.distance(), g.distance(), g.unit())
}

// search appends the options of a search.
func (g *composer) search(args []string, with bool) []string {
	if g.chance(2) {
		args = append(args, g.pick("ASC", "DESC", "asc"))
	}
	if g.chance(3) {
		args = append(args, "COUNT", g.pick("1", "2", "5", "20", "1000", g.index()))
		if with && g.chance(4) {
			args = append(args, "ANY")
		}
	}
	for _, word := range []string{"WITHCOORD", "WITHDIST", "WITHHASH"} {
		if with && g.chance(3) || g.chance(60) {
			args = append(args, word)
		}
	}
	return args
}

func (g *composer) radius(args []string) []string {
	if g.chance(4) {
		return append(g.search(args, false), g.pick("STORE", "STORE", "store"), g.tag+"g3")
	}
	return g.search(args, true)
}
