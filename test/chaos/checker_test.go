package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosChecker checks that History notices each kind of wrong read, and accepts the right ones.
func TestChaosChecker(t *testing.T) {
	now := time.Unix(1000, 0)
	h := NewHistory("k")
	// read judges a read that was sent at the time of s and shows write seq, 0 for none.
	read := func(s sight, seq uint64, wrong string) *absence {
		t.Helper()
		var value []byte
		if seq > 0 {
			value = AppendValue(nil, "k", seq)
		}
		lost, err := h.read(s, value, now)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("a read of write %d: %v, want %q", seq, err, wrong)
		}
		return lost
	}
	write := func(o outcome) { h.Answered(h.Write(now), o) }

	read(h.Look(), 0, "")
	early := h.Look()
	write(Executed)    // 1
	write(Executed)    // 2
	read(early, 1, "") // it was sent before write 2 was acknowledged
	read(h.Look(), 2, "")
	read(h.Look(), 3, "never sent")
	write(unknown) // 3
	read(h.Look(), 2, "")
	read(h.Look(), 3, "")
	write(notExecuted) // 4
	read(h.Look(), 4, "not executed")
	before := h.Look()
	lost := read(h.Look(), 0, "")
	if lost == nil {
		t.Error("a missing key is not noted")
	}
	read(before, 3, "") // it was sent before the key was missing
	read(h.Look(), 3, "after it was missing")
	if read(h.Look(), 0, "") != nil {
		t.Error("a lost key is noted twice")
	}
	write(Executed) // 5
	read(h.Look(), 5, "")
	inFlight := h.Write(now) // 6
	read(h.Look(), 6, "")
	read(h.Look(), 0, "") // it was lost, but may be sent again
	read(h.Look(), 6, "")
	h.Answered(inFlight, Executed)
	if h.lookOwn(early).Floor != 6 {
		t.Error("the writer's own read may overtake its write")
	}

	for _, value := range []string{"", "k", "k=1=", "other=1=b", "k=1=bbb", "k=x=b"} {
		if _, err := h.read(h.Look(), []byte(value), now); err == nil {
			t.Errorf("value %q is believed", value)
		}
	}
}

// TestChaosCheckerOlder checks that a read of an older write notes the lost writes, and that these
// must never show again.
func TestChaosCheckerOlder(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	h := NewHistory("k")
	for i := range 4 {
		h.answeredAt(h.Write(at(10*i)), []outcome{Executed, Executed, unknown, Executed}[i], at(10*i+1))
	}
	show := func(s sight, seq uint64) (*absence, error) { return h.read(s, AppendValue(nil, "k", seq), at(99)) }
	before := h.Look()
	h.Write(at(50)) // 5 is in flight
	lost, err := show(before, 1)
	if err != nil || lost == nil || lost.lost != 2 || !lost.acked.Equal(at(11)) || lost.shown != 1 || lost.floor != 4 {
		t.Errorf("write 1 shows after write 4: %+v, %v", lost, err)
	}
	if lost, err := show(before, 4); lost != nil || err != nil {
		t.Errorf("write 4 shows to who asked before: %v, %v", lost, err)
	}
	if lost, err := show(before, 2); lost == nil || err != nil {
		t.Errorf("write 2 shows to who asked before: %v, %v", lost, err)
	}
	for seq, again := range map[uint64]bool{2: false, 3: true, 4: true, 5: false} {
		if _, err := show(h.Look(), seq); (err != nil) != again {
			t.Errorf("write %d shows after 2 to 4 were undone: %v", seq, err)
		}
	}
	h.Forget()
	if lost, err := show(h.Look(), 3); lost != nil || err != nil {
		t.Errorf("write 3 shows after all is forgotten: %v, %v", lost, err)
	}
}

