package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/redistest"
)

// TestOracle says the same random commands to a node and to a real redis-server,
// and compares every reply. Commands, keys and arguments are few, so that they
// meet often, and many of them are wrong.
func TestOracle(t *testing.T) {
	forOneClient(t)
	real := dial(t, redistest.Start(t, "--rdbcompression", "no"))
	ours := dial(t, startNode(t).Addr())
	seed := rand.Uint64()
	g := &generator{rand.New(rand.NewPCG(seed, 1))}
	var said []string
	for range 4_000 {
		line := g.line()
		said = append(said, line)
		got, want := ours.do(line), real.do(line)
		if !sameReply(line, got, want) {
			last := said[max(0, len(said)-30):]
			t.Fatalf("seed %d: %s answers\n%s\nwant\n%s\nafter\n%s", seed, line, got, want, strings.Join(last, "\n"))
		}
	}
}

// sameReply compares exactly, but for the milliseconds that pass between the two.
func sameReply(line, got, want string) bool {
	if got == want {
		return true
	}
	var a, b int64
	if _, err := fmt.Sscanf(got+" "+want, "(integer) %d (integer) %d", &a, &b); err != nil {
		return false
	}
	name, _, _ := strings.Cut(line, " ")
	switch name {
	case "PTTL", "PEXPIRETIME":
		return a > 0 && b > 0 && max(a, b)-min(a, b) < 1000
	case "TTL", "EXPIRETIME":
		return a > 0 && b > 0 && max(a, b)-min(a, b) <= 1
	}
	return false
}

// generator makes random command lines.
type generator struct{ *rand.Rand }

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

// All keys are in one slot, for MSETNX.
func (g *generator) key() string { return g.pick("{t}a", "{t}b", "{t}c", "{t}d") }

func (g *generator) value() string {
	return g.pick("", "x", "hello", "1", "-1", "10", "2.5", "1e3", "007", "9223372036854775807", "-9223372036854775808",
		"99999999999999999999", `"a b\x00\xff"`, "NX", "EX")
}

func (g *generator) number() string {
	return g.pick("0", "1", "-1", "2", "5", "-3", "100", "1000", "x", "1.5", "9223372036854775807", "-9223372036854775808")
}

// seconds are long over or far off, as milliseconds too, and hardly ever the same:
// the two servers are not asked in the same millisecond.
func (g *generator) seconds() string {
	return g.pick("0", "-1", "x", "", "9223372036854775807", g.far(), g.far(), g.far())
}

func (g *generator) far() string { return strconv.Itoa(100_000 + g.IntN(1e9)) }

func (g *generator) setOption() string {
	return g.pick("NX", "XX", "GET", "KEEPTTL", "PERSIST", "nx", "what",
		"EX "+g.seconds(), "PX "+g.seconds(), "EXAT "+g.seconds(), "PXAT "+g.seconds(), "EX "+g.far(), "PX "+g.far())
}

func (g *generator) some(f func() string, most int) string {
	var out []string
	for range g.IntN(most + 1) {
		out = append(out, f())
	}
	return strings.Join(out, " ")
}

func (g *generator) pair() string { return g.key() + " " + quoted(g.value()) }

