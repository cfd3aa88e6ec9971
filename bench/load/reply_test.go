package load

import (
	"strings"
	"testing"
)

// TestReader feeds every conversation whole, byte by byte and in two halves.
func TestReader(t *testing.T) {
	f := func(p Protocol, text string, replies, values int, wantErr string) {
		t.Helper()
		for _, step := range []int{len(text), 1, (len(text) + 1) / 2} {
			r := reader{protocol: p, want: 3}
			var n, v int
			var err error
			for from := 0; from < len(text) && err == nil; from += step {
				dn, dv, bad := r.feed([]byte(text[from:min(from+step, len(text))]))
				n, v, err = n+dn, v+dv, bad
			}
			if n != replies || v != values || (err == nil) != (wantErr == "") ||
				err != nil && !strings.Contains(err.Error(), wantErr) {
				t.Errorf("%q, %d bytes at a time, has %d replies and %d values, %v: want %d, %d, %q",
					text, step, n, v, err, replies, values, wantErr)
			}
		}
	}
	f(RESP, "+OK\r\n:12\r\n$3\r\nabc\r\n$-1\r\n", 4, 1, "")
	f(RESP, "*3\r\n$3\r\n\r\n\r\r\n$-1\r\n$3\r\nabc\r\n+OK\r\n", 2, 2, "")
	f(RESP, "*1\r\n$-1\r\n*2\r\n$-1\r\n$3\r\nab", 1, 1, "") // not all is there
	f(RESP, "+OK\r\n-ERR no\r\n+OK\r\n", 1, 0, `"-ERR no"`)
	f(RESP, "$4\r\nabcd\r\n", 0, 0, `"4" bytes: want 3`)
	f(RESP, "$x\r\n", 0, 0, "want 3")
	f(RESP, "*0\r\n", 0, 0, "*0")
	f(RESP, "*1\r\n*1\r\n", 0, 0, "*1")
	f(RESP, "+OK\n", 0, 0, "line")
	f(RESP, "what\r\n", 0, 0, "what")
	f(RESP, strings.Repeat("x", maxLine+1), 0, 0, "longer than")

	f(Memcached, "STORED\r\nVALUE key 0 3\r\nEND\r\nEND\r\n", 2, 1, "") // the value is END
	f(Memcached, "VALUE key 0 3\r\nabc\r\n\r\nEND\r\n", 0, 1, "line")
	f(Memcached, "VALUE a 0 3\r\nabc\r\nVALUE b 0 3\r\nabc\r\nEND\r\nEND\r\nSTORED\r\n", 3, 2, "")
	f(Memcached, "VALUE a 0 4\r\nabcd\r\nEND\r\n", 0, 0, "want 3")
	f(Memcached, "SERVER_ERROR out of memory\r\n", 0, 0, "out of memory")
	f(Memcached, "ERROR\r\n", 0, 0, "ERROR")
}
