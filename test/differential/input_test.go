package differential

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// forecast says how much of an input to send, and how the input affects the connection. The parser
// under test makes this guess. A wrong guess hides no fault, because the answers then differ.
type forecast struct {
	comparable bool // all requests can be compared
	used       int  // the server reads no bytes behind these
	end        ending
	refusal    string
	common     int
}

func foresee(in []byte) forecast {
	var p resp.Parser
	begin := 0
	for i := 1; i <= len(in); i++ {
		switch p.Parse(in[begin:i]) {
		case resp.Malformed:
			f := forecast{comparable: true, used: i, end: refused, refusal: p.Err(), common: begin}
			if isStricter(in[begin:i], p.Err()) {
				f.end = stricter
			}
			return f
		case resp.Done:
			begin = i
			if comparable, end := foreseeRequest(p.Args()); !comparable || end != staysOpen {
				return forecast{comparable: comparable, used: i, end: end}
			}
		}
	}
	if begin < len(in) {
		return forecast{comparable: true, used: len(in), end: cutShort}
	}
	return forecast{comparable: true, used: len(in)}
}

// isStricter reports whether Dunlin refuses a request that Redis 7.0 accepts: Redis skips the two
// bytes where a CR LF should be, and accepts as many arguments as an int can count.
func isStricter(in []byte, refusal string) bool {
	switch refusal {
	case "ERR Protocol error: invalid CRLF in request":
		return true
	case "ERR Protocol error: invalid multibulk length":
		n, ok := resp.ParseInt(bytes.Trim(in, "*\r\n"))
		return ok && n > int64(resp.DefaultLimits.MaxArgs) && n <= math.MaxInt32
	}
	return false
}

// compared are the commands whose replies depend only on what was sent before. Inputs with other
// commands of Redis or Dunlin are left out, unlike those with commands that neither knows.
var compared = []string{
	"append", "bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "copy", "decr", "decrby", "del", "echo", "exists", "get", "getbit",
	"getdel", "getex", "getrange", "getset", "incr", "incrby", "lcs", "mget", "move", "mset", "msetnx", "pfadd", "pfcount", "pfmerge", "ping",
	"quit", "rename", "renamenx", "restore", "select", "set", "setbit", "setnx",
	"strlen", "substr", "touch", "type", "unlink",
}

// foreseeRequest reports whether a request can be compared, and whether it ends the connection.
func foreseeRequest(args [][]byte) (comparable bool, end ending) {
	if len(args) == 0 {
		return true, staysOpen
	}
	switch name := strings.ToLower(string(args[0])); {
	case name == "post", name == "host:":
		return true, dismissed
	case name == "quit":
		return true, quits
	case slices.Contains(compared, name):
		return inOneSlot(name, args) && keepsSketches(name, args) && !isListed(name, args[1:]), staysOpen
	}
	return command.Lookup(args[0]) == nil, staysOpen
}

// inOneSlot reports whether the keys of a command that must have one slot are in one slot. Only a
// Redis in cluster mode demands that.
func inOneSlot(name string, args [][]byte) bool {
	keys := []int(nil)
	if slices.Contains([]string{"msetnx", "bitop", "lcs", "copy", "rename", "renamenx", "pfcount", "pfmerge"}, name) {
		keys, _ = command.Lookup(args[0]).AppendKeys(nil, args)
	}
	for _, i := range keys {
		if ring.Slot(args[i]) != ring.Slot(args[keys[0]]) {
			return false
		}
	}
	return true
}

// isListed reports whether Dunlin answers a call differently from Redis 7, or at another time. The
// conversations of package node give the reasons.
func isListed(name string, args [][]byte) bool {
	optionsFrom := map[string]int{"set": 2, "getex": 1, "lcs": 2, "bitop": 0, "bitcount": 1, "bitpos": 1, "bitfield": 1, "bitfield_ro": 1,
		"copy": 2, "restore": 1}
	from, has := optionsFrom[name]
	if name == "setbit" && len(args) == 3 {
		return wantsMuch(string(args[1]))
	}
	if !has {
		return false
	}
	for i := from; i < len(args); i++ {
		arg, next := strings.ToLower(string(args[i])), ""
		if i+1 < len(args) {
			next = string(args[i+1])
		}
		switch {
		// To Redis, a word ends there.
		case strings.Contains(arg, "\x00") && (name != "restore" || i != from+1):
			return true
		// The time expires soon or overflows Redis's clock.
		case name == "restore" && i == from && (expiresSoon("px", arg) || len(arg) > 15):
			return true
		case name == "restore" && i > from+1 && arg == "absttl":
			return true
		case name == "set" && arg == "ifeq":
			return true
		case expiresSoon(arg, next):
			return true
		case name == "bitop" && slices.Contains([]string{"diff", "diff1", "andor", "one"}, arg):
			return true
		case name == "bitfield" && (wantsMuch(arg) || isVerySmall(arg)):
			return true
		}
	}
	return false
}

