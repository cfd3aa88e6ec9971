package cluster

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// eachServer runs f with a node, with a proxy and three nodes, and with a real redis-server.
func eachServer(t *testing.T, f func(t *testing.T, s server), flags ...string) {
	t.Parallel()
	c, alone := harness.StartCluster(t, 3, 1, flags...), harness.StartClusterWith(t, harness.StartOptions{Nodes: 1, Flags: flags})
	var redisFlags []string
	if len(flags) > 0 {
		redisFlags = []string{"--enable-debug-command", "yes"}
	}
	t.Run("node", func(t *testing.T) { f(t, server{addr: alone.Node(0).Addr, nodes: alone.ByRole("node")}) })
	t.Run("proxy", func(t *testing.T) { f(t, server{addr: c.Proxy(0).Addr, nodes: c.ByRole("node")}) })
	t.Run("redis", func(t *testing.T) { f(t, server{addr: redistest.Start(t, redisFlags...), redis: true}) })
}

type server struct {
	addr  string
	nodes []*harness.Member // none of Redis
	redis bool
}

var blockedFlag = regexp.MustCompile(" flags=[a-zA-Z]*b")

// wantBlocked waits until CLIENT LIST and INFO show this number of blocked clients.
func wantBlocked(t *testing.T, w *harness.Wire, n int) {
	t.Helper()
	harness.Eventually(t, harness.ReadyTimeout, fmt.Sprintf("%d blocked clients", n), func() bool {
		return len(blockedFlag.FindAll(w.Do("CLIENT LIST"), -1)) == n &&
			bytes.Contains(w.Do("INFO clients"), fmt.Appendf(nil, "\nblocked_clients:%d\r\n", n))
	})
}

func TestPause(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		for name, f := range map[string]func(*testing.T, server){
			"writes": pauseOfWrites, "all": pauseOfAll, "leaving": pausedClientsThatLeave, "large values": pauseOfLargeValues,
		} {
			t.Run(name, func(t *testing.T) { f(t, s) })
		}
	})
}

// pauseOfWrites checks that commands that may write wait and are executed in order after the pause,
// and that others are executed during it.
func pauseOfWrites(t *testing.T, s server) {
	admin, w, tx := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
	w.Want("SET a 1", "OK")
	tx.Want("MULTI", "OK")
	tx.Want("SET {t} 1", "QUEUED")
	admin.Want("CLIENT PAUSE 1000000 WRITE", "OK")
	// Refused at once, or harmless.
	w.Want("SET a", "(error) ERR wrong number of arguments for 'set' command")
	w.Want("GET a", `"1"`)
	w.Want("MULTI", "OK")
	w.Want("GET a", "QUEUED")
	w.Want("EXEC", `1) "1"`)
	w.Want("CLIENT REPLY ON", "OK")
	held := []struct{ lines, replies string }{
		{"SET a 2\r\nGET a\r\nCLIENT REPLY SKIP\r\nGET a\r\nPING", "+OK\r\n$1\r\n2\r\n+PONG\r\n"},
		{"MSET b 1 c 2 d 3\r\nMGET b c d", "+OK\r\n*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n"},
		{"PFCOUNT h", ":0\r\n"},
		{"MULTI\r\nSET {t}b 1\r\nDISCARD", "+OK\r\n+QUEUED\r\n+OK\r\n"},
		{"CLIENT REPLY SKIP\r\nSET e 1\r\nGET e", "$1\r\n1\r\n"},
		{"GET a\r\nDEL nosuch\r\nCLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON", "$1\r\n1\r\n:0\r\n+OK\r\n"},
	}
	var clients []*harness.Wire
	for i, h := range held {
		w := harness.DialWire(t, s.addr)
		w.Send([]byte(h.lines + "\r\n"))
		wantBlocked(t, admin, i+1)
		clients = append(clients, w)
	}
	tx.Send([]byte("EXEC\r\n"))
	wantBlocked(t, admin, 7)
	w.Want("GET b", "(nil)")
	admin.Want("CLIENT PAUSE 10 WRITE", "OK") // the longer pause counts
	admin.Want("CLIENT UNPAUSE", "OK")
	if got := string(tx.Next()); got != "*1\r\n+OK\r\n" {
		t.Errorf("EXEC answers %q", got)
	}
	for i, h := range held {
		got := ""
		for len(got) < len(h.replies) {
			got += string(clients[i].Next())
		}
		if got != h.replies {
			t.Errorf("%q answers %q, want %q", h.lines, got, h.replies)
		}
	}
	wantBlocked(t, admin, 0)
	w.Want("SET a 3", "OK")
}

