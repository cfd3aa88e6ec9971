package differential

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// reply is one reply, taken apart.
type reply struct {
	kind  byte // as in RESP, but that a null is always '_'
	text  string
	items []reply
}

// decode takes the first reply off b.
func decode(b []byte) (r reply, rest []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	r.kind, r.text = line[0], string(line[1:])
	switch r.kind {
	case '$', '=', '*', '~', '%', '>':
		n, _ := strconv.Atoi(r.text)
		if r.text = ""; n < 0 {
			return reply{kind: '_'}, rest
		}
		if r.kind == '$' || r.kind == '=' {
			r.text = string(rest[:n])
			return r, rest[n+2:]
		}
		if r.kind == '%' {
			n *= 2
		}
		for range n {
			var item reply
			item, rest = decode(rest)
			r.items = append(r.items, item)
		}
	}
	return r, rest
}

// String writes a reply down so that different ones look different.
func (r reply) String() string {
	if r.items == nil {
		return string(r.kind) + strconv.Quote(r.text)
	}
	return string(r.kind) + "[" + strings.Join(r.each(1), " ") + "]"
}

// each returns the items in groups of size.
func (r reply) each(size int) (all []string) {
	for group := range slices.Chunk(r.items, size) {
		text := ""
		for _, item := range group {
			text += item.String()
		}
		all = append(all, text)
	}
	return all
}

// sorted writes a reply down whose items, in groups of size, may be in any order.
func (r reply) sorted(size int) string {
	all := r.each(size)
	slices.Sort(all)
	return string(r.kind) + "[" + strings.Join(all, " ") + "]"
}

// rewriteScores gives equal scores equal texts: ZSCAN writes those of big sorted sets in another way,
// and Redis keeps a set big that has become small. -0 becomes 0: see listed.
func (r reply) rewriteScores() {
	for i := 1; i < len(r.items); i += 2 {
		if score, err := strconv.ParseFloat(r.items[i].text, 64); err == nil {
			if score == 0 {
				score = 0 // not -0
			}
			r.items[i].text = strconv.FormatFloat(score, 'g', -1, 64)
		}
	}
}

// sameReply reports whether two replies to a command say the same: lists without an order in any
// order, and random choices by their number. mixed says that any key may hold a set, or a sorted set
// whose scores are no places: they all lie in one corner of the map, and equally far away.
func sameReply(args []string, got, want reply, mixed bool) bool {
	if got.kind == '-' || want.kind == '-' || got.kind == '+' || want.kind == '+' {
		return got.kind == want.kind && got.text == want.text
	}
	has := func(word string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, word) })
	}
	inAnyOrder := func(size int) bool { return got.sorted(size) == want.sorted(size) }
	asMany := got.kind == want.kind && len(got.items) == len(want.items)
	switch strings.ToUpper(args[0]) {
	case "SMEMBERS", "SINTER", "SUNION", "SDIFF", "HKEYS", "HVALS", "KEYS":
		return inAnyOrder(1)
	case "HGETALL":
		return inAnyOrder(2)
	case "HSCAN", "SSCAN", "ZSCAN":
		return sameScan(args, got, want, has("NOVALUES"))
	case "SPOP":
		if slices.Contains(args, popsAll) {
			return inAnyOrder(1)
		}
		return asMany
	case "HRANDFIELD", "SRANDMEMBER", "ZRANDMEMBER", "RANDOMKEY":
		return asMany
	case "GEOSEARCH", "GEORADIUS", "GEORADIUS_RO", "GEORADIUSBYMEMBER", "GEORADIUSBYMEMBER_RO":
		if has("ANY") || mixed && has("COUNT") && asMany {
			return asMany
		}
		if mixed || !has("ASC") && !has("DESC") && !has("COUNT") {
			return inAnyOrder(1)
		}
	case "SORT", "SORT_RO":
		if (mixed || strings.HasSuffix(args[1], "qset")) && hasNoOrder(args) { // nor has a set
			return has("LIMIT") && asMany || inAnyOrder(1)
		}
	case "TTL", "PTTL", "HTTL", "HPTTL", "EXPIRETIME", "PEXPIRETIME", "HEXPIRETIME", "HPEXPIRETIME":
		return closeTimes(got, want, strings.Contains(strings.ToUpper(args[0]), "P"))
	case "MEMORY":
		return got.kind == want.kind
	case "XPENDING":
		return got.idleless().String() == want.idleless().String()
	case "XINFO":
		return got.timeless().idleless().String() == want.timeless().idleless().String()
	}
	return got.String() == want.String()
}

// hasNoOrder reports whether a SORT names no weights, but BY something, or compares weights as texts:
// nothing decides between elements whose texts are equal, or missing.
func hasNoOrder(args []string) bool {
	by, alpha := false, false
	for i, arg := range args {
		alpha = alpha || strings.EqualFold(arg, "ALPHA")
		if i+1 < len(args) && strings.EqualFold(arg, "BY") {
			if by = true; !strings.Contains(args[i+1], "*") {
				return true
			}
		}
	}
	return by && alpha
}

// sameScan compares calls that have the whole collection: ZSCAN of a big one needs several.
func sameScan(args []string, got, want reply, single bool) bool {
	if len(got.items) != 2 || len(want.items) != 2 {
		return got.String() == want.String()
	}
	if args[2] != "0" { // somewhere in between
		return true
	}
	size := 2
	if single || strings.EqualFold(args[0], "SSCAN") {
		size = 1
	}
	if strings.EqualFold(args[0], "ZSCAN") {
		got.items[1].rewriteScores()
		want.items[1].rewriteScores()
	}
	if got.items[0].text == "0" && want.items[0].text == "0" {
		return got.items[1].sorted(size) == want.items[1].sorted(size)
	}
	all := want.items[1].each(size)
	for _, one := range got.items[1].each(size) {
		if want.items[0].text == "0" && !slices.Contains(all, one) {
			return false
		}
	}
	return true
}

// closeTimes compares times in which the moment of the answer shows.
func closeTimes(got, want reply, millis bool) bool {
	if len(got.items) != len(want.items) || got.kind != want.kind {
		return false
	}
	for i := range got.items {
		if !closeTimes(got.items[i], want.items[i], millis) {
			return false
		}
	}
	a, _ := strconv.ParseInt(got.text, 10, 64)
	b, _ := strconv.ParseInt(want.text, 10, 64)
	within := int64(20)
	if millis {
		within *= 1000
	}
	return got.text == want.text || a > 0 && b > 0 && max(a, b)-min(a, b) <= within
}