// wantsMuch reports whether an offset would make a string of megabytes.
func wantsMuch(offset string) bool {
	n, err := strconv.ParseUint(strings.TrimPrefix(offset, "#"), 10, 64)
	return err == nil && n > 1e6 && (n < 1<<32 || offset[0] == '#')
}

// isVerySmall reports whether Redis's arithmetic on fields overflows for a number.
func isVerySmall(arg string) bool {
	n, err := strconv.ParseInt(arg, 10, 64)
	return err == nil && n < -1<<62
}

// expiresSoon reports whether a time to live may end at different moments on the servers.
func expiresSoon(option, arg string) bool {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || n <= 0 {
		return false
	}
	switch option {
	case "ex", "px":
		return n < 1e6
	case "exat", "pxat":
		return n > 1e9 && n < 1e13
	}
	return false
}

// mutator generates inputs.
type mutator struct{ *rand.Rand }

// input returns, in most cases, one request: a valid one, one with odd arguments, or one with
// changes in bytes that matter to the protocol. Sometimes it returns no request at all.
func (m mutator) input() []byte {
	switch m.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6:
		return m.request(m.command())
	case 7, 8, 9:
		return m.request(m.odd(m.command()))
	case 10, 11, 12:
		return m.inline(m.odd(m.command()))
	case 13, 14:
		return m.line()
	case 15, 16, 17:
		return m.mutated(m.request(m.command()))
	case 18:
		return m.mutated(m.inline(m.command()))
	default:
		return m.foreign()
	}
}

// cuts returns the indexes at which the sender pauses, usually none.
func (m mutator) cuts(size int) (at []int) {
	switch {
	case size > 0 && size < 300 && m.IntN(8) == 0:
		for i := range size {
			at = append(at, i)
		}
	case size > 0 && m.IntN(4) == 0:
		at = append(at, m.IntN(size))
	}
	return at
}

func (m mutator) pick(of ...string) string { return of[m.IntN(len(of))] }

func (m mutator) key() string {
	return m.pick("a", "b", "c", "d", "e", "{t}a", "{t}b", "k:1", "k:2", "k:3")
}

func (m mutator) value() string {
	return m.pick("", "x", "1", "-1", "value", "\xff\xff\xff", "abcbdab", "bdcaba", "9223372036854775807", "\r\n", "$5\r\n", "*1\r\n", "\x00\xff", "a b", `"`, "'",
		strings.Repeat("long ", m.IntN(300)))
}

func (m mutator) command() (args []string) {
	k := m.key()
	switch m.IntN(18) {
	case 16, 17:
		return m.sketches()
	case 14, 15:
		return m.wholeKeys(m.pick("a", "{t}a", "{t}b", "k:1"), m.pick("a", "{t}a", "{t}b", "{k:1}2"))
	case 10, 11, 12, 13:
		return m.bits(m.pick(k, "{t}a", "{t}b"))
	case 9:
		return m.withOptions(k)
	case 0, 1, 2:
		return []string{"SET", k, m.value()}
	case 3, 4:
		return []string{"GET", k}
	case 5:
		return []string{m.pick("INCR", "DECR", "STRLEN", "TYPE", "GETDEL"), k}
	case 6:
		return []string{m.pick("APPEND", "GETSET", "SETNX", "INCRBY", "DECRBY"), k, m.value()}
	case 7:
		args = []string{m.pick("MGET", "DEL", "UNLINK", "EXISTS", "TOUCH")}
		for range 1 + m.IntN(6) {
			args = append(args, m.key())
		}
		return args
	case 8:
		args = []string{m.pick("MSET", "MSETNX")}
		for range 1 + m.IntN(4) {
			args = append(args, m.key(), m.value())
		}
		return args
	}
	return append([]string{m.pick("PING", "ECHO", "GETRANGE")}, m.values()...)
}

// wholeKeys returns a command that copies, renames, moves or creates a key, or selects a database. Some of the keys
// share a slot.
func (m mutator) wholeKeys(from, to string) (args []string) {
	if m.IntN(5) == 0 {
		database := m.pick("0", "1", "0", "1", "15", "16", "-1", "x", "", "2147483648")
		if m.IntN(2) == 0 {
			return []string{"SELECT", database}
		}
		return []string{"MOVE", from, database}
	}
	if m.IntN(3) > 0 {
		args = []string{m.pick("RENAME", "RENAMENX", "COPY", "COPY"), from, to}
	} else {
		args = []string{"RESTORE", from, m.pick("0", "0", "100000000", "-1", "x"), string(rdb.AppendDump(nil, []byte(m.value())))}
	}
	if args[0] == "COPY" || args[0] == "RESTORE" {
		for range m.IntN(3) {
			args = append(args, m.pick("REPLACE", "REPLACE", "replace", "DB", "IDLETIME", "FREQ", "0", "1", "256", "x"))
		}
	}
	return args
}