// quoted makes an argument of what may be empty.
func quoted(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

func (g *generator) line() string {
	k := g.key()
	switch g.IntN(44) {
	case 40, 41, 42:
		return "LCS " + k + " " + g.key() + " " + g.some(g.lcsOption, 3)
	case 25, 26, 27, 28, 29, 30, 31, 32, 33:
		return g.bits(k)
	case 34, 35, 36, 37, 38, 39:
		return g.keyspace(k)
	case 0, 1, 2:
		return "SET " + k + " " + quoted(g.value()) + " " + g.some(g.setOption, 2)
	case 3, 4:
		return "GET " + k
	case 5:
		return g.pick("GETSET", "SETNX", "APPEND") + " " + g.pair()
	case 6:
		return g.pick("INCR", "DECR", "STRLEN", "GETDEL", "TYPE", "PERSIST") + " " + k
	case 7:
		return g.pick("INCRBY", "DECRBY") + " " + k + " " + g.number()
	case 8:
		return "INCRBYFLOAT " + k + " " + g.pick("1", "0.1", "-2.5", "1e10", "x", "3e-5", "inf")
	case 9:
		return "GETRANGE " + k + " " + g.number() + " " + g.number()
	case 10:
		return "SETRANGE " + k + " " + g.pick("0", "1", "5", "20", "-1", "x", "536870912") + " " + quoted(g.value())
	case 11, 12:
		return g.pick("EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT") + " " + k + " " + quoted(g.seconds()) + " " +
			g.some(func() string { return g.pick("NX", "XX", "GT", "LT", "what") }, 2)
	case 13, 14:
		return g.pick("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME") + " " + k
	case 15:
		return g.pick("SETEX", "PSETEX") + " " + k + " " + quoted(g.seconds()) + " " + quoted(g.value())
	case 16, 17:
		return "GETEX " + k + " " + g.some(g.setOption, 2)
	case 18:
		return "MGET " + k + " " + g.some(g.key, 3)
	case 19:
		return g.pick("MSET", "MSETNX") + " " + g.pair() + " " + g.some(g.pair, 2)
	case 20:
		return g.pick("MSET", "MSETNX") + " " + g.pair() + " " + g.key()
	case 21, 22:
		return g.pick("DEL", "UNLINK", "EXISTS", "TOUCH") + " " + k + " " + g.some(g.key, 3)
	case 23:
		return g.pick("GET", "SET", "EXPIRE", "MGET", "GETEX", "INCRBY", "GETRANGE") + " " + g.some(g.key, 2)
	default:
		return "SUBSTR " + k + " " + g.number() + " " + g.number()
	}
}

// TestGlobOracle compares the matcher with KEYS of a real redis-server, for random
// patterns and keys made of what patterns are made of.
func TestGlobOracle(t *testing.T) {
	real := dial(t, redistest.Start(t))
	g := &generator{rand.New(rand.NewPCG(rand.Uint64(), 1))}
	text := func(most int, of ...string) (out []byte) {
		for range 1 + g.IntN(most) {
			out = append(out, g.pick(of...)...)
		}
		return out
	}
	keys := make(map[string][]byte)
	for range 200 {
		key := text(5, "a", "b", "c", "abcab", "-", "]", "[", "^", `\`, "*")
		keys[conversation.Quote(key)] = key
		real.sendArgs([]byte("SET"), key, nil)
		real.next()
	}
	for range 2000 {
		pattern := text(6, "a", "b", "c", "*", "*", "?", "[", "]", "^", "-", `\`, "[a-c]", "[^b]", "?[a-c]?[^b]")
		compiled, err := glob.Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		real.sendArgs([]byte("KEYS"), pattern)
		found := strings.Split(conversation.Sorted(real.next()), "\n")
		for shown, key := range keys {
			_, want := slices.BinarySearch(found, shown)
			if got := compiled.Match(key); got != want {
				t.Errorf("%q matches %q: %v, want %v", pattern, key, got, want)
			}
		}
	}
}

// bits is a command on bits. Some of them have too many arguments.
func (g *generator) bits(k string) string {
	at := func() string {
		return g.pick("0", "1", "7", "8", "9", "31", "63", "64", "100", "-1", "x", "4294967295", "4294967296", "#1", "")
	}
	position := func() string {
		return g.pick("0", "1", "2", "5", "9", "40", "-1", "-2", "-9", "-40", "x", "9223372036854775807", "-9223372036854775808")
	}
	unit := func() string { return g.pick("BIT", "byte", "BYTE", "bit", "bits") }
	switch g.IntN(6) {
	case 0:
		return "GETBIT " + k + " " + quoted(at())
	case 1:
		return "SETBIT " + k + " " + quoted(g.pick("0", "1", "7", "8", "9", "31", "63", "64", "100", "-1", "x", "4294967296")) + " " + g.pick("0", "1", "1", "2", "-1", "x")
	case 2:
		return "BITCOUNT " + k + " " + g.some(position, 2) + " " + g.some(unit, 1)
	case 3:
		return "BITPOS " + k + " " + g.pick("0", "1", "0", "1", "2", "x") + " " + g.some(position, 2) + " " + g.some(unit, 1)
	case 4:
		return "BITCOUNT " + k + " " + position() + " " + position() + " " + g.some(unit, 2)
	}
	return g.pick("BITFIELD", "BITFIELD_RO", "BITFIELD") + " " + k + " " + g.some(g.field, 4)
}

func (g *generator) lcsOption() string {
	return g.pick("LEN", "IDX", "idx", "WITHMATCHLEN", "MINMATCHLEN 2", "MINMATCHLEN 0", "MINMATCHLEN -1", "MINMATCHLEN x", "MINMATCHLEN", "x")
}

func (g *generator) field() string {
	typ := g.pick("u", "i", "u", "i", "x", "") + g.pick("1", "2", "3", "5", "7", "8", "9", "13", "16", "31", "32", "33", "62", "63", "64", "0", "65", "-1", "")
	at := g.pick("", "", "#") + g.pick("0", "1", "2", "5", "8", "13", "60", "100", "-1", "x")
	// Not the very smallest number: Redis saturates a signed SET of it upwards
	// (testdata/bitfield.txt).
	n := g.pick("0", "1", "-1", "2", "127", "128", "255", "256", "-128", "-129", "65535", "4294967295", "-4294967296", "4611686018427387904",
		"9223372036854775807", "-4611686018427387905", "x")
	switch g.IntN(8) {
	case 0, 1:
		return "GET " + quoted(typ) + " " + at
	case 2, 3, 4:
		return g.pick("SET ", "INCRBY ") + quoted(typ) + " " + at + " " + n
	case 5:
		return "OVERFLOW " + g.pick("SAT", "FAIL", "wrap", "what")
	case 6:
		return "OVERFLOW " + g.pick("SAT", "FAIL", "wrap") + " " + g.pick("set i8", "INCRBY u8", "incrby i64", "SET u63") + " " + at + " " + n
	}
	return g.pick("GET", "SET u8", "INCRBY u8 0", "OVERFLOW", "what", "GET u8 0 1")
}
