package test

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// eachServer runs f with a node, with a proxy over three nodes, and with a real redis-server.
func eachServer(t *testing.T, f func(t *testing.T, s server), flags ...string) {
	t.Parallel()
	c, alone := startCluster(t, 3, 1, flags...), startClusterWith(t, startOptions{nodes: 1, flags: flags})
	var redisFlags []string
	if len(flags) > 0 {
		redisFlags = []string{"--enable-debug-command", "yes"}
	}
	t.Run("node", func(t *testing.T) { f(t, server{addr: alone.node(0).addr}) })
	t.Run("proxy", func(t *testing.T) { f(t, server{addr: c.proxy(0).addr}) })
	t.Run("redis", func(t *testing.T) { f(t, server{addr: redistest.Start(t, redisFlags...), redis: true}) })
}

type server struct {
	addr  string
	redis bool
}

var blockedFlag = regexp.MustCompile(" flags=[a-zA-Z]*b")

// wantBlocked waits until CLIENT LIST and INFO show so many clients that wait.
func wantBlocked(t *testing.T, w *wire, n int) {
	t.Helper()
	eventually(t, readyTimeout, fmt.Sprintf("%d blocked clients", n), func() bool {
		return len(blockedFlag.FindAll(w.do("CLIENT LIST"), -1)) == n &&
			bytes.Contains(w.do("INFO clients"), fmt.Appendf(nil, "\nblocked_clients:%d\r\n", n))
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

// pauseOfWrites: what may write waits, is executed in its order when the pause is over, and the rest goes on.
func pauseOfWrites(t *testing.T, s server) {
	admin, w, tx := dialWire(t, s.addr), dialWire(t, s.addr), dialWire(t, s.addr)
	w.want("SET a 1", "OK")
	tx.want("MULTI", "OK")
	tx.want("SET {t} 1", "QUEUED")
	admin.want("CLIENT PAUSE 1000000 WRITE", "OK")
	// Refused at once, or harmless.
	w.want("SET a", "(error) ERR wrong number of arguments for 'set' command")
	w.want("GET a", `"1"`)
	w.want("MULTI", "OK")
	w.want("GET a", "QUEUED")
	w.want("EXEC", `1) "1"`)
	w.want("CLIENT REPLY ON", "OK")
	held := []struct{ lines, replies string }{
		{"SET a 2\r\nGET a\r\nCLIENT REPLY SKIP\r\nGET a\r\nPING", "+OK\r\n$1\r\n2\r\n+PONG\r\n"},
		{"MSET b 1 c 2 d 3\r\nMGET b c d", "+OK\r\n*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n"},
		{"PFCOUNT h", ":0\r\n"},
		{"MULTI\r\nSET {t}b 1\r\nDISCARD", "+OK\r\n+QUEUED\r\n+OK\r\n"},
		{"CLIENT REPLY SKIP\r\nSET e 1\r\nGET e", "$1\r\n1\r\n"},
		{"GET a\r\nDEL nosuch\r\nCLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON", "$1\r\n1\r\n:0\r\n+OK\r\n"},
	}
	var clients []*wire
	for i, h := range held {
		w := dialWire(t, s.addr)
		w.send([]byte(h.lines + "\r\n"))
		wantBlocked(t, admin, i+1)
		clients = append(clients, w)
	}
	tx.send([]byte("EXEC\r\n"))
	wantBlocked(t, admin, 7)
	w.want("GET b", "(nil)")
	admin.want("CLIENT PAUSE 10 WRITE", "OK") // the longer one holds
	admin.want("CLIENT UNPAUSE", "OK")
	if got := string(tx.next()); got != "*1\r\n+OK\r\n" {
		t.Errorf("EXEC answers %q", got)
	}
	for i, h := range held {
		got := ""
		for len(got) < len(h.replies) {
			got += string(clients[i].next())
		}
		if got != h.replies {
			t.Errorf("%q answers %q, want %q", h.lines, got, h.replies)
		}
	}
	wantBlocked(t, admin, 0)
	w.want("SET a 3", "OK")
}

// pauseOfAll ends with its time.
func pauseOfAll(t *testing.T, s server) {
	admin, w, fresh := dialWire(t, s.addr), dialWire(t, s.addr), dialWire(t, s.addr)
	w.want("PING", "PONG")
	const millis = 300
	begun := time.Now()
	admin.send(fmt.Appendf(nil, "CLIENT PAUSE %d\r\nPING\r\n", millis))
	if got := string(admin.next()); got != "+OK\r\n" {
		t.Fatalf("CLIENT PAUSE answers %q", got)
	}
	for _, held := range []*wire{w, fresh, dialWire(t, s.addr)} {
		held.want("PING", "PONG")
		if took := time.Since(begun); took < millis*time.Millisecond {
			t.Errorf("a command took %v of a pause of %d ms", took, millis)
		}
	}
	if got := string(admin.next()); got != "+PONG\r\n" {
		t.Errorf("PING behind CLIENT PAUSE answers %q", got)
	}
	if s.redis {
		return // nobody can end it there
	}
	admin.want("CLIENT PAUSE 1000000 ALL", "OK")
	w.send([]byte("PING\r\n"))
	admin.want("CLIENT UNPAUSE", "OK")
	if got := string(w.next()); got != "+PONG\r\n" {
		t.Errorf("PING behind CLIENT UNPAUSE answers %q", got)
	}
}

// pausedClientsThatLeave are gone before the pause is over, and what they sent last is not executed.
func pausedClientsThatLeave(t *testing.T, s server) {
	admin := dialWire(t, s.addr)
	admin.want("SET a old", "OK")
	admin.want("CLIENT PAUSE 1000000 WRITE", "OK")
	var left []*wire
	for range 4 {
		w := dialWire(t, s.addr)
		w.send([]byte("GET a\r\nSET a new\r\nGET a\r\n"))
		w.next()
		left = append(left, w)
	}
	wantBlocked(t, admin, 4)
	for _, w := range left[:3] {
		w.conn.Close()
	}
	wantBlocked(t, admin, 1)
	admin.want("CLIENT KILL "+left[3].conn.LocalAddr().String(), "OK")
	admin.want("CLIENT UNPAUSE", "OK")
	admin.want("GET a", `"old"`)
}

// pauseOfLargeValues: values that are on their way when the pause begins, and those that come later.
func pauseOfLargeValues(t *testing.T, s server) {
	value := bytes.Repeat([]byte("0123456789"), 300_000)
	request := resp.AppendRequest(nil, []byte("SET"), []byte("big"), value, []byte("EX"), []byte("1000"))
	admin, before, after := dialWire(t, s.addr), dialWire(t, s.addr), dialWire(t, s.addr)
	before.want("PING", "PONG")
	before.send(request[:2_000_000])
	admin.want("CLIENT PAUSE 1000000 WRITE", "OK")
	before.send(append(request[2_000_000:len(request):len(request)], "STRLEN big\r\n"...))
	after.send(append(request[:len(request):len(request)], "STRLEN big\r\n"...))
	wantBlocked(t, admin, 2)
	admin.want("STRLEN big", "(integer) 0")
	admin.want("CLIENT UNPAUSE", "OK")
	for _, w := range []*wire{before, after} {
		if got := string(w.next()) + string(w.next()); got != "+OK\r\n:3000000\r\n" {
			t.Errorf("behind the pause: %q", got)
		}
		w.want("PING", "PONG")
	}
}