// withOptions returns a SET or GETEX.
func (m mutator) withOptions(k string) (args []string) {
	args = []string{"GETEX", k}
	if m.IntN(3) > 0 {
		args = []string{"SET", k, m.value()}
	}
	for range m.IntN(4) {
		switch m.IntN(3) {
		case 0:
			args = append(args, m.pick("EX", "PX", "EXAT", "PXAT"), m.pick("100000000000", "0", "-1", "x", "1", "9223372036854775807"))
		default:
			args = append(args, m.pick("NX", "XX", "GET", "KEEPTTL", "PERSIST", "nx", "get"))
		}
	}
	return args
}

// bits returns a command on bits, or LCS, mostly a right one.
func (m mutator) bits(k string) (args []string) {
	number := func() string {
		return m.pick("0", "0", "1", "2", "7", "8", "9", "31", "64", "100", "-1", "-1", "-2", "-9", "-100",
			m.pick("x", "", "4294967295", "4294967296", "9223372036854775807", "#1"))
	}
	bit := m.pick("0", "1", "0", "1", "0", "1", "2", "x")
	ends := []string{number(), number(), m.pick("BIT", "BYTE", "bit", "what")}[:m.IntN(4)]
	switch m.IntN(9) {
	case 0:
		return []string{"GETBIT", k, number()}
	case 1:
		return []string{"SETBIT", k, number(), bit}
	case 2, 3:
		return append([]string{"BITCOUNT", k}, ends...)
	case 4, 5:
		return append([]string{"BITPOS", k, bit}, ends...)
	case 6:
		args = []string{"BITOP", m.pick("AND", "or", "XOR", "NOT", "AND", "what"), m.pick("{t}a", "{t}b"), "{t}a", "{t}b", "{t}c"}
		return args[:3+m.IntN(4)]
	case 7:
		options := m.pick("", "LEN", "IDX", "IDX WITHMATCHLEN", "idx MINMATCHLEN 2", "LEN IDX", "MINMATCHLEN", "MINMATCHLEN x", "what")
		return append([]string{"LCS", "{t}a", "{t}b"}, strings.Fields(options)...)
	}
	args = []string{m.pick("BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO"), k}
	for range 1 + m.IntN(4) {
		args = append(args, m.field()...)
	}
	return args
}

// field returns an operation of BITFIELD.
func (m mutator) field() []string {
	wrong := m.IntN(40)
	typ := m.pick("u", "i") + m.pick("1", "3", "8", "13", "32", "62", "63")
	at := m.pick("", "#") + m.pick("0", "1", "5", "8", "13", "60", "100")
	n := m.pick("0", "1", "-1", "127", "128", "256", "-129", "65535", "-4294967296", "9223372036854775807", "-9223372036854775808")
	switch wrong {
	case 0:
		typ = m.pick("i64", "u64", "i65", "i0", "u", "x8", "")
	case 1:
		at = m.pick("-1", "x", "#", "4294967295", "4294967296")
	case 2:
		n = m.pick("x", "", "9223372036854775808")
	}
	switch m.IntN(6) {
	case 0, 1:
		return []string{"GET", typ, at}
	case 2:
		return []string{"OVERFLOW", m.pick("SAT", "SAT", "FAIL", "FAIL", "wrap", "WRAP", "wrap", "what")}
	}
	return []string{m.pick("SET", "INCRBY", "incrby"), typ, at, n}
}

func (m mutator) values() (all []string) {
	for range m.IntN(4) {
		all = append(all, m.value())
	}
	return all
}

// odd changes the arguments, but not their encoding.
func (m mutator) odd(args []string) []string {
	i := m.IntN(len(args))
	switch m.IntN(8) {
	case 0:
		return args[:i]
	case 1:
		return append(args, m.values()...)
	case 2:
		args[i] = m.value()
	case 3:
		args[i] = string(m.mutatedOnce([]byte(args[i])))
	case 4:
		args[0] = m.pick("NOSUCH", "nosuch\r\n", "", "\x00", "GE\x00T", "get ", " get", "gét", strings.Repeat("x", m.IntN(200)))
	case 5:
		args[0] = strings.ToLower(args[0])
	case 6:
		args[i] = string(m.noise(m.IntN(40)))
	case 7:
		args = append(args, string(m.noise(m.IntN(200))), string(m.noise(m.IntN(200))))
	}
	return args
}

func (m mutator) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Uint32())
	}
	return b
}