// pauseOfAll checks that a pause of all commands ends after its time.
func pauseOfAll(t *testing.T, s server) {
	admin, w, fresh := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
	w.Want("PING", "PONG")
	const millis = 300
	begun := time.Now()
	admin.Send(fmt.Appendf(nil, "CLIENT PAUSE %d\r\nPING\r\n", millis))
	if got := string(admin.Next()); got != "+OK\r\n" {
		t.Fatalf("CLIENT PAUSE answers %q", got)
	}
	for _, held := range []*harness.Wire{w, fresh, harness.DialWire(t, s.addr)} {
		held.Want("PING", "PONG")
		if took := time.Since(begun); took < millis*time.Millisecond {
			t.Errorf("a command took %v of a pause of %d ms", took, millis)
		}
	}
	if got := string(admin.Next()); got != "+PONG\r\n" {
		t.Errorf("PING behind CLIENT PAUSE answers %q", got)
	}
	if s.redis {
		return // no client can end the pause there
	}
	admin.Want("CLIENT PAUSE 1000000 ALL", "OK")
	w.Send([]byte("PING\r\n"))
	admin.Want("CLIENT UNPAUSE", "OK")
	if got := string(w.Next()); got != "+PONG\r\n" {
		t.Errorf("PING behind CLIENT UNPAUSE answers %q", got)
	}
}

// pausedClientsThatLeave checks that clients can disconnect during a pause, and that their last
// commands are then not executed.
func pausedClientsThatLeave(t *testing.T, s server) {
	admin := harness.DialWire(t, s.addr)
	admin.Want("SET a old", "OK")
	admin.Want("CLIENT PAUSE 1000000 WRITE", "OK")
	var left []*harness.Wire
	for i := range 4 {
		w := harness.DialWire(t, s.addr)
		// One has sent more than a server reads meanwhile.
		w.Send([]byte("GET a\r\nSET a new\r\n" + strings.Repeat("GET a\r\n", 1+i%2*20_000)))
		w.Next()
		left = append(left, w)
	}
	wantBlocked(t, admin, 4)
	for _, w := range left[:3] {
		w.Conn.Close()
	}
	wantBlocked(t, admin, 1)
	admin.Want("CLIENT KILL "+left[3].Conn.LocalAddr().String(), "OK")
	admin.Want("CLIENT UNPAUSE", "OK")
	admin.Want("GET a", `"old"`)
}

// pauseOfLargeValues checks values that are in flight when the pause begins, and values sent later.
func pauseOfLargeValues(t *testing.T, s server) {
	value := bytes.Repeat([]byte("0123456789"), 300_000)
	request := resp.AppendRequest(nil, []byte("SET"), []byte("big"), value, []byte("EX"), []byte("1000"))
	admin, before, after := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
	before.Want("PING", "PONG")
	before.Send(request[:2_000_000])
	admin.Want("CLIENT PAUSE 1000000 WRITE", "OK")
	before.Send(append(request[2_000_000:len(request):len(request)], "STRLEN big\r\n"...))
	after.Send(append(request[:len(request):len(request)], "STRLEN big\r\n"...))
	wantBlocked(t, admin, 2)
	admin.Want("STRLEN big", "(integer) 0")
	admin.Want("CLIENT UNPAUSE", "OK")
	for _, w := range []*harness.Wire{before, after} {
		if got := string(w.Next()) + string(w.Next()); got != "+OK\r\n:3000000\r\n" {
			t.Errorf("behind the pause: %q", got)
		}
		w.Want("PING", "PONG")
	}
}
