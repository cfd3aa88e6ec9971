package sim

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var (
	seed   = flag.Uint64("sim.seed", 0, "run the one history of this seed, and show all of its trace; with -sim.rounds begin with it")
	rounds = flag.Int("sim.rounds", 0, "how many histories to run")
	force  = flag.String("sim.force", "", "what every history has, whatever its seed, as in claims,holds: see forcible")
)

// forcible are the names of what -sim.force can ask for.
var forcible = map[string]func(*options){
	"busy":      func(o *options) { o.busy = true },
	"channels":  func(o *options) { o.channels = true },
	"claims":    func(o *options) { o.claims = true },
	"copies":    func(o *options) { o.copies = 2 },
	"hard":      func(o *options) { o.hard = true },
	"holds":     func(o *options) { o.holds, o.later = true, true },
	"later":     func(o *options) { o.later = true },
	"majority":  func(o *options) { o.majority = true },
	"moves":     func(o *options) { o.claims, o.moves = true, true },
	"narrow":    func(o *options) { o.narrow = true },
	"overflows": func(o *options) { o.overflows = true },
	"reads":     func(o *options) { o.reads = true },
	"restless":  func(o *options) { o.restless = true },
}

// pinned are the seeds of histories that found faults. They show a fault again when its fix is
// taken away. as has things happen without which the history would go another way.
var pinned = []struct {
	seed  uint64
	fault string
	as    func(*options)
	broke func(*options)
}{
	{190, "a lane is used while the node may execute what was sent in another one",
		func(o *options) { o.only, o.busy = []mischief{proxyCuts}, true },
		func(o *options) { o.order.ForgetStrays = true }},
	{250, "a node that slept confirms its table with a newcomer that has it from this node",
		func(o *options) {
			o.claims, o.order.RepeatOld, o.setsAgain, o.order.ForgetDeadlines, o.anyTime = true, true, true, true, true
		},
		func(o *options) { o.office.AskNewcomers = true }},
	{71, "nodes that are not seen count for a table from before the sides of a split parted",
		func(o *options) { o.claims = true },
		func(o *options) { o.office.CountLost = true }},
	{226, "a node that slept takes a newcomer's answer for that of the dead node whose address it has",
		func(o *options) { o.restless, o.copies, o.order.ForgetProgress = true, 2, true },
		func(o *options) { o.office.AskNewcomers = true }},
	{1125, "a node that stood still shows what it published before once more, when a channel is to come back and then does not",
		func(o *options) { o.claims, o.channels = true, true },
		func(o *options) { o.keepUnhanded, o.handAway = true, true }},
	{633, "a node without which others went on hands over what it published before, when a transaction ends there",
		func(o *options) { o.claims, o.channels = true, true },
		func(o *options) { o.handAway, o.takeLate = true, true }},
	{3017, "what a node held when it died counts as handed over, and the copy of it is dropped",
		func(o *options) { o.restless, o.copies = true, 2 },
		func(o *options) { o.ownership.ForgetHeld = true }},
	{1, "a node that slept serves again what those have served who are gone",
		func(o *options) { o.script, o.copies = leaveSleeper, 2 },
		func(o *options) { o.ownership.KeepUnconfirmed = true }},
	{4, "a proxy slept until the node in the middle had forgotten it, and counts no gap when it follows to the next one",
		func(o *options) { *o = options{seed: 4, channels: true, busy: true, script: sleepThroughMoves} },
		func(o *options) { o.knowAnybody = true }},
}

// TestPinned runs the histories that found faults, with the fix and without it.
func TestPinned(t *testing.T) {
	for _, p := range pinned {
		o := seeded(p.seed)
		p.as(&o)
		if w := history(o); w.fault != "" {
			t.Errorf("seed %d, %s: %s", p.seed, p.fault, w.fault)
		}
		p.broke(&o)
		if w := history(o); w.fault == "" {
			t.Errorf("seed %d no longer shows that %s: find another one", p.seed, p.fault)
		}
	}
}

// seeded is the history of a seed as TestSim runs it.
func seeded(seed uint64) options {
	return options{
		seed: seed, overflows: seed%4 == 0, later: seed%2 == 1, holds: seed%4 == 1, claims: seed%3 == 0, reads: seed%5 == 3,
		moves: seed%9 == 0, channels: seed%8 == 3,
	}
}

// TestSim runs random histories and expects every promise to hold in all of them.
func TestSim(t *testing.T) {
	first, count, lines := uint64(1), 60, 120
	if testing.Short() {
		count = 20
	}
	if *seed != 0 {
		first, count, lines = *seed, 1, 1<<30
	}
	if *rounds != 0 {
		count = *rounds
	}
	forced := func(*options) {}
	for _, name := range strings.FieldsFunc(*force, func(r rune) bool { return r == ',' }) {
		before, also := forced, forcible[name]
		if also == nil {
			t.Fatalf("-sim.force knows no %q", name)
		}
		forced = func(o *options) { before(o); also(o) }
	}
	begun, steps, virtual := time.Now(), 0, time.Duration(0)
	failures := 0
	for i := range uint64(count) {
		o := seeded(first + i)
		forced(&o)
		w := history(o)
		steps += w.steps
		virtual += w.now
		if w.fault != "" {
			failures++
			t.Errorf("seed %d: %s", first+i, w.fault)
			if failures == 1 {
				t.Logf("trace (all of it with -run TestSim -sim.seed %d):\n%s", first+i, w.trace(lines))
			}
		} else if *seed != 0 && count == 1 {
			t.Logf("trace:\n%s", w.trace(lines))
		}
	}
	took := time.Since(begun)
	t.Logf("%d histories, %v of virtual time, %d events, in %v: %.0f histories a minute",
		count, virtual.Round(time.Second), steps, took.Round(time.Millisecond), float64(count)/took.Minutes())
}
