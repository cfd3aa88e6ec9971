package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// TestClientInfoCounts: requests and bytes of the connection, whoever executes the requests.
func TestClientInfoCounts(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	in, out := 0, 0
	lines := []string{"SET k v", "GET k", "PING", "MGET k l", "KEYS *", "NOSUCH", "APPEND k more"}
	for _, line := range lines {
		raw := resp.AppendRequest(nil, words(t, line)...)
		c.sendRaw(raw)
		in, out = in+len(raw), out+len(c.read())
	}
	info := resp.AppendRequest(nil, []byte("CLIENT"), []byte("INFO"))
	c.sendRaw(info)
	want := fmt.Sprintf("tot-net-in=%d tot-net-out=%d tot-cmds=%d\\x0a", in+len(info), out, len(lines))
	if got := c.next(); !strings.Contains(got, want) {
		t.Errorf("CLIENT INFO says %s, want %s", got, want)
	}
}

// Replies that are sent from values where they lie, or made by goroutines, are dropped like others
// when they are not wanted.
func TestLargeRepliesThatAreNotWanted(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	v := bigValue(17<<20, 1)
	c.wantBig("SET {k} BIG", v, "OK")
	c.want("SET {k}b x", "OK")
	c.sendRaw([]byte("CLIENT REPLY SKIP\r\nGET {k}\r\nGET {k}b\r\n")) // pinned
	if got := c.next(); got != `"x"` {
		t.Fatalf("behind a large value: %.100s", got)
	}
	c.sendRaw([]byte("CLIENT REPLY SKIP\r\nBITCOUNT {k}\r\nSTRLEN {k}\r\n" + // a goroutine answers
		"CLIENT REPLY SKIP\r\nAPPEND {k} x\r\nSTRLEN {k}\r\n" + // a goroutine makes the value, and the command runs again
		"CLIENT REPLY OFF\r\nBITCOUNT {k}\r\nAPPEND {k} x\r\nGET {k}\r\nCLIENT REPLY ON\r\nSTRLEN {k}\r\n"))
	for _, want := range []string{"(integer) 17825792", "(integer) 17825793", "OK", "(integer) 17825794"} {
		if got := c.next(); got != want {
			t.Fatalf("got %.100s, want %s", got, want)
		}
	}
	c.want("CLIENT REPLY ON", "OK")
	c.sendRaw([]byte("CLIENT REPLY SKIP\r\n"))
	c.sendRaw(bigRequest(t, "SET {k} BIG", v[:1<<20])) // which is gathered
	c.want("STRLEN {k}", "(integer) 1048576")
}