// TestChaosCheckerDeaths checks that a death explains the loss of the last writes if there are two
// copies or the partition moved, and no other loss.
func TestChaosCheckerDeaths(t *testing.T) {
	died := time.Unix(1000, 0)
	// age is how long before the death the write was acknowledged.
	f := func(copies int, keepsAll, anew bool, partition uint16, shown uint64, age time.Duration, explained bool) {
		t.Helper()
		first := &ring.Table{Epoch: 1, Issuer: "n1", Nodes: []ring.Member{{ID: "n1"}, {ID: "n2"}}}
		second := &ring.Table{Epoch: 2, Issuer: "n1", Nodes: first.Nodes, Ancestors: []ring.Version{first.Version()}}
		for p := range first.Since {
			first.Since[p], second.Since[p], second.Owner[p] = 1, 1, 1
		}
		first.Owner[8] = 1
		first.Moves = []ring.Move{{Partition: 9, From: 0, To: 1}}
		if anew {
			second.Since[partition] = 2
		}
		x := &Rig{C: &harness.Cluster{}, Options: Options{Copies: copies}, losses: map[string]int{}}
		x.deaths = []death{{"n1", died, died.Add(time.Millisecond)}}
		x.KeepsAll.Store(keepsAll)
		x.KeepsAll.since.Store(0) // from the beginning
		x.Tables = &tableWatch{seen: map[ring.Version]time.Time{}}
		x.Tables.note(first, died.Add(-time.Minute))
		x.Tables.note(second, died.Add(time.Second))
		a := absence{key: "k", partition: partition, from: died.Add(-age), to: died.Add(2 * time.Second), shown: shown, lost: 3, acked: died.Add(-age)}
		if err := x.judge(a); (err == nil) != explained {
			t.Errorf("%d copies, all kept %v, anew %v, partition %d, write %d shown, lost for %v: %v", copies, keepsAll, anew, partition, shown, age, err)
		}
	}
	const young, old = lossLimit - time.Millisecond, lossLimit + time.Millisecond
	f(2, true, false, 7, 1, young, true)
	f(2, true, false, 7, 0, young, true)
	f(2, true, false, 7, 1, old, false)
	f(2, true, false, 7, 0, old, false)
	f(2, true, false, 7, 1, -time.Second, false) // written after the death
	f(2, true, false, 8, 1, young, false)        // of the other node
	f(1, true, false, 7, 1, young, false)
	f(1, false, false, 9, 1, young, true) // it was on its way to another node
	f(1, false, false, 9, 1, old, false)
	f(1, false, true, 7, 0, old, true)
	f(1, false, true, 7, 1, old, false) // an older write, where all began anew
	f(1, true, true, 7, 0, old, false)
	f(1, false, false, 7, 0, old, false)
}

func TestChaosCheckerDeletion(t *testing.T) {
	now := time.Unix(1000, 0)
	h := NewHistory("k")
	present := func(may, must bool) {
		t.Helper()
		if gotMay, gotMust := h.presence(h.Look().issued); gotMay != may || gotMust != must {
			t.Errorf("may and must be there: %v and %v, want %v and %v", gotMay, gotMust, may, must)
		}
	}
	// missing judges a read that finds nothing.
	missing := func(noted bool) {
		t.Helper()
		if lost, err := h.read(h.Look(), nil, now); err != nil || (lost != nil) != noted {
			t.Errorf("a read of nothing is noted: %v, %v, want %v", lost, err, noted)
		}
	}
	present(false, false)
	h.Answered(h.Write(now), Executed) // 1
	present(true, true)
	before := h.Look()
	deletion := h.remove(now) // 2
	missing(false)
	present(true, false)
	h.Answered(deletion, Executed)
	missing(false)
	present(false, false)
	if _, err := h.read(before, AppendValue(nil, "k", 1), now); err != nil {
		t.Errorf("a read from before the deletion: %v", err)
	}
	if lost, err := h.read(h.Look(), AppendValue(nil, "k", 1), now); err != nil || lost == nil || lost.lost != 1 {
		t.Errorf("a deleted value is believed: %v, %v", lost, err)
	}
	if a := h.revived(now); a.lost != 1 || a.acked.IsZero() || a.shown == 0 {
		t.Errorf("a deletion that was undone: %+v", a)
	}
	h.Answered(h.remove(now), notExecuted) // 3
	h.Answered(h.Write(now), unknown)      // 4
	present(true, false)
	missing(false)
	h.Answered(h.Write(now), Executed) // 5
	present(true, true)
	missing(true)
	present(true, false) // it was lost
}

