package metrics

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node"
	"github.com/dunlin-cache/dunlin/ring"
)

func liveOf(t *testing.T, a *Admin, path string) (l Live) {
	t.Helper()
	_, body := get(t, a, path)
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("cannot decode %q: %v", body, err)
	}
	return l
}

// TestLive: who owns what, what is on its way, who is gone, and what stands out.
func TestLive(t *testing.T) {
	a := newAdmin(t, Options{})
	view := twoNodes()
	view.table.Moves = []ring.Move{{Partition: 9, From: 1, To: 0}}
	view.members = view.members[:1]
	n := &fakeNode{serving: true}
	n.stats.Engine.Index = 64
	a.AddNode(source("n1", 1, view), n)
	a.AddProxy(source("p", 3, view), &fakeProxy{ready: true})

	l := liveOf(t, a, "/api/live")
	if len(l.Owners) != ring.Partitions || l.Owners[4] != 0 || l.Owners[3] != 1 {
		t.Errorf("%d owners, the first %v", len(l.Owners), l.Owners[:min(len(l.Owners), 8)])
	}
	if len(l.Nodes) != 2 || !l.Nodes[0].Alive || l.Nodes[1].Alive {
		t.Errorf("nodes %+v, want n2 to be gone", l.Nodes)
	}
	if len(l.Rows) != 2 || l.Rows[1].ID != "n2" || l.Rows[1].State != gone || l.Rows[1].Partitions != 2048 || l.Alive != 1 {
		t.Errorf("rows %+v, want n2 to be gone with what it owns", l.Rows)
	}
	if len(l.Moves) != 1 || l.Moves[0] != (LiveMove{9, 1, 0}) {
		t.Errorf("moves %+v", l.Moves)
	}
	if len(l.Here) != 2 || len(l.Here[0].Slow) != 1 || l.Here[0].Slow[0].Micros != 12000 {
		t.Errorf("here are %+v", l.Here)
	}
	index := int64(0)
	for _, share := range l.Here[0].Memory {
		if share.Class == "index" {
			index = share.Bytes
		}
	}
	if index != 64 {
		t.Errorf("memory %+v, want 64 bytes of index", l.Here[0].Memory)
	}
	if again := liveOf(t, a, "/api/live?table="+url.QueryEscape(l.Table)); again.Owners != nil || again.Cluster.Epoch != 7 {
		t.Errorf("a reader that has table %q is sent %d owners of it", l.Table, len(again.Owners))
	}
	view.table.Issuer = "n1@2" // the cluster was started anew
	if again := liveOf(t, a, "/api/live?table="+url.QueryEscape(l.Table)); len(again.Owners) == 0 {
		t.Error("a reader that has another table of the same epoch is not sent the owners")
	}
}

// TestLiveBeforeTheFirstTable: lists are lists, not null.
func TestLiveBeforeTheFirstTable(t *testing.T) {
	a := newAdmin(t, Options{})
	if _, body := get(t, a, "/api/live"); strings.Contains(body, "null") {
		t.Errorf("an empty process answers %s", body)
	}
	a.AddProxy(source("p", 3, &fakeView{}), &fakeProxy{})
	if _, body := get(t, a, "/api/live"); strings.Contains(body, "null") {
		t.Errorf("a proxy without a table answers %s", body)
	}
}

