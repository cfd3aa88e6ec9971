package differential

import (
	"strconv"
	"strings"
)

// hash returns a command on a hash.
func (g *composer) hash() []string {
	k := g.keyOf("h")
	pair := func() []string { return []string{g.element(), g.hashValue()} }
	switch g.IntN(26) {
	case 0, 1, 2, 3:
		args := g.some([]string{g.pick("HSET", "HSET", "hmset"), k}, pair)
		if g.chance(30) {
			args = append(args, g.element())
		}
		return args
	case 4:
		return []string{"HSETNX", k, g.element(), g.hashValue()}
	case 5, 6:
		return []string{g.pick("HGET", "HEXISTS", "HSTRLEN"), k, g.element()}
	case 7, 8:
		return g.elements("HMGET", k)
	case 9, 10:
		return g.elements("HDEL", k)
	case 11, 12:
		return []string{g.pick("HGETALL", "HKEYS", "HVALS", "HLEN"), k}
	case 13, 14:
		return []string{"HINCRBY", k, g.element(), g.number()}
	case 15:
		return []string{"HINCRBYFLOAT", k, g.element(), g.number()}
	case 16, 17:
		args := []string{"HRANDFIELD", k, g.count(), "WITHVALUES"}
		return args[:g.oneOf(2, 3, 4)]
	case 18:
		return g.scanned("HSCAN", k)
	}
	if g.version < 704 {
		return []string{"HLEN", k}
	}
	return g.fieldExpiry(k)
}

func (g *composer) hashValue() string {
	if g.chance(4) {
		return g.number()
	}
	return g.value()
}

// scanned returns a call of HSCAN and its kin that has all of the collection, or is wrong.
func (g *composer) scanned(name, key string) []string {
	args := []string{name, key, "0", "COUNT", "1000000"}
	for range g.IntN(3) {
		args = append(args, g.pick("MATCH", "MATCH", "COUNT", "x"), g.pick("*", "1*", "[0-3]?", "element:*5", "1000000",
			"0", "-1", "x"))
	}
	if name == "HSCAN" && g.version >= 704 && g.chance(3) {
		args = append(args, "NOVALUES")
	}
	if g.chance(10) {
		args[2] = g.pick("x", "", "-1", "18446744073709551616", "0 ")
	}
	return args
}

// fieldExpiry returns a command on the times of expiry of fields.
func (g *composer) fieldExpiry(k string) []string {
	if g.version >= 800 && g.chance(2) {
		return g.fieldsWithExpiry(k)
	}
	switch g.IntN(8) {
	case 0, 1, 2, 3:
		name := g.pick("HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT")
		when := g.moment(name)
		if g.chance(8) {
			when = g.pick("0", "-1", "x", "", "9223372036854775807", "70368744177663", "281474976710656", "1.5")
			if strings.HasSuffix(name, "AT") && g.chance(2) {
				when = g.pick("1", "1000000")
			}
		}
		args := []string{name, k, when}
		if g.chance(2) {
			args = append(args, g.pick("NX", "XX", "GT", "LT", "gt", "x"))
		}
		return g.fields(args, false)
	case 4, 5:
		return g.fields([]string{g.pick("HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME"), k}, false)
	}
	return g.fields([]string{"HPERSIST", k}, false)
}

// fieldsWithExpiry returns one of the commands that Redis 8 brought.
func (g *composer) fieldsWithExpiry(k string) []string {
	switch g.IntN(3) {
	case 0:
		return g.fields([]string{"HGETDEL", k}, false)
	case 1:
		args := []string{"HGETEX", k}
		switch g.IntN(4) {
		case 0:
			args = append(args, g.expiry()...)
		case 1:
			args = append(args, "PERSIST")
		case 2:
			if g.chance(6) {
				args = append(append(args, g.expiry()...), g.pick("PERSIST", "KEEPTTL", "EX"))
			}
		}
		return g.fields(args, false)
	}
	args := []string{"HSETEX", k}
	for range g.IntN(3) {
		switch g.IntN(4) {
		case 0:
			args = append(args, g.pick("FNX", "FXX", "fnx"))
		case 1:
			args = append(args, "KEEPTTL")
		default:
			args = append(args, g.expiry()...)
		}
	}
	return g.fields(args, true)
}

// fields appends FIELDS, a number and as many fields, with values if so asked.
func (g *composer) fields(args []string, values bool) []string {
	words := g.some(nil, func() []string {
		if values {
			return []string{g.element(), g.hashValue()}
		}
		return []string{g.element()}
	})
	n := len(words)
	if values {
		n /= 2
	}
	given := strconv.Itoa(n)
	if g.chance(25) {
		given = g.pick("0", "-1", "x", "", "1000000", "9223372036854775808", "2")
	}
	word := "FIELDS"
	if g.chance(40) {
		word = g.pick("fields", "FIELD", "")
	}
	return append(append(args, word, given), words...)
}
