package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
)

// openPipeTo opens a pipe as a proxy without a secret does.
func openPipeTo(t testing.TB, n *Node, boot, loop int, kind string, generation, version int) *client {
	t.Helper()
	c := dial(t, n.Addr())
	if got := c.do(pipeLine(boot, loop, kind, generation, version)); got != "OK" {
		t.Fatalf("cannot open pipe: %s", got)
	}
	return c
}

func pipeLine(boot, loop int, kind string, generation, version int) string {
	return fmt.Sprintf(`DUNLIN PIPE %d %d %s %d %d ""`, boot, loop, kind, generation, version)
}

// authenticate answers the node's challenge with the fields of a PIPE or PEER.
func (c *client) authenticate(secret []byte, command string, fields ...string) string {
	c.t.Helper()
	c.send("DUNLIN CHALLENGE")
	nonce, ok := resp.DecodeBulk(c.read())
	if !ok || len(nonce) != 32 {
		c.t.Fatalf("challenge is %q, want 32 bytes", nonce)
	}
	args := [][]byte{[]byte("DUNLIN"), []byte(command)}
	var proven [][]byte
	for _, f := range fields {
		proven = append(proven, []byte(f))
	}
	args = append(append(args, proven...), member.Proof(secret, nonce, proven...))
	c.sendArgs(args...)
	return c.next()
}

func TestPipeGenerations(t *testing.T) {
	n := startNode(t)
	old := openPipeTo(t, n, 7, 0, "common", 5, 2)
	old.want("SET k old", "OK")
	other := openPipeTo(t, n, 7, 1, "common", 1, 2)
	large := openPipeTo(t, n, 7, 0, "large", 1, 2)

	newer := openPipeTo(t, n, 7, 0, "common", 6, 2)
	if got := old.next(); got != "(closed)" {
		t.Errorf("the older generation answers %s, want it closed", got)
	}
	newer.want("GET k", `"old"`)
	other.want("GET k", `"old"`)
	large.want("GET k", `"old"`)

	const stale = "(error) ERR a newer generation of this pipe has been opened"
	for _, generation := range []int{5, 6} {
		c := dial(t, n.Addr())
		c.want(pipeLine(7, 0, "common", generation, 2), stale)
		if got := c.next(); got != "(closed)" {
			t.Errorf("a stale pipe answers %s, want it closed", got)
		}
	}
	newer.want("PING", "PONG")

	// Closing does not make the node forget what was the newest.
	newer.conn.Close()
	eventually(t, "the pipe is closed", func() bool {
		s, err := n.Stats()
		return err == nil && s.Pipes == 2
	})
	dial(t, n.Addr()).want(pipeLine(7, 0, "common", 6, 2), stale)
	openPipeTo(t, n, 7, 0, "common", 7, 2)
}

// TestUnreadInputIsThrownAway: commands of an older generation are not executed
// once a newer one is acknowledged, even if they had arrived before.
func TestUnreadInputIsThrownAway(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	loop := n.workers[0].loop
	for i := range 20 {
		old := openPipeTo(t, n, i, 0, "common", 1, 2)
		newer := dial(t, n.Addr())
		newer.want("PING", "PONG")
		// The loop sleeps while both arrive, and then sees the new one first or the
		// old one: either the SET is executed before the acknowledgement, or never.
		blocked, release := make(chan struct{}), make(chan struct{})
		loop.Post(func() { close(blocked); <-release })
		<-blocked
		newer.send(pipeLine(i, 0, "common", 2, 2))
		newer.send("GET late")
		old.send("SET late yes")
		close(release)
		if got := newer.next(); got != "OK" {
			t.Fatalf("newer generation answers %s", got)
		}
		first := newer.next()
		if got := old.next(); got != "(closed)" && got != "OK" {
			t.Fatalf("older generation answers %s", got)
		}
		newer.want("GET late", first)
		newer.want("FLUSHALL", "OK")
	}
}

func TestPipeVersion(t *testing.T) {
	n := startNode(t)
	openPipeTo(t, n, 1, 0, "common", 1, 2).want("GET nothing", "(nil)")
	p := openPipeTo(t, n, 1, 0, "common", 1, 3)
	p.send("GET nothing")
	if got := string(p.read()); got != "_\r\n" {
		t.Errorf("null on a pipe of RESP3 is %q", got)
	}
}