func (m mutator) request(args []string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func (m mutator) inline(args []string) (b []byte) {
	for _, a := range args {
		switch m.IntN(4) {
		case 0:
			b = strconv.AppendQuote(b, a)
		case 1:
			b = append(append(append(b, '\''), a...), '\'')
		default:
			b = append(b, a...)
		}
		b = append(b, m.pick(" ", " ", " ", "  ", "\t", "")...)
	}
	return append(b, m.pick("\r\n", "\r\n", "\n")...)
}

// line returns a line made of everything that matters to the splitting into words.
func (m mutator) line() (b []byte) {
	b = append(b, m.pick("", "ECHO", "GET", "PING", "SET a")...)
	for range m.IntN(12) {
		b = append(b, m.pick(" ", " ", "\t", "\v", "\r", "a", "b", "\xff", `"`, `"`, `'`, `'`, `\`, `\x4`, `\x41`, `\n`, `\'`, `\"`, "$", "*", "\x00")...)
	}
	return append(b, m.pick("\r\n", "\n")...)
}

func (m mutator) mutated(b []byte) []byte {
	for range 1 + m.IntN(3) {
		b = m.mutatedOnce(b)
	}
	return b
}

// numbers are values near limits and overflows.
var numbers = []string{
	"0", "-0", "00", "+1", "1", "2", "3", "-1", "-2", "10", "11", "9", "", " ", " 1", "1 ", "1.0", "0x1", "1e1", "abc",
	"1024", "16384", "16385", "65536", "1048576", "1048577", "536870911", "536870912", "536870913",
	"2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296", "4294967299",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616",
	"99999999999999999999999999", "00000000000000000000000000000001",
}

func (m mutator) mutatedOnce(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	b = bytes.Clone(b)
	i := m.IntN(len(b))
	switch m.IntN(9) {
	case 0, 1, 2:
		return m.otherNumber(b)
	case 3: // not whole
		return b[:i]
	case 4:
		b[i] = byte(m.Uint32())
	case 5:
		return bytes.Replace(b, []byte("\r\n"), []byte(m.pick("\n", "\r", "", "\n\r", "\r\r\n", "\r\n\r\n", "\x00\r\n", "\r\x00")), 1+m.IntN(3))
	case 6:
		if at := bytes.IndexAny(b[i:], "$*"); at >= 0 {
			b[i+at] = m.pick("$", "*", "+", "-", ":", "%", "~", ">", "(", "_", "\r", "\n", "\x00", "G")[0]
		}
	case 7: // a piece is gone, or there twice
		j := i + m.IntN(min(len(b)-i, 8)+1)
		if m.IntN(2) == 0 {
			return append(b[:i], b[j:]...)
		}
		return append(b[:j:j], b[i:]...)
	case 8:
		return append(bytes.Repeat([]byte(m.pick("*1\r\n", "*2\r\n", "*0\r\n", "*-1\r\n", "\r\n", "\n", "$1\r\n", "%1\r\n")), 1+m.IntN(40)), b...)
	}
	return b
}

// otherNumber replaces the number of one header.
func (m mutator) otherNumber(b []byte) []byte {
	var headers []int
	for i, c := range b {
		if c == '*' || c == '$' {
			headers = append(headers, i)
		}
	}
	if len(headers) == 0 {
		return b
	}
	at := headers[m.IntN(len(headers))] + 1
	end := at
	for end < len(b) && b[end] != '\r' {
		end++
	}
	return append(append(b[:at:at], numbers[m.IntN(len(numbers))]...), b[end:]...)
}

// foreign returns input for another kind of server, or for none.
func (m mutator) foreign() []byte {
	switch m.IntN(8) {
	case 0:
		return []byte(m.pick("POST / HTTP/1.1\r\n", "post /\n", "Host: localhost\r\n", "host:\r\n", "QUIT\r\n", "*1\r\n$4\r\nquit\r\n"))
	case 1:
		return []byte("GET / HTTP/1.1\r\nAccept: */*\r\nHost: localhost:6379\r\n\r\n")
	case 2:
		return []byte("get key\r\nset key 0 0 5\r\nvalue\r\nversion\r\n") // memcached
	case 3: // a TLS handshake
		return append([]byte("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03"), m.noise(160)...)
	case 4:
		if m.IntN(200) == 0 { // a line without end
			return bytes.Repeat([]byte(m.pick("a", "*1", "$", "*1\r\n$1", " ", "\x00")), 64<<10+1)
		}
		return bytes.Repeat([]byte("*1\r\n"), 1+m.IntN(100))
	case 5:
		return append(m.noise(m.IntN(100)), '\n')
	default:
		return []byte(m.pick("\r\n", "\n", "*0\r\n", "*-1\r\n", "*-9\r\n", "   \r\n", "\t\n", "*1\r\n$0\r\n\r\n"))
	}
}
