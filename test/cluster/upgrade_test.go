package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// beforeDatabases is a commit whose members know database 0 only, and no --cross-slot. A test of package chaos upgrades
// from it as well, so that it is built once.
const beforeDatabases = "d4d0bac2"

// early are commands that need a level which the cluster has when the last old member is replaced,
// and with what a proxy that knows them refuses them until then: it sends nothing to a node that
// does not. Nodes answer the others. All of them would change something.
var early = map[string]string{
	"SELECT 1": "-ERR databases other than 0 need protocol level 17", "MOVE k1 1": "-", "COPY k1 k1 DB 1": "-",
	"CONFIG SET pinned-databases 8": "-", "CONFIG SET pinned-databases 9": "-",
	"SUNIONSTORE none1 none2 none3": "-CROSSSLOT", "MSETNX none1 1 none2 2": "-CROSSSLOT", "COPY k1 none": "-CROSSSLOT",
}

// TestDatabasesAfterAnUpgrade: other databases can be selected and pinned, and commands have keys
// of several slots, when the last old member is replaced, and not before, through whichever member.
func TestDatabasesAfterAnUpgrade(t *testing.T) {
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("builds another commit")
	}
	t.Parallel()
	c := harness.StartClusterWith(t, harness.StartOptions{Nodes: 3, Proxies: 2, Path: harness.BuildOf(t, beforeDatabases),
		NodeFlags: []string{"--copies", "2"}})
	harness.AwaitLevel(t, c.Proxy(0).Addr)
	harness.AwaitLevel(t, c.Proxy(1).Addr)
	fillDatabase(t, c.Proxy(0).Addr, 0)
	replaced := append(c.ByRole("proxy")[:1:1], c.ByRole("node")...)
	for _, m := range append(replaced, c.Proxy(1)) {
		for _, asked := range c.Members {
			wantEarly(t, m, asked)
		}
		renew(c, m)
		wantDatabase(t, c.Proxy(0).Addr, 0)
	}
	for _, m := range c.Members {
		harness.Eventually(t, harness.ReadyTimeout, "databases can be selected", func() bool {
			w := harness.DialWire(t, m.Addr)
			defer w.Conn.Close()
			return string(w.Do("SELECT 1")) == "+OK\r\n"
		})
	}
	pinnedReady(t, c, "")
	c.AwaitCopies(harness.ReadyTimeout)
	fillDatabase(t, c.Proxy(0).Addr, 1)
	pinAfterUpgrade(t, c)
	c.AwaitCopies(harness.ReadyTimeout)
	c.Node(0).Kill()
	c.Converge(harness.ReadyTimeout)
	for _, database := range []int{0, 1, 8} {
		wantDatabase(t, c.Proxy(1).Addr, database)
	}
}

// wantEarly checks that a member refuses what the cluster cannot do before the next one is replaced.
func wantEarly(t *testing.T, next, asked *harness.Member) {
	t.Helper()
	w := harness.DialWire(t, asked.Addr)
	defer w.Conn.Close()
	for line, refusal := range early {
		if asked.Role == "node" || asked.Path != "" {
			refusal = "-"
		}
		if got := string(w.Do(line)); !strings.HasPrefix(got, refusal) {
			t.Errorf("before %s is replaced, %s answers %q to %s", next.ID, asked.ID, got, line)
		}
	}
	w.Want("SELECT 0", "OK")
}

// renew has a member begin again with this build, and with what that has more.
func renew(c *harness.Cluster, m *harness.Member) {
	c.AwaitCopies(harness.ReadyTimeout)
	m.Term(30 * time.Second)
	m.Path = ""
	if m.Role == "node" {
		m.Flags = append(m.Flags[:len(m.Flags):len(m.Flags)], "--pinned-databases", "8") // it has not founded the cluster
	} else {
		m.Env = append(m.Env[:len(m.Env):len(m.Env)], "DUNLIN_CROSS_SLOT=relaxed")
	}
	m.Start()
	c.Converge(harness.ReadyTimeout)
}

// pinAfterUpgrade pins a database that has keys, and fills it.
func pinAfterUpgrade(t *testing.T, c *harness.Cluster) {
	t.Helper()
	w := harness.DialWire(t, c.Proxy(1).Addr)
	w.Want("MSETNX none1 1 none2 2", "(integer) 1")
	w.Want("DEL none1 none2", "(integer) 2")
	fillDatabase(t, c.Proxy(0).Addr, 8)
	w.Want("SELECT 8", "OK")
	w.Want("CONFIG SET pinned-databases 9", "OK")
	w.Want("CONFIG SET pinned-databases 8-9", "(error) ERR CONFIG SET failed (possibly related to argument 'pinned-databases')"+
		" - database 8 is not empty: FLUSHDB it, then set pinned-databases again")
	wantDatabase(t, c.Proxy(0).Addr, 8)
	w.Want("FLUSHDB", "OK")
	w.Want("CONFIG SET pinned-databases 8-9", "OK")
	fillDatabase(t, c.Proxy(0).Addr, 8)
	w.Want(`EVAL "return redis.call('MGET', 'k1', 'k2')" 0`, "1) \"8:1\"\n2) \"8:2\"")
}
