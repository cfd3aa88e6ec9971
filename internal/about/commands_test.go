package about

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestNamesAreBounded: a client that names every command once, or some of them several times, is
// answered as by Redis. One that names a container a thousand times gets an error, and the server
// never makes a reply much longer than maxReply.
func TestNamesAreBounded(t *testing.T) {
	f := func(answer Answer, names [][]byte, refused bool) {
		t.Helper()
		reply := answer([]byte("+before\r\n"), resp.RESP3, append([][]byte{[]byte("COMMAND"), []byte("X")}, names...))
		if got := string(reply) == "+before\r\n-"+errReplyTooLarge+"\r\n"; got != refused {
			t.Errorf("%d names are answered with %d bytes, %.60q; want an error: %v",
				len(names), len(reply), reply, refused)
		}
		if limit := maxReply + 16<<10; cap(reply) > 2*limit {
			t.Errorf("%d names took %d bytes, want at most twice %d", len(names), cap(reply), limit)
		}
	}
	var every [][]byte
	for _, c := range command.Listed() {
		every = append(every, []byte(strings.ToUpper(c.Name)))
		for _, sub := range builtSubs(c) {
			every = append(every, []byte(sub.Name))
		}
	}
	var same [][]byte
	for range 1000 {
		same = append(same, []byte("client"))
	}
	for _, answer := range []Answer{commandInfo, commandDocs} {
		f(answer, every, false)
		f(answer, [][]byte{[]byte("get"), []byte("GET"), []byte("nosuch"), []byte("get")}, false)
		f(answer, same, true)
	}
}

// TestFilterIsBounded: COMMAND LIST refuses a pattern far longer than every name.
func TestFilterIsBounded(t *testing.T) {
	f := func(pattern string, refused bool) {
		t.Helper()
		reply := commandList(nil, resp.RESP2, [][]byte{nil, nil, []byte("FILTERBY"), []byte("PATTERN"), []byte(pattern)})
		if resp.IsError(reply) != refused {
			t.Errorf("a pattern of %d bytes is answered with %.60q; want an error: %v", len(pattern), reply, refused)
		}
	}
	f("xx*", false)
	f(strings.Repeat("*a", 2000), true)
}
