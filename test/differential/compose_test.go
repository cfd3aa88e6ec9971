package differential

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/ring"
)

// composer makes random commands of a few keys, which all are in one slot. Most commands make
// sense. Equal seeds make equal commands.
type composer struct {
	*rand.Rand
	version int    // of the real server: it is not asked what it does not know
	tag     string // begins the name of every key
	mixed   bool   // a key may hold a value of any type
	grows   bool   // collections become big
	begun   bool
	times   int // of expiry, so far
	stamp   int // of the last entry of a stream: two in each millisecond
	start   time.Time
	due     [][]string // what comes next in any case
}

func (g *composer) pick(words ...string) string { return words[g.IntN(len(words))] }

// chance reports true once in n times.
func (g *composer) chance(n int) bool { return g.IntN(n) == 0 }

// keyOf returns a key that holds mostly values of one type: h1 is a hash.
func (g *composer) keyOf(kind string) string {
	if g.mixed && g.chance(12) {
		kind = g.pick("h", "l", "s", "z", "g", "q", "k", "x")
	}
	if g.chance(60) {
		return g.tag + "k1" // a string
	}
	return g.tag + kind + g.pick("1", "2", "3")
}

func (g *composer) element() string {
	switch n := g.IntN(400); {
	case n == 0:
		return strings.Repeat("long", g.IntN(16_000)) // less than a member may have
	case n < 8:
		return strings.Repeat(g.pick("x", "yz", "0"), g.IntN(3000))
	case n < 20:
		return g.pick("", "-0", "007", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5",
			"+1", "\r\n",
			"\xff\x00", "1e3", "inf", "nan", g.old(" 1"))
	case n < 140:
		return "element:" + strconv.Itoa(g.IntN(20+400*g.IntN(2)))
	}
	return strconv.Itoa(g.IntN(40+400*g.IntN(2)) - 5)
}

// old returns a number that Redis 8 reads in another way than those before, if the server is one of
// those.
func (g *composer) old(number string) string {
	if g.version >= 800 {
		return "x"
	}
	return number
}

// some appends a few results of next, and many of them while collections become big.
func (g *composer) some(args []string, next func() []string) []string {
	n := 1 + g.IntN(4)
	if g.grows && g.chance(5) {
		n = g.IntN(g.oneOf(40, 300, 900))
	}
	for range n {
		args = append(args, next()...)
	}
	return args
}

// value is what no limit of members bounds.
func (g *composer) value() string {
	if g.chance(800) {
		return strings.Repeat("longer", 10_000+g.IntN(60_000))
	}
	return g.element()
}

func (g *composer) oneOf(n ...int) int { return n[g.IntN(len(n))] }

func (g *composer) elements(args ...string) []string {
	return g.some(args, func() []string { return []string{g.element()} })
}

// index is a position or a rank, seldom none at all.
func (g *composer) index() string {
	if g.chance(25) {
		return g.pick("", "x", "1.0", " 1", "-", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
			"-9223372036854775807", "99999999999999999999999", "0", "-0", "01")
	}
	if g.chance(4) {
		return strconv.Itoa(g.IntN(1000) - 500)
	}
	return strconv.Itoa(g.IntN(12) - 5)
}

// count is a number of elements that a reply may have. It is never so big that the reply is.
func (g *composer) count() string {
	if g.chance(20) {
		return g.pick("x", "", "1.5", "-0", "01", "-9223372036854775808", "9223372036854775807", "4611686018427387904",
			"9223372036854775808")
	}
	return g.pick("0", "1", "1", "2", "2", "5", "-1", "-3", "-50", "1000")
}

// number is what INCRBYFLOAT and its kin add.
func (g *composer) number() string {
	if g.chance(8) {
		return g.pick("x", "", " 1", "1 ", "inf", "-inf", "nan", "1e400", "0x10", "+1", "99999999999999999999",
			"9223372036854775807", "-9223372036854775808", "1.7e308")
	}
	return g.pick("0", "1", "-1", "10", "3.25", "1e3", "-5", "0.1", "7", "-2.5")
}

// seconds returns a time to live that is far from all others: which one is greater must not depend
// on the moment at which a server executes the command.
func (g *composer) seconds() int {
	g.times++
	return 100_000 + 1000*(g.times*7919%100_003)
}