// TestHistory: rates and quantiles are of the time between two samples, and a reset of the counters is no fall.
func TestHistory(t *testing.T) {
	var h history
	var stats node.Stats
	now := time.Now()
	h.begin(now)
	add := func(f Member) {
		now = now.Add(2 * time.Second)
		h.add(now, &f, &detail{latency: stats.Latency})
	}
	stats.Latency[command.FamilyRead].Note(time.Second)
	add(Member{Commands: 1000, Hits: 50})
	stats.Latency[command.FamilyRead].Note(100 * time.Microsecond)
	stats.Latency[command.FamilyWrite].Note(100 * time.Microsecond)
	add(Member{Commands: 3000, Hits: 80, Misses: 10})
	add(Member{Commands: 3000, Hits: 80, Misses: 10})
	stats = node.Stats{}
	add(Member{Commands: 4})
	list := h.list()
	if len(list) != 4 {
		t.Fatalf("%d samples, want 4", len(list))
	}
	if s := list[0]; s.Ops != 500 || s.HitRatio != 1 || s.P99Micros < 900_000 {
		t.Errorf("sample %+v, want 500 ops/s since the beginning, all hits, 1 s", s)
	}
	list = list[1:]
	if s := list[0]; s.Ops != 1000 || s.HitRatio != 0.75 || s.P50Micros < 90 || s.P99Micros > 130 {
		t.Errorf("sample %+v, want 1000 ops/s, three of four hits, 100 µs", s)
	}
	if s := list[1]; s.Ops != 0 || s.HitRatio != -1 || s.P50Micros != 0 {
		t.Errorf("sample %+v of a time without commands", s)
	}
	if s := list[2]; s.Ops != 2 || s.HitRatio != -1 {
		t.Errorf("sample %+v after a reset, want the 4 commands since", s)
	}
	for range 2 * samplesKept {
		add(Member{})
	}
	if got := len(h.list()); got != samplesKept {
		t.Errorf("%d samples are kept, want %d", got, samplesKept)
	}
}

// TestRecent: what is told as recent is of the last seconds, whatever was before, and a reset of the counters is no fall.
func TestRecent(t *testing.T) {
	var h history
	now := time.Now()
	h.begin(now)
	want := func(f Member, seconds, rate float64, hits, misses uint64) {
		t.Helper()
		h.recent(now, &f)
		if f.RecentSeconds != seconds || f.CommandsPerSecond != rate || f.RecentHits != hits || f.RecentMisses != misses {
			t.Errorf("recent are %+v, want %v commands a second, %d hits, %d misses of %v s", f, rate, hits, misses, seconds)
		}
	}
	want(Member{Commands: 7}, 1, 7, 0, 0) // not endlessly many in no time
	f := Member{}
	for range 50 { // a hit ratio of 0 for minutes, then of 1
		now = now.Add(sampleEvery)
		f.Misses += 300
		h.add(now, &f, &detail{})
	}
	want(f, 15, 0, 0, 5*300)
	for range marksKept - 1 {
		now = now.Add(sampleEvery)
		f.Commands, f.Hits = f.Commands+600, f.Hits+300
		h.add(now, &f, &detail{})
	}
	now = now.Add(sampleEvery / 3)
	f.Commands, f.Hits = f.Commands+200, f.Hits+100
	want(f, 16, 200, 5*300+100, 0)
	f = Member{Commands: 10, Hits: 2, Misses: 3} // reset since the last sample, a second ago
	want(f, 1, 10, 2, 3)
	h.add(now, &f, &detail{})
	now = now.Add(sampleEvery)
	f.Commands += 30
	want(f, 4, 10, 2, 3)
	if len(h.marks) > marksKept {
		t.Errorf("%d marks are kept", len(h.marks))
	}
}

// TestPageText: the page itself has the state, for readers without scripts, and what others call themselves is no markup.
func TestPageText(t *testing.T) {
	a := newAdmin(t, Options{})
	view := twoNodes()
	view.members[1].ID = "<script>alert(1)</script>"
	n := &fakeNode{serving: true}
	n.stats.Hits, n.stats.Misses, n.stats.Engine.Used, n.stats.Engine.Max, n.stats.Keys = 3, 1, 1536, 1<<20, 1234567
	view.table.Moves = []ring.Move{{Partition: 9, From: 1, To: 0}}
	a.AddNode(source("n1", 1, view), n)
	_, body := get(t, a, "/")
	for _, want := range []string{"herd", "epoch 7", "3 members alive", "leaving", "75.0 %", "1.5 KiB of 1 MiB", "1,234,567", "2,048", "1 partition moving", "&lt;script&gt;"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, "<script>alert") {
		t.Error("a member's id is markup")
	}
}