func TestChaosCheckerCounter(t *testing.T) {
	now := time.Unix(1000, 0)
	c := &counter{key: "k"}
	f := func(n int64, right, lost bool) {
		t.Helper()
		a, err := c.incremented(n, now, now)
		if (err == nil) != right || (a != nil) != lost {
			t.Errorf("INCR that answers %d: %v, %v", n, a, err)
		}
	}
	f(1, true, false)
	f(2, true, false)
	f(4, false, false) // executed twice
	c.unknown = 1
	f(6, true, false)
	f(7, true, false)
	f(1, true, true) // everything was lost
	f(2, true, false)
	c.last = 10
	f(9, true, true) // out of order
}

func TestChaosCheckerTables(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
	}
	w := &tableWatch{seen: map[ring.Version]time.Time{}}
	first := &ring.Table{Epoch: 1, Issuer: "n1"}
	second := &ring.Table{Epoch: 2, Issuer: "n1", Ancestors: []ring.Version{first.Version()}}
	for p := range first.Since {
		first.Since[p], second.Since[p] = 1, 1
	}
	second.Since[7] = 2
	w.note(first, at(0))
	w.note(second, at(10))
	f := func(partition uint16, from, to float64, explained bool) {
		t.Helper()
		if err := w.judge(absence{key: "k", partition: partition, from: at(from), to: at(to)}); (err == nil) != explained {
			t.Errorf("missing in partition %d from %v to %v: %v", partition, from, to, err)
		}
	}
	f(7, 9, 11, true)
	f(7, 9, 9.5, true) // seen a moment after it was issued
	f(7, 5, 7, false)
	f(7, 10.5, 11, true) // written at the old owner
	f(7, 12, 13, false)  // written after the move
	f(8, 9, 11, false)
}

// TestStandstillExplains: a table is seen late, a level known late, and writes are lost that were
// older than else, if the machine stood still meanwhile.
func TestStandstillExplains(t *testing.T) {
	const stood = 3 * time.Second
	begin := time.Now().Add(-time.Hour)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	f := func(what string, explained func(x *Rig) bool) {
		t.Helper()
		for _, still := range []bool{false, true} {
			x := &Rig{C: &harness.Cluster{}, Options: Options{Copies: 2}, losses: map[string]int{}}
			if still {
				x.Pulse = &pulse{began: time.Now(), late: []Timing{{begin: at(10), took: stood}}}
			}
			x.Tables = &tableWatch{seen: map[ring.Version]time.Time{}, pulse: x.Pulse}
			if got := explained(x); got != still {
				t.Errorf("%s is believed: %v, want %v", what, got, still)
			}
		}
	}
	began := func(x *Rig, seen, from, to float64) bool {
		x.Tables.began[7] = []time.Time{at(seen)}
		return x.judge(absence{key: "k", partition: 7, from: at(from), to: at(to), lost: 1}) == nil
	}
	f("a table that is seen behind its effect", func(x *Rig) bool { return began(x, 14, 9, 10.5) })
	f("a write to an old owner", func(x *Rig) bool { return began(x, 9.5, 12, 14) })
	f("an older loss", func(x *Rig) bool {
		first := &ring.Table{Epoch: 1, Nodes: []ring.Member{{ID: "n1"}, {ID: "n2"}}}
		for p := range first.Owner {
			first.Owner[p] = 0
		}
		x.Tables.note(first, at(0))
		x.deaths = []death{{"n1", at(13.05), at(13.06)}}
		clear(x.Tables.began[:])
		return x.judge(absence{key: "k", partition: 7, from: at(9), to: at(14), lost: 1, acked: at(10)}) == nil
	})
	f("a table in use", func(x *Rig) bool {
		first, second := &ring.Table{Epoch: 1, Nodes: []ring.Member{{ID: "n1"}}}, &ring.Table{Epoch: 2, Nodes: []ring.Member{{ID: "n2"}}}
		x.Tables.note(first, at(0))
		x.Tables.note(second, at(9.5))
		return x.Tables.ownedAbout("n1", 7, at(12.5))
	})
}

