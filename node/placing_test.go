package node

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/ring"
)

// pins has a node apply settings that pin databases, and returns them.
func pins(t testing.TB, n *Node, databases string) *ring.Settings {
	t.Helper()
	s, err := n.placing.Load().document.With(1, map[string]string{ring.PinnedSetting: databases})
	if err != nil {
		t.Fatal(err)
	}
	n.ApplySettings(s)
	return s
}

func TestPinnedConversations(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Whole = true })
	pins(t, n, "8")
	playPinned(t, n.Addr(), false)
	for p := range uint16(ring.Partitions) {
		want := 0
		if p == ring.PinnedPartition(8) {
			want = 2
		}
		if keys := n.engine.Count(p); keys != want {
			t.Errorf("partition %d has %d keys, want %d", p, keys, want)
		}
	}
}

func TestPinnedConversationsWithRedis(t *testing.T) { playPinned(t, redistest.Start(t), true) }

func playPinned(t *testing.T, addr string, isRedis bool) {
	for _, file := range conversation.Files(t, "testdata/pinned/*.txt") {
		playFile(t, file, addr, isRedis)
	}
}

// TestPinnedNeedsAProxy: clients of a node, which go to another one by the slots of their keys, cannot use a pinned
// database.
func TestPinnedNeedsAProxy(t *testing.T) {
	n := startLeveled(t)
	c, before := dial(t, n.Addr()), dial(t, n.Addr())
	before.want("SELECT 9", "OK")
	before.want("SET k v", "OK")
	before.want("DEL k", "(integer) 1")
	pins(t, n, "8-9")
	refusal := "(error) ERR database 9 is pinned to one node, so clients select it through a proxy"
	c.want("SELECT 9", refusal)
	c.want("SELECT 7", "OK")
	before.want("GET k", refusal)
	before.want("MULTI", "OK")
	before.want("SET k v", "QUEUED")
	before.want("EXEC", refusal)
	before.want("WATCH k", refusal)
	before.want("SELECT 7", "OK")
	before.want("GET k", "(nil)")
}

// TestUnknownSettingsClose: a node that has not applied the settings that its table names uses database 0 only.
func TestUnknownSettingsClose(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	c.want("SELECT 3", "OK")
	c.want("SET k v", "OK")
	s, err := (*ring.Settings)(nil).With(1, map[string]string{"config/timeout": "100"})
	if err != nil {
		t.Fatal(err)
	}
	n.SetTable(altered(n.view.Load().Table, func(next *ring.Table) { next.Settings = s.ID() }))
	const closed = "(error) TRYAGAIN that database is being pinned, or is not pinned any more, try again in a moment"
	c.want("GET k", closed)
	c.want("DBSIZE", "(integer) 1")
	c.want("MULTI", "OK")
	c.want("GET k", "QUEUED")
	c.want("EXEC", closed)
	c.want("SELECT 0", "OK")
	c.want("SET k v", "OK")
	c.want("MOVE k 3", closed)
	c.want(`EVAL "return redis.pcall('SELECT', 3)" 0`, closed)
	n.ApplySettings(s)
	c.want("SELECT 3", "OK")
	c.want("GET k", `"v"`)
}

