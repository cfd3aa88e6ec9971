package session

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/conversation"
)

// The lines are those that a real redis-server 7.0.15 shows.
func TestMonitorLines(t *testing.T) {
	st := testServer("").NewState("127.0.0.1:41362", "", 0)
	f := func(args [][]byte, want string) {
		t.Helper()
		want = "+1795257635.000351 [0 127.0.0.1:41362] " + want + "\r\n"
		if got := string(AppendMonitorLine(nil, st, st.Database, args, 0, 1795257635000351)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	g := func(request, want string) {
		t.Helper()
		f(conversation.Words(t, request), want)
	}
	f([][]byte{[]byte("SET"), []byte("k"), []byte("a\"b\\c\n\r\t\a\b\x00\xff \x7f~")},
		`"SET" "k" "a\"b\\c\n\r\t\a\b\x00\xff \x7f~"`)
	g(`GET ""`, `"GET" ""`)
	g("incr k", `"incr" "k"`)
	g("AUTH secret", `"AUTH" "(redacted)"`)
	g("auth default secret", `"auth" "(redacted)" "(redacted)"`)
	g("HELLO 3 AUTH default x SETNAME bob", `"HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "bob"`)
	g("HELLO 3 SETNAME bob", `"HELLO" "3" "SETNAME" "bob"`)
	long := bytes.Repeat([]byte{'y'}, maxMonitoredArg+5)
	f([][]byte{[]byte("GET"), long}, `"GET" "`+string(long[5:])+`"... (5 more bytes)`)
	many := repeated(long, 100)
	line := string(AppendMonitorLine(nil, st, 0, many, 0, 0))
	if len(line) > maxMonitoredLine+2*maxMonitoredArg || !strings.HasSuffix(line, " more arguments)\r\n") {
		t.Errorf("a long request has a line of %d bytes, that ends in %q", len(line), line[len(line)-40:])
	}
}

// A line says how many arguments are not in it.
func TestMonitorLineOfMoreArguments(t *testing.T) {
	line := string(AppendMonitorLine(nil, &State{Addr: "a"}, 0, [][]byte{[]byte("DEL"), []byte("k")}, 5, 0))
	if want := "+0.000000 [0 a] \"DEL\" \"k\" ... (5 more arguments)\r\n"; line != want {
		t.Errorf("got %q, want %q", line, want)
	}
}

func repeated(b []byte, n int) (all [][]byte) {
	for range n {
		all = append(all, b)
	}
	return all
}

func TestMonitored(t *testing.T) {
	s := testServer("")
	f := func(st *State, request string, want bool) {
		t.Helper()
		if got := Monitored(st, conversation.Words(t, request)); got != want {
			t.Errorf("%s is shown: %v", request, got)
		}
	}
	st := s.NewState("", "", 0)
	for _, request := range []string{"GET k", "PING", "CLIENT ID", "COMMAND COUNT", "INFO server",
		"AUTH x", "HELLO 3", "FLUSHALL", "QUIT"} {
		f(st, request, true)
	}
	for _, request := range []string{"NOSUCH", "GET", "CONFIG GET x", "CLIENT LIST", "SLOWLOG LEN",
		"MONITOR", "CLIENT NOSUCH", "DUNLIN TABLE"} {
		f(st, request, false)
	}
	stranger := testServer("secret").NewState("", "", 0)
	f(stranger, "GET k", false)
	f(stranger, "AUTH x", true)
}
