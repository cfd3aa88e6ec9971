package resp

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requestCases are streams of requests. The oracle says what each must give, except for the texts
// in TestParserErrors.
var requestCases = []string{
	"",
	"*1\r\n$4\r\nPING\r\n",
	"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n",
	"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n*1\r\n$4\r\nPI",
	"*10\r\n" + strings.Repeat("$1\r\na\r\n", 10) + "*1\r\n$1\r\nb\r\n",
	"*9\r\n" + strings.Repeat("$1\r\na\r\n", 9) + "*2\r\n$1\r\nb\r\n$1\r\nc\r\n",
	"*130\r\n" + strings.Repeat("$12\r\nabcdefghijkl\r\n", 130) + "*1\r\n$1\r\nb\r\n",
	"*2\r\n$4\r\nECHO\r\n$100\r\n" + strings.Repeat("x", 100) + "\r\n",
	"*2\r\n$4\r\nECHO\r\n$9\r\n\r\n\x00$*\r\n\r\n\r\n",
	"*0\r\n*-1\r\n*-9\r\n\r\n\n  \t\r\n*1\r\n$4\r\nPING\r\n",
	"PING\r\nPING\nPING\r\r\n  ECHO  a\tb\vc \x0bd \r\n",
	"ECHO \"a\\x41\\n\\r\\t\\b\\a\\q\\\\\\\"\" 'it''s'\r\n",
	"ECHO \"\\xZZ\\x4\" 'it\\'s \\n' mid\"dle\" mid'dle' \"\" ''\r\n",
	"ECHO \"a b\"\vc 'd\"e' \"f'g\"\r\n",
	"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
	"\xff\xfe\r\n",
	strings.Repeat("ECHO \"quoted words\" 'again and again'\r\n", 3),
	"ECHO " + strings.Repeat("'a b' ", 400) + "\r\nPING\r\n",
	"PI\x00NG\r\nPING\r\n",
	"*1\x00\r\n$4\r\nPING\r\n",
}