func TestBadPipes(t *testing.T) {
	n := startNode(t)
	for _, line := range []string{
		`DUNLIN PIPE x 0 common 1 2 ""`, `DUNLIN PIPE 1 x common 1 2 ""`, `DUNLIN PIPE 1 0 other 1 2 ""`,
		`DUNLIN PIPE 1 0 common -1 2 ""`, `DUNLIN PIPE 1 0 common 1 4 ""`,
	} {
		c := dial(t, n.Addr())
		if got := c.do(line); !strings.HasPrefix(got, "(error) ERR") {
			t.Errorf("%s answers %s, want an error", line, got)
		}
		if got := c.next(); got != "(closed)" {
			t.Errorf("after %s: %s, want it closed", line, got)
		}
	}
	c := dial(t, n.Addr())
	c.want("DUNLIN PIPE 1", "(error) ERR wrong number of arguments for 'dunlin|pipe' command")
	c.want("DUNLIN", "(error) ERR wrong number of arguments for 'dunlin' command")
}

func TestSecret(t *testing.T) {
	secret := []byte("a secret of the cluster")
	n := startNode(t, func(c *Config) { c.Secret, c.RequirePass = member.NewSecrets(secret), session.NewPasswords("password") })

	// Nobody gets in with less than the secret; the clients' password is not it.
	c := dial(t, n.Addr())
	c.want("AUTH password", "OK")
	c.want("DUNLIN TABLE", "(error) NOAUTH Authentication required.")
	c.want("DUNLIN EACH "+strings.Repeat("x", 512)+" DBSIZE", "(error) NOAUTH Authentication required.")
	for _, f := range []func(c *client) string{
		func(c *client) string { return c.do(pipeLine(1, 0, "common", 1, 2)) },
		func(c *client) string { return c.authenticate([]byte("wrong"), "PIPE", "1", "0", "common", "1", "2") },
		func(c *client) string { return c.authenticate([]byte("password"), "PEER", "1") },
	} {
		c := dial(t, n.Addr())
		if got := f(c); !strings.HasPrefix(got, "(error) WRONGPASS") {
			t.Errorf("got %s, want WRONGPASS", got)
		}
		if got := c.next(); got != "(closed)" {
			t.Errorf("after a wrong proof: %s, want it closed", got)
		}
	}

	p := dial(t, n.Addr())
	if got := p.authenticate(secret, "PIPE", "1", "0", "common", "1", "2"); got != "OK" {
		t.Fatalf("PIPE with the secret answers %s", got)
	}
	p.want("SET k 1", "OK") // a pipe needs no password

	peer := dial(t, n.Addr())
	if got := peer.authenticate(secret, "PEER", "1"); got != "OK" {
		t.Fatalf("PEER with the secret answers %s", got)
	}
	peer.want("GET k", "(error) NOAUTH Authentication required.")
	if _, err := member.FetchTable(t.Context(), nil, n.Addr(), secret); err != nil {
		t.Error(err)
	}
	if _, err := member.FetchTable(t.Context(), nil, n.Addr(), nil); err == nil {
		t.Error("FetchTable without the secret got a table")
	}
}

// TestNonceIsUsedOnce: a recorded proof opens nothing.
func TestNonceIsUsedOnce(t *testing.T) {
	secret := []byte("a secret of the cluster")
	n := startNode(t, func(c *Config) { c.Secret = member.NewSecrets(secret) })
	c := dial(t, n.Addr())
	c.send("DUNLIN CHALLENGE")
	nonce, _ := resp.DecodeBulk(c.read())
	greeting := resp.AppendRequest(nil, []byte("DUNLIN"), []byte("PEER"), []byte("1"), member.Proof(secret, nonce, []byte("1")))
	c.sendRaw(greeting)
	if got := c.next(); got != "OK" {
		t.Fatal(got)
	}
	again := dial(t, n.Addr())
	again.send("DUNLIN CHALLENGE")
	if second, _ := resp.DecodeBulk(again.read()); string(second) == string(nonce) {
		t.Error("the same nonce twice")
	}
	again.sendRaw(greeting)
	if got := again.next(); !strings.HasPrefix(got, "(error) WRONGPASS") {
		t.Errorf("recorded proof answers %s", got)
	}
}

// TestProbesAreNotCounted checks that a PING by which a proxy looks whether the node lives is no
// client's command.
func TestProbesAreNotCounted(t *testing.T) {
	n := startNode(t)
	openPipeTo(t, n, 7, 0, "common", 1, 2).want("PING", "PONG")
	c := dial(t, n.Addr())
	if info := c.do("INFO commandstats"); strings.Contains(info, "cmdstat_ping") {
		t.Errorf("INFO commandstats: %s", info)
	}
}