// TestGaveUp: what the logs say of members that got no processor, but not of the victim.
func TestGaveUp(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	x := &Rig{C: &harness.Cluster{}}
	for id, lines := range map[string]string{
		"n1": "time=2026-01-02T03:04:06.000Z level=WARN msg=fenced reason=\"a loop stood still for 2s\"\n",
		"n2": "time=2026-01-02T03:04:07.000Z level=WARN msg=\"fence lifted\"\n",
		"p1": "time=2026-01-02T03:04:05.000Z level=INFO msg=stopping\n" +
			"time=2026-01-02T03:04:08.000Z level=WARN msg=broke node=n2 err=\"node sent nothing for too long\"\n",
	} {
		m := &harness.Member{ID: id, Logged: filepath.Join(t.TempDir(), id)}
		if err := os.WriteFile(m.Logged, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		x.C.Members = append(x.C.Members, m)
	}
	f := func(but string, seconds int) {
		t.Helper()
		var victim *harness.Member
		for _, m := range x.C.Members {
			if m.ID == but {
				victim = m
			}
		}
		last := begin.Add(time.Duration(seconds) * time.Second)
		if got := x.gaveUpLast(victim); !got.Equal(last) {
			t.Errorf("a member but %q was given up at %v, want %v", but, got, last)
		}
		if !x.gaveUpSince(last.Add(-time.Second), victim) || x.gaveUpSince(last, victim) {
			t.Errorf("a member but %q was given up since, or not", but)
		}
	}
	f("", 3)
	f("n1", 3)
	f("n2", 1)
	if !x.stumblesSince(begin) || x.stumblesSince(begin.Add(time.Second)) {
		t.Error("a node stood still after a second")
	}
}

// TestStandstillDelaysLevels: members know of a level later if the machine stood still.
func TestStandstillDelaysLevels(t *testing.T) {
	w := &tableWatch{seen: map[ring.Version]time.Time{}, pulse: &pulse{began: time.Now()}}
	w.note(&ring.Table{Epoch: 1, Level: 3}, time.Now().Add(-2*watchLag))
	w.pulse.late = []Timing{{begin: time.Now().Add(-2 * watchLag), took: time.Hour}}
	if w.atLevel(3) {
		t.Error("a level is known when the machine has stood still since it came")
	}
	if w.pulse.late = nil; !w.atLevel(3) || w.atLevel(4) {
		t.Error("a level is not known in time, or too early")
	}
}

// TestPulseStandsStill: who asks for how long the machine stood still may run again before the pulse.
func TestPulseStandsStill(t *testing.T) {
	now := time.Now()
	p := &pulse{began: now.Add(-time.Second), late: []Timing{{begin: now.Add(-time.Minute), took: time.Second}}}
	if missed := p.Missed(now.Add(-2*time.Second), now); missed < time.Second-beat || missed > 30*time.Second {
		t.Errorf("the machine stood still for %v, want one second", missed)
	}
}

// TestChaosLevels: a level that members have known for long is not in doubt when the cluster comes
// to the next one.
func TestChaosLevels(t *testing.T) {
	w := &tableWatch{seen: map[ring.Version]time.Time{}}
	now := time.Now()
	w.note(&ring.Table{Epoch: 1, Level: 7}, now.Add(-2*watchLag))
	w.note(&ring.Table{Epoch: 2, Level: 8}, now)
	for level, want := range map[uint8]bool{0: true, 7: true, 8: false, 9: false} {
		if got := w.atLevel(level); got != want {
			t.Errorf("all know level %d: %v, want %v", level, got, want)
		}
	}
}