// brokenRequests are streams that end in an error, with the error that redis-server 7
// gives.
var brokenRequests = []struct{ in, want string }{
	{"*\r\n", "invalid multibulk length"},
	{"*01\r\n", "invalid multibulk length"},
	{"*+1\r\n", "invalid multibulk length"},
	{"*-0\r\n", "invalid multibulk length"},
	{"*1 \r\n", "invalid multibulk length"},
	{"*blabla\r\n", "invalid multibulk length"},
	{"*1\n$4\nPING\r\n\n", "invalid multibulk length"},
	{"*3000000000\r\n", "invalid multibulk length"},
	{"*99999999999999999999\r\n", "invalid multibulk length"},
	{"*9223372036854775808\r\n", "invalid multibulk length"},
	{"*1\r\nfoo\r\n", "expected '$', got 'f'"},
	{"*1\r\n\r\n", "expected '$', got ' '"},
	{"*1\r\n\n$4\r\n", "expected '$', got ' '"},
	{"*1\r\n\xff\r\n", "expected '$', got '\xff'"},
	{"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "expected '$', got 'f'"},
	{"*2\r\n$3\r\nGET\r\n*1\r\n", "expected '$', got '*'"},
	{"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$-10\r\n", "invalid bulk length"},
	{"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$2000000000\r\n", "invalid bulk length"},
	{"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$blabla\r\n", "invalid bulk length"},
	{"*1\r\n$536870913\r\n", "invalid bulk length"},
	{"*1\r\n$04\r\nPING\r\n", "invalid bulk length"},
	{"*1\r\n$-1\r\n", "invalid bulk length"},
	{"*1\r\n$\r\n", "invalid bulk length"},
	{"PING\r\nECHO \"a\r\n", "unbalanced quotes in request"},
	{"ECHO \"a\"b\r\n", "unbalanced quotes in request"},
	{"ECHO \"a\\\r\n", "unbalanced quotes in request"},
	{"ECHO 'a\r\n", "unbalanced quotes in request"},
	{"ECHO 'a'b\r\n", "unbalanced quotes in request"},
	{"\x00" + strings.Repeat("junk\r\n", 11000), "too big inline request"},
	{"PING" + strings.Repeat("x", 1<<16), "too big inline request"},
	{"*\x00" + strings.Repeat("junk\r\n", 11000), "too big mbulk count string"},
	{"*" + strings.Repeat("1", 1<<16), "too big mbulk count string"},
	{"*1\r\n$\x00" + strings.Repeat("junk\r\n", 11000), "too big bulk count string"},
	{"*1\r\n" + strings.Repeat("x", 1<<16+1), "too big bulk count string"},
}

// strictRequests are those that Redis 7 accepts and Dunlin refuses; see the package comment.
var strictRequests = []struct{ in, want string }{
	{"*1\rX$4\r\nPING\r\n", "invalid CRLF in request"},
	{"*1\r\n$4\rXPING\r\n", "invalid CRLF in request"},
	{"*1\r\n$4\r\nPINGxx", "invalid CRLF in request"},
	{"*1\r\n$4\r\nPING\rx", "invalid CRLF in request"},
	{"*12\r\n$4\r\nPINGS\n", "invalid CRLF in request"},
	{"*1048577\r\n", "invalid multibulk length"},
}

func TestParserSplits(t *testing.T) {
	for _, in := range requestCases {
		checkRequests(t, []byte(in), DefaultLimits)
	}
	for _, c := range slices.Concat(brokenRequests, strictRequests) {
		if len(c.in) < 1000 {
			checkRequests(t, []byte(c.in), DefaultLimits)
			checkRequests(t, []byte("*1\r\n$4\r\nPING\r\n"+c.in), DefaultLimits)
		}
	}
}

func TestParserErrors(t *testing.T) {
	fails := func(in string, l Limits, want string) {
		t.Helper()
		for _, split := range splittings(7) {
			if split.name == "one byte" && len(in) > 1000 {
				continue // too slow: deliver copies everything for each piece
			}
			var p Parser
			p.SetLimits(l)
			got := parseStream(&p, []byte(in), split, func(int, []byte, int) {})
			if len(got) == 0 || got[len(got)-1].err != "ERR Protocol error: "+want {
				t.Errorf("%s of %.60q: got %v, want %q", split.name, in, got, want)
				continue
			}
			if p.Parse([]byte("*1\r\n$4\r\nPING\r\n")) != Malformed || len(p.Args()) != 0 {
				t.Errorf("%.60q: the parser went on after an error", in)
			}
		}
	}
	for _, c := range slices.Concat(brokenRequests, strictRequests) {
		fails(c.in, DefaultLimits, c.want)
	}
	unauth := UnauthenticatedLimits
	fails("*11\r\n", unauth, "unauthenticated multibulk length")
	fails("*2\r\n$4\r\nAUTH\r\n$16385\r\n", unauth, "unauthenticated bulk length")
	fails("*2147483648\r\n", unauth, "invalid multibulk length")
	fails("*2\r\n$4\r\nAUTH\r\n$536870913\r\n", unauth, "invalid bulk length")
	fails("*2\r\n$4\r\nAUTH\r\n$-1\r\n", unauth, "invalid bulk length")

	fails("*4\r\n", Limits{MaxArgs: 3}, "invalid multibulk length")
	fails("*1\r\n$4\r\n", Limits{MaxBulk: 3}, "invalid bulk length")
	fails("*2\r\n$4\r\nECHO\r\n$2000\r\n", Limits{MaxRequest: 1000}, "too big request")
	fails("*2\r\n$4\r\nECHO\r\n$4\r\nECHO\r\n", Limits{MaxRequest: 23}, "too big request")
	fails("12345678901\r\n", Limits{MaxInline: 10}, "too big inline request")
}

// TestParserLimitsAreInclusive checks that a size exactly at a limit passes.
func TestParserLimitsAreInclusive(t *testing.T) {
	passes := func(in string, l Limits) {
		t.Helper()
		var p Parser
		p.SetLimits(l)
		if got := p.Parse([]byte(in)); got != Done || p.Len() != len(in) {
			t.Errorf("%.60q: got %v of %d bytes %q", in, got, p.Len(), p.Err())
		}
	}
	passes("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", Limits{MaxArgs: 3, MaxBulk: 1})
	passes("*2\r\n$4\r\nECHO\r\n$4\r\nECHO\r\n", Limits{MaxRequest: 24})
	passes("1234567890\r\n", Limits{MaxInline: 11})
	passes("1234567890\n", Limits{MaxInline: 10})
	passes("*10\r\n"+strings.Repeat("$1\r\na\r\n", 10), UnauthenticatedLimits)
	passes("*1\r\n$16384\r\n"+strings.Repeat("a", 16384)+"\r\n", UnauthenticatedLimits)
}

// TestParserLimitsChange checks the moment of AUTH: a request that began under the old limits
// continues under the new ones.
func TestParserLimitsChange(t *testing.T) {
	var p Parser
	p.SetLimits(UnauthenticatedLimits)
	in := []byte("*1\r\n$4\r\nAUTH\r\n*11\r\n" + strings.Repeat("$1\r\na\r\n", 11))
	if got := p.Parse(in); got != Done {
		t.Fatalf("before AUTH: got %v %q", got, p.Err())
	}
	in = in[p.Len():]
	p.SetLimits(DefaultLimits)
	if got := p.Parse(in); got != Done || len(p.Args()) != 11 {
		t.Fatalf("after AUTH: got %v %q", got, p.Err())
	}

	p.Reset()
	long := []byte(strings.Repeat("x", 200))
	if got := p.Parse(long); got != NeedMore {
		t.Fatalf("a begun line: got %v", got)
	}
	p.SetLimits(Limits{MaxInline: 100})
	if got := p.Parse(append(long, 'x')); got != Malformed {
		t.Fatalf("a line longer than the new limit: got %v", got)
	}
}

func TestParserNeed(t *testing.T) {
	needs := func(in string, want int) {
		t.Helper()
		var p Parser
		if got := p.Parse([]byte(in)); got != NeedMore || p.Need() != want {
			t.Errorf("%q: got %v, need %d, want need %d", in, got, p.Need(), want)
		}
	}
	needs("", 1)
	needs("*", 2)
	needs("*1\r", 4)
	needs("PING", 5)
	needs("*2\r\n$4\r\nECHO\r\n$20000000\r\nabc", 25+20000000+2)
	needs("*1\r\n$4\r\nPING", 14)
}

// TestParserBelievesNoNumber checks that declared numbers reserve no memory.
func TestParserBelievesNoNumber(t *testing.T) {
	in := []byte("*1048576\r\n$536870912\r\nabc")
	var p Parser
	if got := p.Parse(in); got != NeedMore {
		t.Fatalf("got %v %q", got, p.Err())
	}
	if cap(p.args)+cap(p.spans)+cap(p.words) > 64 {
		t.Errorf("%d views, %d spans, %d bytes reserved", cap(p.args), cap(p.spans), cap(p.words))
	}
}

// TestParserNeverLooksBack overwrites the finished bytes before every call. If the parser read them
// again, it would see another request. 200,000 arguments in small pieces.
func TestParserNeverLooksBack(t *testing.T) {
	const count, piece = 200_000, 1000
	in := fmt.Appendf(nil, "*%d\r\n", count)
	for i := range count {
		in = AppendBulk(in, fmt.Appendf(nil, "%d", i))
	}
	var p Parser
	poisoned := 0
	for end := piece; end < len(in); end += piece {
		if got := p.Parse(in[:end:end]); got != NeedMore {
			t.Fatalf("after %d bytes: got %v %q", end, got, p.Err())
		}
		poison(in[poisoned:p.pos])
		poisoned = p.pos
		if end-p.pos > 32 {
			t.Fatalf("after %d bytes only %d are finished", end, p.pos)
		}
	}
	if got := p.Parse(in); got != Done || len(p.Args()) != count || p.Len() != len(in) {
		t.Fatalf("got %v, %d arguments, %d bytes", got, len(p.Args()), p.Len())
	}
}

// TestParserSearchesLinesOnce does the same for a long line: its searched part is
// filled with line ends.
func TestParserSearchesLinesOnce(t *testing.T) {
	line := bytes.Repeat([]byte("x"), 60_000)
	var p Parser
	for end := 1; end <= len(line); end += 7 {
		if got := p.Parse(line[:end]); got != NeedMore {
			t.Fatalf("after %d bytes: got %v", end, got)
		}
		for i := max(p.seen-7, 1); i < p.seen; i++ {
			line[i] = '\n'
		}
	}
}

// TestParserViews checks that arguments lie in the buffer, and that a caller who
// appends to one does not overwrite the next.
func TestParserViews(t *testing.T) {
	for _, in := range []string{
		"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
		"*11\r\n$3\r\nGET\r\n" + strings.Repeat("$1\r\nk\r\n", 10),
		"GET k 'a b' 'c d'\r\n",
	} {
		var p Parser
		buf := []byte(in)
		if got := p.Parse(buf); got != Done {
			t.Fatalf("%q: got %v", in, got)
		}
		args := p.Args()
		_ = append(args[0], "overwritten"...)
		if string(buf) != in {
			t.Errorf("an append to an argument changed the buffer to %q", buf)
		}
		if last := args[len(args)-1]; cap(last) != len(last) {
			t.Errorf("%q: the last argument has room behind it", in)
		}
		buf[bytes.IndexByte(buf, 'k')] = 'K'
		if string(args[1]) != "K" {
			t.Errorf("%q: the second argument is no view of the buffer", in)
		}
	}
}

// TestParserAbandoned checks that Reset drops a long request whose end never arrives.
func TestParserAbandoned(t *testing.T) {
	var p Parser
	if got := p.Parse([]byte("*1000\r\n" + strings.Repeat("$1\r\na\r\n", 999))); got != NeedMore {
		t.Fatalf("got %v", got)
	}
	checkIdle(t, &p)
	if got := p.Parse([]byte("*1\r\n$4\r\nPING\r\n")); got != Done || string(p.Args()[0]) != "PING" {
		t.Fatalf("after Reset: got %v %q", got, p.Args())
	}
}

// TestParserDropsViews checks that a shorter request leaves no view of the longer one
// before it.
func TestParserDropsViews(t *testing.T) {
	var p Parser
	for _, in := range []string{
		"*12\r\n" + strings.Repeat("$1\r\na\r\n", 12),
		"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
		"*1\r\n$1\r\na\r\n",
	} {
		if got := p.Parse([]byte(in)); got != Done {
			t.Fatalf("%q: got %v", in, got)
		}
		n := len(p.args)
		for i, arg := range p.args[n:cap(p.args)] {
			if arg != nil {
				t.Errorf("%q: entry %d still holds %q", in, n+i, arg)
			}
		}
	}
	checkIdle(t, &p)
}

// TestOverhead checks that the lists of a long request are counted while they grow, and freed after
// it.
func TestOverhead(t *testing.T) {
	var p Parser
	const n = 10_000
	request := []byte("*" + strconv.Itoa(n) + "\r\n" + strings.Repeat("$1\r\nx\r\n", n))
	if p.Parse([]byte("*1\r\n$1\r\nx\r\n")) != Done || p.Overhead() != 0 {
		t.Errorf("a short request has an overhead of %d bytes", p.Overhead())
	}
	if p.Parse(request[:len(request)/2]) != NeedMore || p.Overhead() < n/2*(spanSize+viewSize) {
		t.Errorf("half of a request of %d arguments has an overhead of %d bytes", n, p.Overhead())
	}
	p.Release()
	if p.Parse(request) != Done || p.Overhead() < n*viewSize {
		t.Errorf("a request of %d arguments has an overhead of %d bytes", n, p.Overhead())
	}
	if p.Release(); p.Overhead() != 0 {
		t.Errorf("behind the request an overhead of %d bytes remains", p.Overhead())
	}
}

// TestWords checks that a Parser keeps no argument of a long request that nobody wants, and is at the
// next request after it.
func TestWords(t *testing.T) {
	const sent = 100_000
	asked := ""
	var p Parser
	p.SetLimits(Limits{Words: func(first, second []byte) int {
		asked += string(first) + " " + string(second) + ","
		if string(first) == "MGET" {
			return math.MaxInt
		}
		return 10
	}})
	request := func(name string, n int) []byte {
		return []byte(fmt.Sprintf("*%d\r\n$%d\r\n%s\r\n", n, len(name), name) + strings.Repeat("$1\r\na\r\n", n-1))
	}
	f := func(name string, n, kept int) {
		t.Helper()
		in := append(request(name, n), "*1\r\n$4\r\nPING\r\n"...)
		for at := 1000; p.Parse(in[:min(at, len(in))]) == NeedMore; at += 10_000 {
			if kept < n && p.Overhead() > 0 {
				t.Fatalf("%s of %d words takes %d bytes", name, n, p.Overhead())
			}
		}
		if len(p.Args()) != kept || string(p.Args()[0]) != name || string(in[p.Len():]) != "*1\r\n$4\r\nPING\r\n" {
			t.Errorf("%s of %d words has %d, want %d, with %q behind it", name, n, len(p.Args()), kept, in[p.Len():])
		}
		if p.Count() != n {
			t.Errorf("%s of %d words counts %d", name, n, p.Count())
		}
	}
	f("SCAN", sent, 10)
	f("MGET", sent, sent)
	f("SCAN", keptArgs, keptArgs) // too short to ask
	f("SCAN", keptArgs+1, 10)
	if want := "SCAN a,MGET a,SCAN a,"; asked != want {
		t.Errorf("asked about %s, want %s", asked, want)
	}
	if p.Parse([]byte("*200\r\n$4\r\nSCAN\r\n"+strings.Repeat("$1\r\na\r\n", 198)+"x\r\n")) != Malformed {
		t.Error("what nobody wants is not checked")
	}
}
