package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestTrackingOfConnections holds what is about several connections with a node, a proxy, and Redis.
func TestTrackingOfConnections(t *testing.T) {
	eachServer(t, func(t *testing.T, s server) {
		if !s.redis {
			harness.AwaitLevel(t, s.addr)
		}
		for name, f := range map[string]func(*testing.T, server, *harness.Wire){
			"redirect": trackingRedirect, "redirect in RESP3": trackingRedirect3, "broken redirect": trackingBroken,
			"blocked": trackingBlocked, "many keys": trackingManyKeys, "many changes": trackingManyChanges, "pipeline": trackingPipeline,
			"refusal": trackingRefusal,
		} {
			t.Run(name, func(t *testing.T) {
				admin := harness.DialWire(t, s.addr)
				admin.Want("FLUSHALL", "OK")
				f(t, s, admin)
			})
		}
	})
}

func idOf(w *harness.Wire) string { return strings.Trim(string(w.Do("CLIENT ID")), ":\r\n") }

// trackingRedirect: a subscriber of RESP2 gets what another connection tracks.
func trackingRedirect(t *testing.T, s server, admin *harness.Wire) {
	listens, w := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
	id := idOf(listens)
	listens.Do("SUBSCRIBE __redis__:invalidate")
	w.Want("CLIENT TRACKING ON REDIRECT "+id, "OK")
	w.Want("CLIENT GETREDIR", "(integer) "+id)
	w.Want("GET k", "(nil)")
	admin.Want("SET k 1", "OK")
	wantNext(t, listens, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n")
	w.Want("GET k", `"1"`)
	admin.Want("FLUSHALL", "OK")
	wantNext(t, listens, "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n")
	info := string(w.Do("CLIENT INFO"))
	if !strings.Contains(info, " flags=t ") || !strings.Contains(info, " redir="+id+" ") {
		t.Errorf("CLIENT INFO says %q", info)
	}
	w.Want("PING", "PONG")
}

// trackingRedirect3: so does a connection of RESP3, which need not subscribe.
func trackingRedirect3(t *testing.T, s server, admin *harness.Wire) {
	listens, w := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
	listens.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON BCAST PREFIX a REDIRECT "+idOf(listens), "OK")
	admin.Want("SET ab 1", "OK")
	wantNext(t, listens, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nab\r\n")
	w.Want("CLIENT TRACKING OFF", "OK")
	admin.Want("SET ab 1", "OK")
	listens.Want("PING", "PONG")
}

// trackingBroken: a client is told that the connection is gone to which it redirects.
func trackingBroken(t *testing.T, s server, admin *harness.Wire) {
	listens, w := harness.DialWire(t, s.addr), harness.DialWire(t, s.addr)
	id := idOf(listens)
	w.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON REDIRECT "+id, "OK")
	w.Want("GET k", "(nil)")
	admin.Want("CLIENT KILL ID "+id, "(integer) 1")
	admin.Want("SET k 1", "OK")
	wantNext(t, w, fmt.Sprintf(">2\r\n$21\r\ntracking-redir-broken\r\n:%s\r\n", id))
	if info := string(w.Do("CLIENT TRACKINGINFO")); !strings.Contains(info, "broken_redirect") {
		t.Errorf("CLIENT TRACKINGINFO says %q", info)
	}
}

// trackingBlocked: a client that waits is told at once.
func trackingBlocked(t *testing.T, s server, admin *harness.Wire) {
	w := harness.DialWire(t, s.addr)
	w.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON", "OK")
	w.Want("GET k", "(nil)")
	w.Send([]byte("BLPOP {k}list 0\r\n"))
	wantBlocked(t, admin, 1)
	admin.Want("SET k 1", "OK")
	wantNext(t, w, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n")
	admin.Want("RPUSH {k}list x", "(integer) 1")
	wantNext(t, w, "*2\r\n$7\r\n{k}list\r\n$1\r\nx\r\n")
}

// trackingManyKeys: of a command of very many keys a change of any is told, by name or for all keys.
func trackingManyKeys(t *testing.T, s server, admin *harness.Wire) {
	w := harness.DialWire(t, s.addr)
	w.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON", "OK")
	var keys []string
	for i := range 3000 {
		keys = append(keys, fmt.Sprint("{k}", i))
	}
	w.Send([]byte("MGET " + strings.Join(keys, " ") + "\r\n"))
	if reply := w.Next(); !strings.HasPrefix(string(reply), "*3000\r\n") {
		t.Fatalf("MGET answers %.100q", reply)
	}
	admin.Want("SET {k}2999 x", "OK")
	if push := string(w.Next()); push != ">2\r\n$10\r\ninvalidate\r\n_\r\n" && push != ">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\n{k}2999\r\n" {
		t.Errorf("told %q", push)
	}
}

// trackingPipeline: what is told of a key comes behind the reply that is revoked.
func trackingPipeline(t *testing.T, s server, admin *harness.Wire) {
	w := harness.DialWire(t, s.addr)
	w.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON", "OK")
	admin.Send(fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$600000\r\n%s\r\n", strings.Repeat("x", 600_000)))
	wantNext(t, admin, "+OK\r\n")
	w.Send([]byte("GET big\r\nGET k\r\nSET k 1\r\nSET big 2\r\nPING\r\n"))
	replies, told := "", map[string]string{}
	for len(told) < 2 || !strings.Contains(replies, "PONG") {
		frame := string(w.Next())
		if frame == "" {
			t.Fatal("the connection has ended")
		}
		if strings.HasPrefix(frame, ">") {
			told[strings.Split(frame, "\r\n")[5]] = replies
			continue
		}
		replies += frame[:min(len(frame), 10)]
	}
	if !strings.HasPrefix(told["big"], "$600000") || !strings.Contains(told["k"], "_\r\n") {
		t.Errorf("told behind %q", told)
	}
}

// trackingManyChanges: a transaction that changes more keys at once than wait for a loop is told too.
func trackingManyChanges(t *testing.T, s server, admin *harness.Wire) {
	const count = 5000
	w := harness.DialWire(t, s.addr)
	w.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON", "OK")
	var reads, writes []byte
	for i := range count {
		reads = fmt.Appendf(reads, "GET {k}%d\r\n", i)
		writes = fmt.Appendf(writes, "SET {k}%d x\r\n", i)
	}
	for begun := 0; begun < count; begun += 500 { // a proxy takes so many at a time
		lines := strings.SplitAfter(string(reads), "\n")[begun : begun+500]
		w.Send([]byte(strings.Join(lines, "")))
		for range lines {
			wantNext(t, w, "_\r\n")
		}
	}
	admin.Send([]byte("MULTI\r\n" + string(writes) + "EXEC\r\n"))
	for range count + 1 {
		admin.Next()
	}
	if reply := admin.Next(); !strings.HasPrefix(string(reply), "*5000\r\n") {
		t.Fatalf("EXEC answers %.100q", reply)
	}
	for told := map[string]bool{}; len(told) < count; {
		lines := strings.Split(string(w.Next()), "\r\n")
		if len(lines) < 4 || lines[2] != "invalidate" {
			t.Fatalf("got %q", lines)
		}
		if lines[3] == "_" {
			return
		}
		told[lines[5]] = true
	}
}

// trackingRefusal: a client whose further prefixes are refused goes on with those that it has.
func trackingRefusal(t *testing.T, s server, admin *harness.Wire) {
	if s.redis {
		return // it refuses none
	}
	w := harness.DialWire(t, s.addr)
	w.Do("HELLO 3")
	w.Want("CLIENT TRACKING ON BCAST PREFIX x", "OK")
	for i := range 4 { // 256 lengths: no other is left
		all := []byte("CLIENT TRACKING ON BCAST")
		for n := range 64 {
			all = fmt.Appendf(all, " PREFIX %s", strings.Repeat(string(rune('0'+n)), 64*i+n+1))
		}
		full := harness.DialWire(t, s.addr)
		full.Send(append(all, "\r\n"...))
		wantNext(t, full, "+OK\r\n")
	}
	long := strings.Repeat("y", 300)
	w.Send([]byte("CLIENT TRACKING ON BCAST NOLOOP PREFIX " + long + "\r\n"))
	wantNext(t, w, "-ERR too many prefixes: all clients together can have 4096, of 256 different lengths\r\n")
	if info := string(w.Do("CLIENT TRACKINGINFO")); !strings.HasSuffix(info, "$8\r\nprefixes\r\n*1\r\n$1\r\nx\r\n") {
		t.Errorf("CLIENT TRACKINGINFO says %q", info)
	}
	admin.Want("SET "+long+" 1", "OK")
	w.Want("SET x1 1", "OK")
	wantNext(t, w, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\nx1\r\n")
}
