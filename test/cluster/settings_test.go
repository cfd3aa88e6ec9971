package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestSettingsOfTheCluster sets a parameter of the cluster at one member. All members must have it
// when the reply arrives, and members that join or return later must have it before they are ready.
func TestSettingsOfTheCluster(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, 2)
	everywhere := func(members []*harness.Member, name, want string) {
		t.Helper()
		for _, m := range members {
			if got := string(harness.DialWire(t, m.Addr).Do("CONFIG GET " + name)); !strings.Contains(got, "\r\n"+want+"\r\n") {
				t.Errorf("%s at %s is %q, want %s", name, m.ID, got, want)
			}
		}
	}
	all := c.Members
	// The cluster was founded a moment ago.
	harness.DialWire(t, c.Proxy(0).Addr).Want("CONFIG SET timeout 7", "OK")
	everywhere(all, "timeout", "7")
	for i, m := range all {
		want := string(rune('1' + i))
		harness.DialWire(t, m.Addr).Want("CONFIG SET slowlog-max-len 2"+want+" timeout 300"+want, "OK")
		everywhere(all, "slowlog-max-len", "2"+want)
		everywhere(all, "timeout", "300"+want)
	}
	// Limits of a process's resources are not settings of the cluster.
	harness.DialWire(t, c.Node(0).Addr).Want("CONFIG SET maxclients 999 maxmemory-policy noeviction", "OK")
	everywhere(all[:1], "maxclients", "999")
	everywhere(all[1:], "maxclients", "10000")
	everywhere(all, "maxmemory-policy", "noeviction")

	n1 := c.Node(0) // the coordinator
	n1.Term(15 * time.Second)
	c.Converge(harness.ReadyTimeout)
	harness.DialWire(t, c.Proxy(0).Addr).Want("CONFIG SET maxmemory-policy volatile-ttl", "OK")
	n1.Start()
	n4 := harness.NewMember(t, "node", "n4")
	n4.Flags = n1.Flags
	n4.Start()
	for _, m := range []*harness.Member{n1, n4} {
		everywhere([]*harness.Member{m}, "slowlog-max-len", "25")
		everywhere([]*harness.Member{m}, "timeout", "3005")
		everywhere([]*harness.Member{m}, "maxmemory-policy", "volatile-ttl")
	}
	// A crash of all that has changed the settings last.
	c.Node(1).Kill()
	everywhere([]*harness.Member{c.Proxy(0), c.Proxy(1), c.Node(2), n1, n4}, "timeout", "3005")
}
