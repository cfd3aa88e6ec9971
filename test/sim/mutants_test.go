package sim

import "testing"

// brokenRule is one that must not be broken, and what must happen at least for that to show.
type brokenRule struct {
	name string
	rule func(*rules)
	only []mischief // nil: anything
}

// broken are rules of which each, when it is broken, leads to a violation within few histories.
var broken = []brokenRule{
	{"serve before TAKE is acknowledged", func(r *rules) { r.serveBeforeTake = true }, []mischief{joins}},
	{"acknowledge TAKE before the new owner has everything", func(r *rules) { r.ackBeforeFlush = true }, []mischief{joins, leaves}},
	{"keep what its living owner has not handed over", func(r *rules) { r.keepUnhanded, r.handOnce = true, true }, []mischief{joins, leaves}},
	{"pass no barrier", func(r *rules) { r.skipBarrier = true }, []mischief{joins}},
	{"never fence", func(r *rules) { r.neverFence = true }, []mischief{stops}},
	{"ignore generations", func(r *rules) { r.ignoreGenerations = true }, nil},
	{"refuse nothing behind a refused command", func(r *rules) { r.neverLatch = true }, nil},
	{"repeat what must not be repeated", func(r *rules) { r.repeatAll = true }, []mischief{resets, stops}},
	{"plan without reports", func(r *rules) { r.ignoreReports = true }, []mischief{joins}},
	{"ask only whom the data's epoch is news to", func(r *rules) { r.askBySince = true }, []mischief{joins, leaves}},
	{"take effects for what is served", func(r *rules) { r.admitAll = true }, []mischief{joins, leaves, stops}},
	{"lose what is handed over with an overflow", func(r *rules) { r.handOnce = true }, []mischief{joins, leaves}},
	{"keep a copy whose stream begins anew unheard", func(r *rules) { r.refuseBegin = true }, nil},
	{"let a coordinator go on after a stop", func(r *rules) { r.officeAsleep, r.hastyOffice = true, true }, []mischief{stops}},
}

// rarelyNoticed are those of which the consequences need many histories to show, or are kept away by others: with
// -sim.rounds they are looked for in that many.
var rarelyNoticed = []brokenRule{
	{"continue any copy that was handed over", func(r *rules) { r.ignoreSeals = true }, nil},
	{"promote a copy that is still filling", func(r *rules) { r.promoteFilling = true }, []mischief{joins, crashes}},
	{"ignore eras", func(r *rules) { r.ignoreEras = true }, []mischief{stops, joins, leaves}},
	{"say RETRY while refusals are on their way", func(r *rules) { r.retryEarly = true }, []mischief{joins, leaves}},
	{"send held commands before the others are back", func(r *rules) { r.resendEarly = true }, []mischief{joins, leaves}},
	{"adopt foreign tables", func(r *rules) { r.adoptForeign = true }, []mischief{cuts}},
	{"do not ask who was dropped as dead", func(r *rules) { r.forgetDeparted = true }, []mischief{stops}},
	{"date a copy by the receiver's table", func(r *rules) { r.ignoreSince = true }, []mischief{stops, cuts}},
	{"begin copies before the old ones are dropped", func(r *rules) { r.copyEarly = true }, []mischief{joins}},
	{"count a copy that was handed over as none", func(r *rules) { r.handedIsNothing = true }, []mischief{joins, crashes, crashesOfTwo}},
	{"let another life of a node acknowledge", func(r *rules) { r.anyoneAcknowledges = true }, []mischief{crashes}},
	{"issue at once when coming into office", func(r *rules) { r.hastyOffice = true }, []mischief{stops}},
	{"bury nodes that were never met", func(r *rules) { r.buryStrangers = true }, []mischief{joins}},
}

// TestBrokenRules shows that the simulation notices.
func TestBrokenRules(t *testing.T) {
	within, all := uint64(100), broken
	if testing.Short() {
		within, all = 30, broken[:4]
	}
	if *rounds != 0 {
		within, all = uint64(*rounds), append(all, rarelyNoticed...)
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			o := options{only: b.only}
			if b.only != nil {
				o.copies = 2
			}
			b.rule(&o.rules)
			for o.seed = 1; o.seed <= within; o.seed++ {
				if w := history(o); w.fault != "" {
					t.Logf("caught by history %d: %s", o.seed, w.fault)
					return
				}
			}
			t.Errorf("not caught in %d histories", within)
		})
	}
}
