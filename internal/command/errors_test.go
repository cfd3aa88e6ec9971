package command

import (
	"strings"
	"testing"
)

// TestRefusalsAgainstServer sends the same bad requests to a real server.
func TestRefusalsAgainstServer(t *testing.T) {
	server := realServer(t)
	f := func(args ...string) {
		t.Helper()
		c, text := Resolve(nil, request(args...))
		if c != nil {
			t.Errorf("%q is accepted", args)
			return
		}
		if want := server.do(args...); replyError(text) != want {
			t.Errorf("%q: got  %q\nwant %q", args, text, want)
		}
	}
	long := func(n int) string { return strings.Repeat("0123456789", n/10) }
	f("foo")
	f("FOO", "a", "b")
	f("")
	f("", "", "")
	f("foo", long(100), "1234567890123456789012345678", "cut")
	f("foo", long(100), "12345678901234567890", "cut short")
	f("foo", long(120), "a", "b", "c")
	f("foo", long(200), "b")
	f(long(200), "a")
	f("two\nlines", "a\r\nb")
	f("ze\x00ro", "ze\x00ro", "\x00")
	f("\xff\xfe", "\x80")
	f("get")
	f("GET", "a", "b")
	f("set", "a")
	f("mset")
	f("client")
	f("client", "foo")
	f("Client", "ID", "x")
	f("client", "id|x")
	f("client|id")
	f("config", "get")
	f("config", long(200))
	f("command", "ze\x00ro")
	f("cluster", "two\nlines")
}

func TestResolve(t *testing.T) {
	f := func(want ID, text string, args ...string) {
		t.Helper()
		c, refusal := Resolve([]byte("-"), request(args...))
		if text != "" {
			text = "-" + text
		}
		if (c == nil) != (want == 0) || c != nil && c.ID != want || string(refusal) != text {
			t.Errorf("Resolve %q: row %v, text %q", args, c, refusal)
		}
	}
	f(Get, "", "gEt", "k")
	f(ClientID, "", "client", "ID")
	f(CommandCmd, "", "command") // a container that is a command itself
	f(0, "ERR unknown command 'nosuch', with args beginning with: '0' '1' '1000' ", "nosuch", "0", "1", "1000")
	f(0, "ERR unknown command 'dunlin', with args beginning with: 'table' ", "dunlin", "table")
	f(0, "ERR unknown subcommand 'forget'. Try CLUSTER HELP.", "cluster", "forget", "x")

	if c, _ := ResolvePeer(nil, request("DUNLIN", "TABLE")); c == nil || c.ID != DunlinTable {
		t.Errorf("a member's DUNLIN TABLE gave %v", c)
	}
	if c, _ := ResolvePeer(nil, request("get", "k")); c == nil || c.ID != Get {
		t.Errorf("a member's GET gave %v", c)
	}
}

// request turns strings into the arguments of a request.
func request(args ...string) [][]byte {
	out := make([][]byte, len(args))
	for i, arg := range args {
		out[i] = []byte(arg)
	}
	return out
}
