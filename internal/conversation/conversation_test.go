package conversation

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	f := func(text string, want ...exchange) {
		t.Helper()
		if got, err := parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q:\n%+v, %v, want\n%+v", text, got, err, want)
		}
	}
	f("prose\nnot> not\n")
	f("> GET k\n\"v\"\n", exchange{1, "", "GET k", `"v"`, `"v"`, "", false})
	f("Said:\n\n> A\nx\ny\n> B\nz\n\nprose\n",
		exchange{3, "", "A", "x\ny", "x\ny", "", false}, exchange{6, "", "B", "z", "z", "", false})
	f("sorted> KEYS *\n1) \"a\"\n\nnot> a request", exchange{1, "sorted", "KEYS *", `1) "a"`, `1) "a"`, "", false})
	f("> A\ndunlin: 1\ndunlin: 2\nredis: 3\nbecause: it is so",
		exchange{1, "", "A", "1\n2", "3", "it is so", false})
	f("> A\n1\n\n@ours It is new.\n> B\n2",
		exchange{1, "", "A", "1", "1", "", false}, exchange{5, "", "B", "2", "2", "", true})
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"> A\ndunlin: 1\nredis: 2\n",
		"> A\ndunlin: 1\nredis: 1\nbecause: nothing differs",
		"> A\n1\nbecause: nothing differs",
	} {
		if got, err := parse(text); err == nil || !strings.HasPrefix(err.Error(), "1: ") {
			t.Errorf("%q: %+v, %v, want an error in line 1", text, got, err)
		}
	}
}

func TestText(t *testing.T) {
	f := func(reply, want string) {
		t.Helper()
		if got := Text([]byte(reply)); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", reply, got, want)
		}
	}
	f("+OK\r\n", "OK")
	f("-ERR no\r\n", "(error) ERR no")
	f(":5\r\n", "(integer) 5")
	f("$-1\r\n", "(nil)")
	f("_\r\n", "(nil)")
	f("*-1\r\n", "(nil)")
	f("$4\r\na\"\x00\n\r\n", `"a\"\x00\x0a"`)
	f("#t\r\n", "(true)")
	f(",1.5\r\n", "(double) 1.5")
	f("*0\r\n", "(empty array)")
	f("%0\r\n", "(empty map)")
	f("*2\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n", "1) \"a\"\n2) 1) (integer) 1\n   2) (integer) 2")
	f("%1\r\n+k\r\n+v\r\n", "1) k\n2) v")
	if got := Text(nil); got != "(closed)" {
		t.Errorf("the end is shown as %s", got)
	}
}

// TestUntil checks that a request is repeated until its reply is as expected, where the file says
// so.
func TestUntil(t *testing.T) {
	asked := 0
	s := Server{Dial: func() Peer {
		var last string
		return Peer{
			Send: func(b []byte) { last = string(b) },
			Next: func() []byte {
				if strings.Contains(last, "FLUSHALL") {
					return []byte("+OK\r\n")
				}
				if asked++; asked < 3 {
					return []byte("$-1\r\n")
				}
				return []byte("$1\r\nv\r\n")
			},
		}
	}}
	Play(t, "testdata/until.txt", s)
	if asked != 3 {
		t.Errorf("asked %d times, want 3", asked)
	}
}
