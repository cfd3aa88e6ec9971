package node

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// TestCutAnywhere sends a pipeline in two pieces, cut at every place.
func TestCutAnywhere(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	var input []byte
	for _, line := range []string{"SET k hello", "GET k", "INCR n", "DEL n", "ECHO x"} {
		input = resp.AppendRequest(input, words(t, line)...)
	}
	for cut := 1; cut < len(input); cut++ {
		c.sendRaw(input[:cut])
		eventually(t, "the first piece is read", func() bool {
			s, err := n.Stats()
			return err == nil && s.BytesIn+uint64(s.InBuffer) == uint64((cut-1)*len(input)+cut)
		})
		c.sendRaw(input[cut:])
		for _, want := range []string{"OK", `"hello"`, "(integer) 1", "(integer) 1", `"x"`} {
			if got := c.next(); got != want {
				t.Fatalf("cut at %d: got %s, want %s", cut, got, want)
			}
		}
	}
}

func TestLargeValues(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 256 << 20 })
	c := dial(t, n.Addr())
	for _, size := range []int{100 << 10, 1 << 20, 20 << 20} {
		value := bytes.Repeat([]byte("0123456789abcdef"), size/16)
		c.sendArgs([]byte("SET"), []byte("big"), value)
		if got := c.next(); got != "OK" {
			t.Fatalf("SET of %d bytes: %s", size, got)
		}
		c.send("GET big")
		got, ok := resp.DecodeBulk(c.read())
		if !ok || !bytes.Equal(got, value) {
			t.Fatalf("GET of %d bytes: got %d bytes, equal %v", size, len(got), bytes.Equal(got, value))
		}
	}
}

// TestHugeReply: a few bytes of request must not make gigabytes of reply.
func TestHugeReply(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Memory = 128 << 20 })
	c := dial(t, n.Addr())
	c.sendArgs([]byte("SET"), []byte("k"), make([]byte, 8<<20))
	c.next()
	c.want("MGET"+strings.Repeat(" k", 100), "(error) ERR the reply would be too large, ask for fewer keys")
	c.want("PING", "PONG")
}

// TestUnreadRepliesStopExecution: a client that asks for much and reads nothing
// is not executed further than its output may grow, and goes on when it reads.
func TestUnreadRepliesStopExecution(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	c := dial(t, n.Addr())
	value := bytes.Repeat([]byte("x"), 100<<10)
	c.sendArgs([]byte("SET"), []byte("k"), value)
	c.next()
	const requests = 600 // 60 MB of replies
	go func() {
		one := resp.AppendRequest(nil, []byte("GET"), []byte("k"))
		c.conn.Write(bytes.Repeat(one, requests))
	}()
	executed := uint64(0)
	eventually(t, "it stops", func() bool {
		s, err := n.Stats()
		stopped := err == nil && s.Requests > 1 && s.Requests == executed
		executed = s.Requests
		time.Sleep(10 * time.Millisecond)
		return stopped
	})
	if executed > requests/4 {
		t.Errorf("%d of %d requests were executed with no reply read", executed, requests)
	}
	for i := range requests {
		if got, ok := resp.DecodeBulk(c.read()); !ok || len(got) != len(value) {
			t.Fatalf("reply %d has %d bytes, want %d", i, len(got), len(value))
		}
	}
	c.want("PING", "PONG")
}