// TestPinning: CONFIG SET pins databases that are empty, and no others. While it is under way, they are closed.
func TestPinning(t *testing.T) {
	n := startLeveled(t)
	s := &settingsOf{n: n}
	n.SetSettings(s)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	other.want("SELECT 8", "OK")
	other.want("SET k v", "OK")
	const failed = "(error) ERR CONFIG SET failed (possibly related to argument 'pinned-databases') - "
	c.want("CONFIG SET pinned-databases 0-3", failed+"database 0 cannot be pinned")
	if got := c.do("CONFIG SET pinned-databases 8-9"); !strings.HasPrefix(got, "(error)") ||
		!strings.HasSuffix(got, "database 8 is not empty: FLUSHDB it, then set pinned-databases again") {
		t.Errorf("CONFIG SET of a database with keys answers %s", got)
	}
	c.want("CONFIG GET pinned-databases", "1) \"pinned-databases\"\n2) \"\"")
	other.want("GET k", `"v"`) // open again, with its keys
	other.want("FLUSHDB", "OK")
	other.send("BLPOP q 0")
	eventually(t, "BLPOP waits", func() bool { return n.waiters.Load() == 1 })
	c.want("CONFIG SET pinned-databases 8-9 timeout 77", "OK")
	if got := other.next(); !strings.HasPrefix(got, "(error) TRYAGAIN") {
		t.Errorf("BLPOP answers %s", got)
	}
	c.want("CONFIG GET pinned-databases", "1) \"pinned-databases\"\n2) \"8-9\"")
	c.want("CONFIG GET timeout", "1) \"timeout\"\n2) \"77\"")
	if p := n.placing.Load(); p.Pinned() != 0x300 || p.closing != (ring.Closing{}) {
		t.Errorf("pinned %q, closed %q", p.Pinned(), p.closing.Databases)
	}
	c.want("CONFIG SET pinned-databases \"\"", "OK")
	other.want("SET k v", "OK")
}

// TestPinningWhatCannotBeSelected: CONFIG SET refuses databases that no client can select, as the
// flag does. What a member with more databases has pinned is applied nevertheless, and can be taken
// back.
func TestPinningWhatCannotBeSelected(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Databases = 9 })
	s := &settingsOf{n: n}
	n.SetSettings(s)
	c := dial(t, n.Addr())
	const failed = "(error) ERR CONFIG SET failed (possibly related to argument 'pinned-databases') - "
	c.want("CONFIG SET pinned-databases 8-9", failed+"with --databases 9 clients can select 0 to 8")
	c.want("CONFIG SET timeout 77 pinned-databases 15", failed+"with --databases 9 clients can select 0 to 8")
	c.want("CONFIG GET timeout", "1) \"timeout\"\n2) \"0\"")
	c.want("CONFIG SET pinned-databases 8", "OK")
	s.mu.Lock()
	err := s.change(map[string]string{ring.PinnedSetting: "8-9"})
	s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	c.want("CONFIG GET pinned-databases", "1) \"pinned-databases\"\n2) \"8-9\"")
	c.want("CONFIG SET pinned-databases \"\"", "OK")
}

// TestPinningLosesNothing: what is acknowledged while the databases are being pinned is there afterwards, or the
// pinning was refused.
func TestPinningLosesNothing(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Whole = true })
	n.SetSettings(&settingsOf{n: n})
	c := dial(t, n.Addr())
	var stop atomic.Bool
	lost := make(chan string, 1)
	go func() {
		defer close(lost)
		w := dial(t, n.Addr())
		w.do("SELECT 8")
		for i := 0; !stop.Load(); i++ {
			key := "k" + strings.Repeat("x", i%50)
			if w.do("SET "+key+" v") != "OK" {
				continue
			}
			if got := w.do("GET " + key); got != `"v"` && !strings.HasPrefix(got, "(error) TRYAGAIN") {
				lost <- key + ": " + got
				return
			}
			del := w.do("DEL " + key)
			for strings.HasPrefix(del, "(error) TRYAGAIN") { // what stays would have every pinning refused
				del = w.do("DEL " + key)
			}
			if del != "(integer) 1" {
				lost <- key + ": DEL answers " + del
				return
			}
		}
	}()
	pinned, tries := 0, 0
	for want := "8"; pinned < 4 && tries < 2000; tries++ {
		if c.do("CONFIG SET pinned-databases \""+want+"\"") == "OK" {
			pinned++
			want = map[string]string{"8": "", "": "8"}[want]
		}
	}
	stop.Store(true)
	for problem := range lost {
		t.Error(problem)
	}
	if pinned < 4 {
		t.Errorf("pinned %d times in %d tries", pinned, tries)
	}
}

