package resp

import (
	"strings"
	"testing"
)

// replyCases are streams of whole replies.
var replyCases = []string{
	"+OK\r\n",
	"+\r\n",
	"-ERR no\r\n:1\r\n:-7\r\n_\r\n#t\r\n,3.25\r\n(3492890328409238509324850943850943825024385\r\n",
	"$-1\r\n*-1\r\n$0\r\n\r\n$2\r\n\r\n\r\n+OK\r\n",
	"$11\r\nhello\x00world\r\n=8\r\ntxt:text\r\n!5\r\nERR a\r\n",
	"*0\r\n*2\r\n$1\r\na\r\n:2\r\n~1\r\n+a\r\n%1\r\n+k\r\n*1\r\n:1\r\n",
	">3\r\n+message\r\n+channel\r\n$2\r\nhi\r\n+OK\r\n",
	"|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n+OK\r\n",
	"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n|0\r\n:2\r\n+OK\r\n",
	"|1\r\n|1\r\n+deep\r\n+er\r\n+a\r\n+b\r\n*1\r\n+c\r\n+OK\r\n",
	strings.Repeat("*1\r\n", MaxDepth) + ":1\r\n+OK\r\n",
	strings.Repeat("*1\r\n", MaxDepth) + "*-1\r\n+OK\r\n",
	"*3\r\n*2\r\n*0\r\n*1\r\n+a\r\n%0\r\n*1\r\n*1\r\n*-1\r\n+OK\r\n",
	"*120\r\n" + strings.Repeat("$3\r\nabc\r\n", 120) + "+OK\r\n",
	"+" + strings.Repeat("x", 300) + "\r\n+OK\r\n",
}

// brokenReplies are malformed from their first reply on.
var brokenReplies = []string{
	"OK\r\n",
	"\r\n",
	"\x00",
	"+O\nK\r\n",
	"+O\rK\r\n",
	"+OK\n",
	":1\r\r\n",
	"$1\r\nab\r\n",
	"$1\r\na\rx",
	"$01\r\na\r\n",
	"$+1\r\na\r\n",
	"$\r\n",
	"$\n",
	"$-2\r\n",
	"=-1\r\n",
	"!-1\r\n",
	"=3\r\ntxt\r\n",
	"$536870913\r\n",
	"$99999999999999999999999999",
	"*-2\r\n",
	"%-1\r\n",
	"~-1\r\n",
	">-1\r\n",
	"*1073741825\r\n",
	"%536870913\r\n",
	"*4294967296\r\n",
	"*4294967295\r\n",
	"$?\r\n;4\r\nHell\r\n;0\r\n",
	"*?\r\n:1\r\n.\r\n",
	strings.Repeat("*1\r\n", MaxDepth+1) + ":1\r\n",
	strings.Repeat("|1\r\n", MaxDepth+1),
	strings.Repeat("*1\r\n", MaxDepth) + "*0\r\n",
	"*2\r\n:1\r\nx",
}

func TestScannerSplits(t *testing.T) {
	for _, in := range replyCases {
		checkReplies(t, []byte(in))
	}
	for _, in := range brokenReplies {
		checkReplies(t, []byte(in))
		checkReplies(t, []byte("+OK\r\n"+in))
	}
}

// TestScannerExtents checks lengths that are known without the oracle: each case ends
// in "+OK\r\n", or is one reply.
func TestScannerExtents(t *testing.T) {
	for _, in := range replyCases {
		var s Scanner
		rest := in
		for len(rest) > 0 {
			if got := s.Scan([]byte(rest)); got != Done {
				t.Fatalf("%q at %q: got %v", in, rest, got)
			}
			if len(rest) == s.Len() && strings.HasSuffix(in, "+OK\r\n") && rest != "+OK\r\n" {
				t.Errorf("%q: the last reply swallowed the +OK behind it: %q", in, rest)
			}
			rest = rest[s.Len():]
		}
	}
}

func TestScannerRefuses(t *testing.T) {
	for _, in := range brokenReplies {
		var s Scanner
		if got := s.Scan([]byte(in)); got != Malformed {
			t.Errorf("%q: got %v", in, got)
		}
		if got := s.Scan([]byte("+OK\r\n")); got != Malformed {
			t.Errorf("%q: went on after an error: %v", in, got)
		}
		s.Reset()
		if got := s.Scan([]byte("+OK\r\n")); got != Done || s.Len() != 5 {
			t.Errorf("%q: after Reset: %v of %d bytes", in, got, s.Len())
		}
	}
}

// TestScannerLineLimit checks the longest line, which must not depend on how it arrives.
func TestScannerLineLimit(t *testing.T) {
	line := func(length int) []byte { return []byte("-" + strings.Repeat("x", length-3) + "\r\n") }
	scan := func(reply []byte, split int, want Outcome) {
		t.Helper()
		var s Scanner
		got := s.Scan(reply[:split])
		if got == NeedMore {
			got = s.Scan(reply)
		}
		if got != want {
			t.Errorf("a line of %d bytes after %d: got %v, want %v", len(reply), split, got, want)
		}
	}
	scan(line(maxLine), 0, Done)
	scan(line(maxLine), maxLine, Done)
	scan(line(maxLine), maxLine-1, Done)
	scan(line(maxLine+1), 0, Malformed)
	scan(line(maxLine+1), maxLine+1, Malformed)
	scan(line(maxLine+1), maxLine, Malformed)
}

func TestScannerNeed(t *testing.T) {
	needs := func(in string, want int) {
		t.Helper()
		var s Scanner
		if got := s.Scan([]byte(in)); got != NeedMore || s.Need() != want {
			t.Errorf("%q: got %v, need %d, want need %d", in, got, s.Need(), want)
		}
	}
	needs("", 1)
	needs("+", 2)
	needs("$20000000\r\nabc", 11+20000000+2)
	needs("*2\r\n$3\r\nabc\r\n$3\r\n", 4+9+9)
	needs("*2\r\n:1\r\n", 9)
}

// TestScannerNeverLooksBack overwrites what the scanner has finished before every call.
func TestScannerNeverLooksBack(t *testing.T) {
	const count, piece = 100_000, 700
	in := AppendArray(nil, count)
	for range count {
		in = AppendBulkString(in, "element")
	}
	var s Scanner
	poisoned := 0
	for end := piece; end < len(in); end += piece {
		if got := s.Scan(in[:end]); got != NeedMore {
			t.Fatalf("after %d bytes: got %v", end, got)
		}
		poison(in[poisoned:s.pos])
		poisoned = s.pos
		if end-s.pos > 32 {
			t.Fatalf("after %d bytes only %d are finished", end, s.pos)
		}
	}
	if got := s.Scan(in); got != Done || s.Len() != len(in) {
		t.Fatalf("got %v of %d bytes", got, s.Len())
	}
}