// expiry returns an option of time to live and its argument, such as PXAT 1790000000000.
func (g *composer) expiry() []string {
	if g.chance(12) {
		return []string{g.pick("EX", "px", "EXAT", "PXAT"), g.pick("0", "-1", "x", "",
			"9223372036854775807")}[:g.oneOf(2, 2, 2, 1)]
	}
	unit := g.pick("EX", "PX", "EXAT", "PXAT", "ex")
	return []string{unit, g.moment(unit)}
}

// moment returns a time of expiry in the unit of an option or of a command's name.
func (g *composer) moment(unit string) string {
	n := int64(g.seconds())
	unit = strings.ToUpper(unit)
	if strings.HasSuffix(unit, "AT") {
		n += g.start.Unix()
	}
	if strings.HasPrefix(strings.TrimPrefix(unit, "H"), "P") {
		n *= 1000
	}
	return strconv.FormatInt(n, 10)
}

// next returns a command. Now and then it is a wrong one.
func (g *composer) next(command func(*composer) []string) []string {
	if len(g.due) > 0 {
		args := g.due[0]
		g.due = g.due[1:]
		return args
	}
	if g.chance(60) {
		g.grows = !g.grows
	}
	args := command(g)
	if g.chance(14) && !strings.HasSuffix(strings.Join(args[:min(2, len(args))], " "), "zlex") { // whose scores are all 0
		if args = g.spoilt(args); !g.isComparable(args) {
			return g.next(command)
		}
	}
	g.settle(args)
	return args
}

// settle has a DEL follow a SPOP: what is left of a set is a matter of chance.
func (g *composer) settle(args []string) {
	if strings.EqualFold(args[0], "SPOP") && len(args) > 1 && !slices.Contains(args, popsAll) {
		g.due = append(g.due, []string{"DEL", args[1]})
	}
}

// popsAll is a count for SPOP that no set of these tests exceeds.
const popsAll = "1000000"

// spoilt changes the arguments of a command.
func (g *composer) spoilt(args []string) []string {
	args = slices.Clone(args)
	words := []string{"COUNT", "x", "", "WITHSCORES", "LIMIT", "NX", "FIELDS", "get", "STORE", "MATCH", "BY"}
	if !strings.Contains(strings.ToUpper(args[0]), "EX") { // a number could be a time to live that ends soon
		words = append(words, "0", "-1", "1", "2", "9223372036854775807", "-9223372036854775808",
			"18446744073709551616",
			"nan", "inf", "-inf", "1.0", g.old("1e400"), g.old("0x1"))
	}
	i := g.IntN(len(args))
	switch word := g.pick(words...); {
	case g.chance(4):
		return args[:1+g.IntN(len(args))]
	case g.chance(4):
		return append(args, word)
	case g.chance(4):
		return slices.Insert(args, i+1, word)
	case i > 0:
		args[i] = word
	default:
		args[0] = strings.ToLower(args[0])
	}
	return args
}

// isComparable reports whether a command has not become one for which the servers' answers differ
// by their nature: keys, or patterns of SORT, in several slots, which only a cluster refuses, indexes
// that Redis 8 cuts to 32 bits, and consumers that a group does not have (xgroup).
func (g *composer) isComparable(args []string) bool {
	words := byteSlices(args)
	row := command.Lookup(words[0])
	if row == nil {
		return true
	}
	keys, _ := row.AppendKeys(nil, words)
	for _, i := range keys {
		if ring.Slot(words[i]) != ring.Slot(words[keys[0]]) {
			return false
		}
	}
	switch strings.ToUpper(args[0]) {
	case "SORT", "SORT_RO":
		for i, word := range args[:len(args)-1] {
			if next := args[i+1]; strings.EqualFold(word, "GET") && next != "#" && !strings.HasPrefix(next, g.tag) {
				return false
			}
		}
		return len(args) < 2 || strings.HasPrefix(args[1], g.tag)
	case "XREADGROUP", "XCLAIM", "XAUTOCLAIM":
		return len(args) < 4 || slices.Contains(consumers, args[3])
	case "LSET":
		return len(args) < 3 || len(args[2]) < 10
	}
	return true
}

func byteSlices(words []string) (out [][]byte) {
	for _, word := range words {
		out = append(out, []byte(word))
	}
	return out
}
