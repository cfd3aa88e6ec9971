package resp

import (
	"bytes"
	"strings"
	"testing"
)

// none checks that f allocates nothing once it has run a first time.
func none(t *testing.T, name string, f func()) {
	t.Helper()
	f()
	if got := testing.AllocsPerRun(200, f); got != 0 {
		t.Errorf("%s: %v allocations", name, got)
	}
}

func TestNoAllocations(t *testing.T) {
	parse := func(name, in string, pieces int) {
		t.Helper()
		var p Parser
		buf := []byte(in)
		none(t, name, func() {
			for i := 1; i < pieces; i++ {
				if p.Parse(buf[:len(buf)*i/pieces]) != NeedMore {
					t.Fatal("finished early")
				}
			}
			for rest := buf; len(rest) > 0; rest = rest[p.Len():] {
				if p.Parse(rest) != Done {
					t.Fatalf("not done: %q", p.Err())
				}
			}
		})
	}
	small := "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$64\r\n" + strings.Repeat("v", 64) + "\r\n"
	parse("pipelined SET", strings.Repeat(small, 16), 1)
	parse("SET in pieces", small, 7)
	parse("MGET of 100", "*101\r\n$4\r\nMGET\r\n"+strings.Repeat("$3\r\nkey\r\n", 100), 3)
	parse("inline", "SET key 'a value' \"another\"\r\nPING\r\n\r\n", 1)

	var p Parser
	p.SetLimits(Limits{LargeBulk: 1000})
	head, tail := []byte("*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n"), []byte("\r\n$2\r\nEX\r\n$1\r\n1\r\n")
	none(t, "large bulk", func() {
		if p.Parse(head) != LargeBulk || p.Parse(tail[:5]) != NeedMore || p.Parse(tail) != Done || len(p.Args()) != 2 {
			t.Fatalf("not done: %q", p.Err())
		}
	})

	scan := func(name, in string) {
		t.Helper()
		var s Scanner
		buf := []byte(in)
		none(t, name, func() {
			s.Scan(buf[:len(buf)/2])
			s.Reset()
			for rest := buf; len(rest) > 0; rest = rest[s.Len():] {
				if s.Scan(rest) != Done {
					t.Fatal("not done")
				}
			}
		})
	}
	scan("flat replies", "+OK\r\n:1\r\n$-1\r\n$3\r\nabc\r\n")
	scan("nested replies", "*2\r\n%1\r\n+a\r\n*1\r\n:1\r\n$1\r\nx\r\n")
}

func TestNoAllocationsEncoding(t *testing.T) {
	buf := make([]byte, 0, 4096)
	get, key := []byte("GET"), bytes.Repeat([]byte("k"), 300)
	none(t, "encoders", func() {
		b := AppendSimple(buf, "OK")
		b = AppendError(b, "ERR no\n")
		b = AppendErrorBytes(b, key)
		b = AppendInt(b, 1234567)
		b = AppendBulk(b, key)
		b = AppendDouble(b, RESP3, 1.5)
		b = AppendDouble(b, RESP2, 1.5)
		b = AppendVerbatim(b, RESP3, "txt", "text")
		b = AppendMap(b, RESP3, 100)
		AppendRequest(b, get, key)
	})
	reply := AppendBulk(nil, key)
	number := AppendInt(nil, -123456789)
	none(t, "decoders", func() {
		DecodeBulk(reply)
		DecodeArray(reply)
		DecodeInt(number)
	})
}