// TestHalfClosed: who sends requests and then closes its side gets all replies.
func TestHalfClosed(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	value := bytes.Repeat([]byte("x"), 100<<10)
	c.sendArgs([]byte("SET"), []byte("k"), value)
	c.next()
	// More replies than fit into the output, and one that a goroutine makes.
	one := resp.AppendRequest(nil, []byte("GET"), []byte("k"))
	c.sendRaw(append(bytes.Repeat(one, 100), "KEYS *\r\nPING\r\n"...))
	c.conn.(*net.TCPConn).CloseWrite()
	for i := range 100 {
		if got, _ := resp.DecodeBulk(c.read()); len(got) != len(value) {
			t.Fatalf("reply %d has %d bytes", i, len(got))
		}
	}
	for _, want := range []string{`1) "k"`, "PONG", "(closed)"} {
		if got := c.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSlowCommandsKeepOrder(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.sendRaw([]byte("SET k 1\r\nKEYS *\r\nSET l 2\r\nFLUSHALL\r\nGET l\r\nINFO server\r\nPING\r\n"))
	for _, want := range []string{"OK", `1) "k"`, "OK", "OK", "(nil)"} {
		if got := c.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := c.next(); !strings.Contains(got, "redis_version") {
		t.Errorf("INFO answers %s", got)
	}
	if got := c.next(); got != "PONG" {
		t.Errorf("got %s, want PONG", got)
	}
}

func TestPassword(t *testing.T) {
	n := startNode(t, func(c *Config) { c.RequirePass = session.NewPasswords("secret") })
	c := dial(t, n.Addr())
	c.want("GET k", "(error) NOAUTH Authentication required.")
	c.want("NOSUCH", "(error) ERR unknown command 'NOSUCH', with args beginning with: ")
	c.want("GET", "(error) ERR wrong number of arguments for 'get' command")
	// Limits of what a stranger may send.
	long := strings.Repeat("x", 20<<10)
	c.sendRaw([]byte("*2\r\n$4\r\nECHO\r\n$20480\r\n" + long))
	if got := c.next(); got != "(error) ERR Protocol error: unauthenticated bulk length" {
		t.Errorf("a long argument before AUTH: %s", got)
	}
	c = dial(t, n.Addr())
	c.sendRaw([]byte("*11\r\n"))
	if got := c.next(); got != "(error) ERR Protocol error: unauthenticated multibulk length" {
		t.Errorf("many arguments before AUTH: %s", got)
	}
	c = dial(t, n.Addr())
	// The limits end with the AUTH, also for what comes in the same packet.
	c.sendRaw([]byte("*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n*2\r\n$4\r\nECHO\r\n$20480\r\n" + long + "\r\n"))
	if got := c.next(); got != "OK" {
		t.Fatalf("AUTH answers %s", got)
	}
	if got := c.next(); got != `"`+long+`"` {
		t.Errorf("ECHO behind AUTH answers %.60s", got)
	}
	c.want("RESET", "RESET")
	c.want("GET k", "(error) NOAUTH Authentication required.")
}

func TestMaxClients(t *testing.T) {
	n := startNode(t, func(c *Config) { c.MaxClients = 2 })
	a, b := dial(t, n.Addr()), dial(t, n.Addr())
	a.want("PING", "PONG")
	b.want("PING", "PONG")
	operator := dial(t, n.Addr())
	operator.want("SET k 1", "OK")
	c := dial(t, n.Addr())
	c.want("GET k", "(error) ERR max number of clients reached")
	if got := c.next(); got != "(closed)" {
		t.Errorf("and then %s", got)
	}
	// Members still get in, and who only takes up a place does not keep it.
	if _, err := member.FetchTable(t.Context(), nil, n.Addr(), nil); err != nil {
		t.Error(err)
	}
	p := openPipeTo(t, n, 1, 1, "common", 1, 2)
	p.want("GET k", `"1"`)
	silent := dial(t, n.Addr())
	if got := silent.next(); got != "(closed)" {
		t.Errorf("silence over the limit gets %s", got)
	}
	operator.conn.Close()
	eventually(t, "the reserved slot is free", func() bool { return n.clients.Load() == 2 })
	// A pipe is no client.
	if got := b.do(pipeLine(1, 0, "common", 1, 2)); got != "OK" {
		t.Fatal(got)
	}
	dial(t, n.Addr()).want("PING", "PONG")
	a.conn.Close()
	eventually(t, "there is room again", func() bool { return n.clients.Load() == 1 })
	dial(t, n.Addr()).want("PING", "PONG")
}

// TestFarTooManyConnections checks that connections over the limit displace each other, so that a
// member always finds a place.
func TestFarTooManyConnections(t *testing.T) {
	n := startNode(t, func(c *Config) { c.MaxClients = 1 })
	all := []*client{dial(t, n.Addr())}
	all[0].want("PING", "PONG")
	dial(t, n.Addr()).want("PING", "PONG") // in the reserved slot
	for i := range memberShare {
		all = append(all, dial(t, n.Addr()))
		// One by one: several loops accept, so those who dial together enter in any order.
		eventually(t, "a connection over the limit is held", func() bool { return n.reserve.Len() == i+1 })
	}
	if _, err := member.FetchTable(t.Context(), nil, n.Addr(), nil); err != nil {
		t.Error(err)
	}
	if got := all[1].next(); got != "(error) ERR max number of clients reached" {
		t.Errorf("a displaced connection gets %s", got)
	}
	all[0].want("PING", "PONG")
}

// TestStrangersTakeNoPlaces checks that connections which never authenticate keep out neither
// clients nor members.
func TestStrangersTakeNoPlaces(t *testing.T) {
	secret := []byte("a secret of the cluster")
	n := startNode(t, func(c *Config) {
		c.RequirePass, c.Secret, c.MaxClients = session.NewPasswords("secret"), member.NewSecrets(secret), 4
	})
	early := dial(t, n.Addr())
	early.want("AUTH secret", "OK")
	var silent []*client
	for i := range 20 {
		silent = append(silent, dial(t, n.Addr()))
		// One by one: several loops accept, and a stranger who comes in late turns out a member that
		// is about to prove itself.
		eventually(t, "a stranger is in", func() bool {
			s, err := n.Stats()
			return err == nil && s.Connections == uint64(i+2)
		})
	}
	late := dial(t, n.Addr())
	late.want("AUTH secret", "OK")
	if got := silent[0].next(); got != "(closed)" {
		t.Errorf("the oldest stranger gets %s", got)
	}
	if _, err := member.FetchTable(t.Context(), nil, n.Addr(), secret); err != nil {
		t.Error(err)
	}
	early.want("SET k 1", "OK")
	late.want("GET k", `"1"`)
}

// TestNewClients checks until when connections wait behind others: a client until it has authenticated,
// or has executed a command if it needs no password. Members never wait.
func TestNewClients(t *testing.T) {
	locked := func(c *Config) { c.RequirePass = session.NewPasswords("secret") }
	for _, c := range []struct {
		node  func(*Config)
		line  string
		isNew bool
	}{
		{func(*Config) {}, "NOSUCH", true},
		{func(*Config) {}, "PING", false},
		{func(*Config) {}, pipeLine(1, 0, "common", 1, 2), false},
		{locked, "PING", true},
		{locked, "AUTH wrong", true},
		{locked, "AUTH secret", false},
	} {
		n := startNode(t, c.node, func(c *Config) { c.Group = newGroup(t, 1) })
		dial(t, n.Addr()).do(c.line)
		if err := n.cfg.Group.Each(func(*netloop.Loop) {
			for cn := range n.workers[0].conns {
				if cn.IsNew() != c.isNew {
					t.Errorf("after %s a connection is new: %v, want %v", c.line, cn.IsNew(), c.isNew)
				}
				greeting := member.AppendRequest(nil, member.VerbChallenge)
				if !cn.IsUrgent(greeting[:20]) || cn.IsUrgent([]byte("*2\r\n$4\r\nAUTH\r\n$6\r\n")) {
					t.Error("members are not told from clients")
				}
			}
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestStrangersAreRefusedSoOften checks that a stranger who goes on without a password is closed.
func TestStrangersAreRefusedSoOften(t *testing.T) {
	n := startNode(t, func(c *Config) { c.RequirePass = session.NewPasswords("secret") })
	c := dial(t, n.Addr())
	c.sendRaw(bytes.Repeat([]byte("PING\r\n"), 10_000))
	refused := 0
	for c.next() == "(error) NOAUTH Authentication required." {
		refused++
	}
	if refused < 50 || refused > 200 {
		t.Errorf("%d commands were refused before the end", refused)
	}
}

func TestIdleClientsAreClosed(t *testing.T) {
	n := startNode(t)
	m, c := dial(t, n.Addr()), dial(t, n.Addr())
	p := openPipeTo(t, n, 1, 0, "common", 1, 2)
	m.want("MONITOR", "OK")
	c.want("CONFIG SET timeout 1", "OK")
	if got := c.next(); got != "(closed)" {
		t.Errorf("a silent client gets %s", got)
	}
	p.want("PING", "PONG")
	dial(t, n.Addr()).want("PING", "PONG")
	if got := m.next(); !strings.HasSuffix(got, `] "PING"`) {
		t.Errorf("who monitors, as silent as the other, sees %s", got)
	}
}

func TestClientList(t *testing.T) {
	n := startNode(t)
	a := dial(t, n.Addr())
	a.want("CLIENT SETNAME first", "OK")
	b := dial(t, n.Addr())
	openPipeTo(t, n, 1, 0, "common", 1, 2)
	b.want("CLIENT SETNAME second", "OK")
	list := a.do("CLIENT LIST")
	if got := strings.Count(list, " laddr="); got != 2 || strings.Index(list, "first") > strings.Index(list, "second") {
		t.Errorf("CLIENT LIST shows %d connections:\n%s", got, list)
	}
	id := strings.TrimPrefix(b.do("CLIENT ID"), "(integer) ")
	if got := a.do("CLIENT LIST ID " + id); strings.Count(got, " laddr=") != 1 || !strings.Contains(got, "second") {
		t.Errorf("CLIENT LIST ID answers %s", got)
	}
}

func TestClientKill(t *testing.T) {
	n := startNode(t)
	pipe := openPipeTo(t, n, 1, 0, "common", 1, 2)
	a, b, c := dial(t, n.Addr()), dial(t, n.Addr()), dial(t, n.Addr())
	for _, x := range []*client{a, b, c} {
		x.want("PING", "PONG") // it is there
	}
	id := strings.TrimPrefix(b.do("CLIENT ID"), "(integer) ")
	a.want("CLIENT KILL ID "+id, "(integer) 1")
	if got := b.next(); got != "(closed)" {
		t.Errorf("a killed client gets %s", got)
	}
	a.want("CLIENT KILL TYPE normal", "(integer) 1") // c: neither itself nor the pipe
	if got := c.next(); got != "(closed)" {
		t.Errorf("a killed client gets %s", got)
	}
	pipe.want("PING", "PONG")
	a.send("CLIENT KILL SKIPME no TYPE normal")
	a.send("SET k v") // is not executed any more
	if got := a.next() + a.next(); got != "(integer) 1(closed)" {
		t.Errorf("who kills itself gets %s", got)
	}
	dial(t, n.Addr()).want("EXISTS k", "(integer) 0")
}

func TestMemoryUsage(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	usage := func(key string, value int) int {
		c.sendArgs([]byte("SET"), []byte(key), make([]byte, value))
		c.next()
		got := c.do("MEMORY USAGE " + key)
		n, err := strconv.Atoi(strings.TrimPrefix(got, "(integer) "))
		if err != nil {
			t.Fatalf("MEMORY USAGE answers %s", got)
		}
		return n
	}
	if n := usage("k", 10); n < 11+8 || n > 64 {
		t.Errorf("a key of 1 byte with a value of 10 takes %d bytes", n)
	}
	if n := usage("k", 1<<20); n < 1<<20 || n > 1<<20+1<<13 {
		t.Errorf("a value of 1 MiB takes %d bytes", n)
	}
	stats := c.do("MEMORY STATS")
	if !strings.Contains(stats, "\"keys.count\"\n24) (integer) 1\n") || strings.Count(stats, "\n") != 2*27-1 {
		t.Errorf("MEMORY STATS answers\n%s", stats)
	}
}

func TestStats(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.sendRaw([]byte("SET k 1\r\nGET k\r\nGET missing\r\nNOSUCH\r\n"))
	for range 4 {
		c.next()
	}
	openPipeTo(t, n, 1, 0, "common", 1, 2)
	s, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	f := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	f("GETs", s.Commands[command.Get], 2)
	f("requests", s.Requests, 5)
	f("clients' requests", s.OfClients, 4) // a pipe's greeting is not a command
	f("hits", s.Hits, 1)
	f("misses", s.Misses, 1)
	f("errors", s.Errors, 1)
	f("clients", s.Clients, 1)
	f("pipes", s.Pipes, 1)
	f("connections", s.Connections, 2)
	f("serving", s.Serving, 4096)
	f("epoch", s.Epoch, 1)
	f("keys", s.Engine.Keys, 1)
	c.want("SET short v PX 1", "OK")
	eventually(t, "a key expires", func() bool { return c.do("EXISTS short") == "(integer) 0" })
	if info := c.do("INFO stats"); !strings.Contains(info, `\x0aexpired_keys:1`) {
		t.Errorf("INFO answers\n%s", info)
	}
	c.want("CONFIG RESETSTAT", "OK")
	c.want("GET k", `"1"`)
	// INFO counts anew, and what is exported goes on.
	info := c.do("INFO stats commandstats errorstats")
	for _, want := range []string{"keyspace_hits:1", "keyspace_misses:0", "expired_keys:0", "total_error_replies:0", "cmdstat_get:calls=1,"} {
		if !strings.Contains(info, `\x0a`+want) {
			t.Errorf("after RESETSTAT, INFO has no %s:\n%s", want, info)
		}
	}
	if strings.Contains(info, "cmdstat_set:") || strings.Contains(info, "errorstat_") {
		t.Errorf("after RESETSTAT, INFO knows commands and errors from before:\n%s", info)
	}
	after, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	f("GETs after RESETSTAT", after.Commands[command.Get], 3)
	if after.Hits <= s.Hits {
		t.Errorf("%d hits before RESETSTAT, and %d after it and another one", s.Hits, after.Hits)
	}
	f("errors after RESETSTAT", after.Errors, 1)
}

func TestDrain(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	if err := n.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := c.next(); got != "(closed)" {
		t.Errorf("a client between requests gets %s", got)
	}
	if conn, err := net.Dial("tcp", n.Addr()); err == nil {
		conn.Close()
		t.Error("a drained node accepts connections")
	}
}

func TestCloseWithOpenConnections(t *testing.T) {
	g := newGroup(t, 2)
	n, err := Start(Config{ID: "a", Boot: 1, Listen: "127.0.0.1:0", Memory: 64 << 20, Shards: 16, Group: g, Log: discardLog})
	if err != nil {
		t.Fatal(err)
	}
	n.SetTable(soleTable(n))
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	c.send("KEYS *")
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	// The loops live on: another node of the process uses them.
	if err := g.Each(func(*netloop.Loop) {}); err != nil {
		t.Error(err)
	}
}
