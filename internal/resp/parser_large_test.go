package resp

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// largeRequests have arguments around a length of 10.
var largeRequests = []string{
	"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n*1\r\n$4\r\nPING\r\n",
	"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$11\r\n0123456789a\r\n$2\r\nEX\r\n$2\r\n10\r\nPING\r\n",
	"*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$16\r\n0123456789abcdef\r\n$1\r\nl\r\n$17\r\n\r\n$10\r\n\r\n0123456\r\n",
	"*4\r\n$11\r\n0123456789a\r\n$12\r\n0123456789ab\r\n$13\r\n0123456789abc\r\n$1\r\na\r\n",
	"*2\r\n$9\r\n012345678\r\n$10\r\n0123456789\r\n*0\r\n*1\r\n$10\r\n0123456789\r\n",
	"*12\r\n" + strings.Repeat("$10\r\n0123456789\r\n$1\r\na\r\n", 6) + "*1\r\n$4\r\nPING\r\n",
	"*300\r\n" + strings.Repeat("$1\r\na\r\n", 299) + "$10\r\n0123456789\r\n*1\r\n$4\r\nPING\r\n",
}

// brokenLarge end in an error behind or at a large argument.
var brokenLarge = []struct{ in, want string }{
	{"*2\r\n$10\r\n0123456789xx$1\r\na\r\n", "invalid CRLF in request"},
	{"*2\r\n$10\r\n0123456789\rx", "invalid CRLF in request"},
	{"*2\r\n$10\r\n0123456789\r\nfoo\r\n", "expected '$', got 'f'"},
	{"*2\r\n$10\r\n0123456789\r\n$-1\r\n", "invalid bulk length"},
	{"*2\r\n$536870913\r\n", "invalid bulk length"},
}

func TestLargeBulks(t *testing.T) {
	l := Limits{LargeBulk: 10}
	for _, in := range slices.Concat(largeRequests, requestCases) {
		checkRequests(t, []byte(in), l)
		checkRequests(t, []byte(in+in), Limits{LargeBulk: 11, MaxRequest: 150})
	}
	for _, c := range brokenLarge {
		checkRequests(t, []byte(c.in), l)
		var p Parser
		p.SetLimits(l)
		got := parseStream(&p, []byte(c.in), splittings(1)[0], func(int, []byte, int) {})
		if len(got) != 1 || got[0].err != "ERR Protocol error: "+c.want {
			t.Errorf("%q: got %v, want %q", c.in, got, c.want)
		}
	}
}

// TestLargeBulkIsAnnouncedByItsHeader checks that a large argument is announced whether or not its
// bytes are there, and only if Limits ask for it.
func TestLargeBulkIsAnnouncedByItsHeader(t *testing.T) {
	head := "*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n"
	for _, rest := range []string{"", "0123", "0123456789\r\n$2\r\nEX\r\n$1\r\n1\r\n"} {
		var p Parser
		if got := p.Parse([]byte(head + rest)); got == LargeBulk {
			t.Fatalf("%q: announced by default", rest)
		}
		p.Reset()
		p.SetLimits(Limits{LargeBulk: 10})
		if got := p.Parse([]byte(head + rest)); got != LargeBulk {
			t.Fatalf("%q: got %v", rest, got)
		}
		if p.Len() != len(head) || p.Large() != 10 || p.Total() != 5 || len(p.Args()) != 2 || string(p.Args()[1]) != "k" {
			t.Errorf("%q: argument of %d bytes at %d, %d in all, %q before it",
				rest, p.Large(), p.Len(), p.Total(), p.Args())
		}
	}
}

// TestResetAmidLargeBulk checks that after Reset a new request begins, wherever the parser was.
func TestResetAmidLargeBulk(t *testing.T) {
	const ping = "*1\r\n$4\r\nPING\r\n"
	var p Parser
	p.SetLimits(Limits{LargeBulk: 10, MaxRequest: 60})
	for _, rest := range []string{"", "\r", "\r\n", "\r\n$2\r\nE"} {
		for range 3 {
			if got := p.Parse([]byte("*3\r\n$3\r\nSET\r\n$30\r\n")); got != LargeBulk {
				t.Fatalf("got %v: %s", got, p.Err())
			}
			if rest != "" {
				p.Parse([]byte(rest))
			}
			p.Reset()
			if got := p.Parse([]byte(ping)); got != Done || len(p.Args()) != 1 {
				t.Fatalf("behind %q: got %v, %q", rest, got, p.Args())
			}
			checkIdle(t, &p)
		}
	}
}

// TestSkips: of a request whose arguments are not all wanted, a large argument is gathered.
func TestSkips(t *testing.T) {
	for at, want := range map[int]bool{1: false, 9: false, 10: true, 150: true} {
		var p Parser
		p.SetLimits(Limits{LargeBulk: 100, Words: func(_, _ []byte) int { return 10 }})
		args := make([][]byte, 200)
		for i := range args {
			args[i] = []byte("a")
		}
		args[at] = bytes.Repeat([]byte("a"), 100)
		in := AppendRequest(nil, args...)
		if p.Parse(in) != LargeBulk || p.Skips() != want {
			t.Fatalf("argument %d: skips %v, want %v", at, p.Skips(), want)
		}
		if p.Gather(); p.Parse(in) != Done || p.Count() != len(args) || p.Len() != len(in) {
			t.Errorf("argument %d: %d arguments and %d bytes", at, p.Count(), p.Len())
		}
	}
}
