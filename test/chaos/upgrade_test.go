package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// These tests upgrade a cluster under load, member by member, from builds of earlier commits. Old
// and new members run side by side meanwhile. Clients must notice as little as when nodes join and
// leave in order.

const (
	// firstRelease is the last commit whose members know no protocol levels.
	firstRelease = "aed5c16"
	// streamsRelease is one of level 16: what it knows of types and channels is in use, and the databases,
	// the commands over slots and what owners tell each other of channels are not.
	streamsRelease = "d4d0bac2"
)

// TestUpgrade replaces the nodes first.
func TestUpgrade(t *testing.T) { upgrade(t, firstRelease, "node", "proxy") }

// TestUpgradeProxiesFirst replaces the proxies first, which then work with old nodes.
func TestUpgradeProxiesFirst(t *testing.T) { upgrade(t, streamsRelease, "proxy", "node") }

// TestUpgradeFromThePrevious upgrades from the commit before this one.
func TestUpgradeFromThePrevious(t *testing.T) { upgrade(t, "HEAD^1", "node", "proxy") }

// upgrade replaces all members of the first role, then those of the other.
func upgrade(t *testing.T, from string, roles ...string) {
	if testing.Short() {
		t.Skip("builds another commit")
	}
	harness.SkipUnderRace(t)
	x := StartWith(t, Options{Copies: 2, Mixers: 2, Batch: 16, Rest: 4 * time.Millisecond, path: harness.BuildOf(t, from)})
	x.KeepsAll.Store(true)
	if from != firstRelease {
		harness.Eventually(t, harness.ReadyTimeout, "the old members speak their level", func() bool { return x.Tables.Table().Level > 0 })
	}
	before := x.Tables.Table().Level
	var members []*harness.Member
	for _, role := range roles {
		members = append(members, x.C.ByRole(role)...)
	}
	failed, begin := 0, time.Now()
	for i, m := range members {
		if got := x.Tables.Table().Level; i < len(members)-1 && got != before {
			x.Violate("the cluster has level %d while %d members are old", got, len(members)-i)
		}
		replace := func() {
			m.Term(handOverTime)
			m.Path = ""
			m.Launch()
		}
		if m.Role == "proxy" {
			x.replaceProxy(m, replace)
			continue
		}
		failed += x.during("upgrade of "+m.ID, m, replace)
	}
	if failed > 0 && !x.disturbed(begin) {
		x.Violate("an upgrade in order caused %d errors", failed)
	}
	harness.Eventually(t, harness.ReadyTimeout, "the cluster speaks the new level", func() bool { return x.atLevel(ring.Level) })
	x.converge("after the upgrade", nil)
	x.Finish()
}

// handOverTime is how long a member may take to hand over its partitions and end.
const handOverTime = 15 * time.Second

// replaceProxy pauses the clients of a proxy, replaces it, and connects the clients to its
// successor. The clients of other proxies continue.
func (x *Rig) replaceProxy(m *harness.Member, replace func()) {
	x.T.Helper()
	x.Mu.Lock()
	all := x.opened
	x.Mu.Unlock()
	defer x.hearing.leaves()()
	var mine []*Session
	for _, s := range all {
		if s.at == m {
			s.busy.Lock()
			s.Link.Conn.Close()
			mine = append(mine, s)
		}
	}
	begin := time.Now()
	replace()
	m.WaitReady()
	x.T.Logf("%-30s ready again after %4d ms", "upgrade of "+m.ID, time.Since(begin).Milliseconds())
	for _, s := range mine {
		if err := s.reconnect(); err != nil {
			x.T.Fatalf("%s cannot connect to the new proxy: %v", s.name, err)
		}
		s.busy.Unlock()
	}
	x.converge("upgrade of "+m.ID, m)
	x.servedAgain("upgrade of " + m.ID)
}

// atLevel reports whether the tables of all nodes have the level.
func (x *Rig) atLevel(level uint8) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, n := range x.C.ByRole("node") {
		if t, err := member.FetchTable(ctx, nil, n.Addr, nil); err != nil || t == nil || t.Level != level {
			return false
		}
	}
	return true
}