// TestClosedDatabasesOpen: databases do not stay closed when the node that has closed them dies.
func TestClosedDatabasesOpen(t *testing.T) {
	n := startLeveled(t)
	s := &settingsOf{n: n}
	n.SetSettings(s)
	n.closedLimit = 10 * time.Millisecond
	c := dial(t, n.Addr())
	c.want("SELECT 8", "OK")
	closing := ring.Closing{Databases: ring.Databases(0).With(8), Name: "x"}
	if err := s.ConfigureFrom(t.Context(), s.document.ID().Hash, closing.Changes()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it opens", func() bool { return c.do("SET k v") == "OK" })
}

// TestPinningLeavesNoGoroutines: nobody waits to open databases that are open.
func TestPinningLeavesNoGoroutines(t *testing.T) {
	n := startLeveled(t)
	n.SetSettings(&settingsOf{n: n})
	c := dial(t, n.Addr())
	for range 5 {
		c.want("CONFIG SET pinned-databases 8", "OK")
		c.want("CONFIG SET pinned-databases \"\"", "OK")
	}
	eventually(t, "nobody waits", func() bool { return goroutinesIn(t, ".(*Node).openAfter(0x") == 0 })
}

// TestTrackedInTransactionOfDatabase: who reads a key in a transaction in another database than 0 is told when the key
// changes.
func TestTrackedInTransactionOfDatabase(t *testing.T) {
	n := startLeveled(t)
	c, other := dial(t, n.Addr()), dial(t, n.Addr())
	c.do("HELLO 3")
	c.want("CLIENT TRACKING ON", "OK")
	c.want("SELECT 3", "OK")
	c.want("MULTI", "OK")
	c.want("GET k", "QUEUED")
	c.want("EXEC", "1) (nil)")
	other.want("SELECT 3", "OK")
	other.want("SET k v", "OK")
	if got := c.next(); !strings.Contains(got, "invalidate") {
		t.Errorf("%s comes, want an invalidation", got)
	}
}

// TestPinnedStats: a node tells of the pinned databases that it serves.
func TestPinnedStats(t *testing.T) {
	n := startLeveled(t, func(c *Config) { c.Whole = true })
	pins(t, n, "8-9")
	c := dial(t, n.Addr())
	c.want("SELECT 9", "OK")
	c.want("SET k "+strings.Repeat("v", 100), "OK")
	c.want("SET other v", "OK")
	c.want("SELECT 0", "OK")
	c.want("SET k v", "OK")
	looked := 0
	n.big.Look(n.engine, engine.Section(ring.PinnedPartition(9), 9), 0, time.Now().UnixMilli(), &looked)
	c.want("SELECT 9", "OK")
	eventually(t, "a script, which names no keys, is sampled", func() bool {
		c.want(`EVAL "return redis.call('EXISTS', 'k')" 0`, "(integer) 1")
		s, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Pinned) == 2 && s.Pinned[1].Share > 0
	})
	s, err := n.Stats()
	if err != nil {
		t.Fatal(err)
	}
	got := s.Pinned[1]
	if got.Share > 1 || got.Bytes < 102 || got.Bytes > 300 {
		t.Errorf("%d bytes and a share of %v", got.Bytes, got.Share)
	}
	got.Share, got.Bytes = 0, 0
	if want := (PinnedStats{Database: 9, Partition: 9 * 257, Keys: 2}); got != want || s.Pinned[0] != (PinnedStats{Database: 8, Partition: 8 * 257}) {
		t.Errorf("pinned databases are %+v, want %+v", s.Pinned, want)
	}
	var uses measure.Uses
	uses[9], uses[0] = 60, 40
	if crowded := n.pinnedStats(n.view.Load(), &uses, manyOps); !crowded[1].Crowds || crowded[0].Crowds {
		t.Errorf("with most commands about database 9: %+v", crowded)
	}
	if idle := n.pinnedStats(n.view.Load(), &uses, manyOps-1); idle[1].Crowds {
		t.Errorf("of few commands most are about database 9: %+v", idle)
	}
}
