package chaos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosGapsNotice: a loss is believed if the listener's own proxy has counted one about then, and no more losses
// are than it has counted.
func TestChaosGapsNotice(t *testing.T) {
	x := &Rig{T: t, Pulse: newPulse()}
	t.Cleanup(x.Pulse.close)
	start := time.Now().Add(-time.Hour)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	c := &counts{}
	for i := range 400 { // at 100 two gaps, at 200 three messages, and at 300 a gap, of another process
		gaps, messages := 0, 0
		switch {
		case i >= 300:
			gaps = 1
		case i >= 200:
			gaps, messages = 2, 3
		case i >= 100:
			gaps = 2
		}
		c.note(at(float64(i)-0.1), at(float64(i)), gaps, messages)
	}
	n := int64(0)
	lost := func(seconds float64, channels ...string) (all []lostMessage) {
		for _, channel := range channels {
			n++
			all = append(all, lostMessage{message: message{1, channel, n}, listener: "a", sent: at(seconds), acked: at(seconds + 0.1)})
		}
		return all
	}
	f := func(want string, lost ...[]lostMessage) {
		t.Helper()
		var all []lostMessage
		for _, some := range lost {
			all = append(all, some...)
		}
		got := strings.Join(c.unexcused(x, all), "; ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	near := gapTime.Seconds()
	f("")
	f("", lost(100, "channel:1", "channel:1", "set", "del"), lost(100+near, "channel:2"), lost(99-near, "channel:3"))
	f("3 messages of 3 topics", lost(99, "channel:1", "set", "channel:2"))
	f("3 messages of 3 topics", lost(99, "channel:1", "set"), lost(99.9, "channel:2"))
	f("counts nothing about then", lost(99, "channel:1"), lost(101+near, "channel:1"))
	f("counts nothing about then", lost(98-near, "channel:1"), lost(99, "channel:1"))
	f("counts nothing about then", lost(99, "channel:1"), lost(250, "set"))
	f("", lost(199, "channel:1", "channel:1", "set"))
	f("4 messages of 2 topics", lost(199, "channel:1", "channel:1", "set", "set"))
	f("", lost(299, "channel:1", "channel:1", "channel:1"))
	f("2 messages of 2 topics", lost(299, "channel:1", "channel:2"))
}

// TestChaosGapsOfAProxy: what one proxy counts excuses what its own listener has lost, and that stays lost behind the
// fault that explains it.
func TestChaosGapsOfAProxy(t *testing.T) {
	gaps := map[string]int{}
	x := &Rig{T: t, C: &harness.Cluster{}, Pulse: newPulse(), Options: Options{relayed: true}}
	t.Cleanup(x.Pulse.close)
	g := &hearing{x: x, counts: map[string]*counts{}, said: map[message]*saying{}}
	x.hearing = g
	for _, id := range []string{"p1", "p2"} {
		metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "dunlin_proxy_broken_pipes_total{kind=\"a\"} 1\ndunlin_proxy_pubsub_gaps_total %d\n", gaps[id])
		}))
		t.Cleanup(metrics.Close)
		p := &harness.Member{ID: id, Role: "proxy", Admin: strings.TrimPrefix(metrics.URL, "http://")}
		x.C.Members = append(x.C.Members, p)
		g.names = append(g.names, listenerAt(p))
		g.counts[listenerAt(p)] = &counts{}
		g.counts[listenerAt(p)].look(p)
	}
	gaps["p1"] = 1
	g.says(message{1, "channel:0", 1}).acked = time.Now()
	missing := g.missing(time.Now(), true)
	if len(missing) != 2 {
		t.Errorf("both listeners miss a message: %+v", missing)
	}
	if g.givesUp(missing, false); len(g.missing(time.Now(), true)) > 0 || !g.heardAll("listener at p1") {
		t.Error("what is given up is waited for")
	}
	x.judgeChannels()
	want := "listener at p2: {speaker:1 channel:channel:0 n:1}"
	if got := strings.Join(x.violations, "; "); len(x.violations) != 1 || !strings.Contains(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestChaosExpiryThatIsNotTold: a key that is lost with its node never expires. Any other does, and a listener that is
// not told needs a gap.
func TestChaosExpiryThatIsNotTold(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	first := &ring.Table{Epoch: 1, Issuer: "n1", Nodes: []ring.Member{{ID: "n1"}, {ID: "n2"}}}
	second := &ring.Table{Epoch: 2, Issuer: "n1", Nodes: first.Nodes, Ancestors: []ring.Version{first.Version()}}
	for p := range first.Since {
		first.Since[p], second.Since[p] = 1, 2
	}
	x := &Rig{Tables: &tableWatch{seen: map[ring.Version]time.Time{}}, deaths: []death{{"n1", at(200), at(201)}, {"n2", at(300), at(301)}}}
	x.Tables.note(first, at(0))
	x.Tables.note(second, at(100))
	for seconds, want := range map[int]bool{50: false, 95: true, 150: false, 195: true, 290: false, 295: false} {
		m := lostMessage{message: message{1, expired, 4}, sent: at(seconds), acked: at(seconds)}
		if got := m.wentWithItsKey(x, 0, time.Time{}); got != want {
			t.Errorf("the key that was set after %d s may be lost: %v, want %v", seconds, got, want)
		}
		if m.channel = "set"; m.wentWithItsKey(x, 0, time.Time{}) {
			t.Error("a SET may be lost with its key")
		}
	}
}

// TestChaosExpiryBehindMoves: what expires while its partition moves is told like anything else, in time from when it
// was stored and has moved. Only where moves do not end may one explain that it is not told.
func TestChaosExpiryBehindMoves(t *testing.T) {
	key := message{1, expired, 4}
	partition := ring.PartitionOf([]byte(noteKey(0, key.speaker, key.n)))
	now := time.Now()
	for _, goesOn := range []bool{false, true} {
		begin := now.Add(-time.Minute)
		x := &Rig{C: &harness.Cluster{}, Pulse: &pulse{began: now.Add(time.Hour)}}
		x.Tables = &tableWatch{seen: map[ring.Version]time.Time{}, pulse: x.Pulse}
		g := &hearing{x: x, names: []string{"a"}, said: map[message]*saying{}}
		moving := &ring.Table{Epoch: 1, Moves: []ring.Move{{Partition: partition}}}
		x.Tables.note(moving, begin.Add(-time.Second))
		moved := begin.Add(20 * time.Second)
		if !goesOn {
			x.Tables.note(&ring.Table{Epoch: 2}, moved)
			x.Tables.note(&ring.Table{Epoch: 3}, moved.Add(5*time.Second))
		}
		said := g.says(key)
		said.sent, said.acked = begin.Add(-time.Second), begin.Add(time.Second)
		missing := g.missing(begin, true)
		if len(missing) != 1 {
			t.Fatalf("%+v is missing", missing)
		}
		due, settled := x.dueBy(begin, missing)
		if settled == goesOn || settled && !due.Equal(moved.Add(noteTime+sweepTime)) {
			t.Errorf("moves that go on: %v: due %v behind begin, settled: %v", goesOn, due.Sub(begin), settled)
		}
		g.givesUp(missing, !settled)
		if told := len(x.violations) == 0; told != goesOn {
			t.Errorf("moves that go on: %v: found %q", goesOn, x.violations)
		}
	}
	x := &Rig{Pulse: &pulse{began: now.Add(time.Hour)}, Tables: &tableWatch{}}
	acked := now.Add(-time.Second)
	due, _ := x.dueBy(acked.Add(-time.Second), []lostMessage{{message: key, acked: acked}})
	if !due.Equal(acked.Add(noteTime + sweepTime)) {
		t.Errorf("a key that was stored late is due %v behind that", due.Sub(acked))
	}
}
