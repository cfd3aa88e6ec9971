package sim

import (
	"slices"
	"testing"
)

// brokenRule is one that must not be broken, and what must happen at least for that to show.
type brokenRule struct {
	name string
	rule func(*options)
	only []mischief // nil: anything
}

// broken are rules of which each, when it is broken, leads to a violation within few histories.
// Rules that whole histories rarely show are broken elsewhere: in random schedules of one machine,
// see random_test.go in node/ownership, node/replica, proxy/order and ring/office, or in the one
// history that showed the fault (TestPinned).
var broken = []brokenRule{
	{"serve before TAKE is acknowledged", func(r *options) { r.ownership.ServeBeforeTake = true }, []mischief{joins}},
	{"acknowledge TAKE before the new owner has everything", func(r *options) { r.ownership.AckBeforeFlush = true }, []mischief{joins, leaves}},
	{"pass no barrier", func(r *options) { r.ownership.SkipBarrier = true }, []mischief{joins}},
	{"never fence", func(r *options) { r.ownership.NeverFence = true }, []mischief{stops}},
	{"keep what its living owner has not handed over", func(r *options) {
		r.replica.KeepUnhanded, r.replica.HandOnce, r.overflows, r.hard = true, true, true, true
	}, []mischief{joins, leaves}},
	{"ignore generations", func(r *options) { r.ownership.IgnoreGenerations = true }, nil},
	{"refuse nothing behind a refused command", func(r *options) { r.ownership.NeverLatch = true }, []mischief{stops}},
	{"execute commands behind a write that is executed later", func(r *options) { r.ownership.PassBusy, r.later = true, true }, nil},
	{"repeat what must not be repeated", func(r *options) { r.order.RepeatAll, r.busy = true, true }, []mischief{resets, stops}},
	{"repeat what a later write has replaced", func(r *options) { r.order.RepeatOld, r.busy = true, true }, []mischief{resets, stops}},
	{"send past what is parked", func(r *options) { r.order.PassParked, r.busy = true, true }, []mischief{joins, leaves}},
	{"change the route of outstanding commands, and do not wait for them", func(r *options) {
		r.order.IgnoreRoutes, r.order.ResendEarly, r.busy, r.narrow, r.hard = true, true, true, true, true
	}, []mischief{joins, leaves}},
	{"change lanes with commands outstanding", func(r *options) { r.order.ChangeLanes = true }, []mischief{joins, leaves}},
	{"believe that a node has covered what it was asked about", func(r *options) { r.wide.TrustAnswers, r.busy = true, true }, []mischief{joins, leaves}},
	{"ask only whom the data's epoch is news to", func(r *options) { r.ownership.AskBySince = true }, []mischief{joins, leaves}},
	{"take effects for what is served", func(r *options) { r.replica.AdmitServed = true }, []mischief{joins, leaves, stops}},
	{"lose what is handed over with an overflow", func(r *options) { r.replica.HandOnce, r.overflows = true, true }, []mischief{joins, leaves}},
	{"let another life of a node acknowledge", func(r *options) { r.ownership.AnyoneAcknowledges = true }, []mischief{crashes}},
	{"leave before the new owners have everything", func(r *options) {
		r.ownership.LeaveEarly, r.hard, r.overflows, r.busy, r.restless = true, true, true, true, true
	}, []mischief{leaves, joins}},
	{"forget the owner before with one copy", func(r *options) { r.office.NeverShelter, r.copies = true, 1 }, []mischief{crashesOfTakers}},
	{"count nodes that do not answer", func(r *options) { r.majority, r.office.CountSilent = true, true }, []mischief{cuts}},
	{"count nodes for a side that are seen on another", func(r *options) { r.office.CountLost = true }, []mischief{stopsOfIssuers}},
	{"ignore eras", func(r *options) { r.ownership.IgnoreEras, r.hard = true, true }, []mischief{returns}},
	{"hand over what is not what was sealed any more", func(r *options) { r.replica.HandStale, r.hard, r.overflows = true, true, true }, []mischief{stops, cuts, resets}},
	{"keep a copy whose stream begins anew unheard", func(r *options) {
		r.replica.RefuseBegin, r.hard, r.overflows, r.busy, r.narrow = true, true, true, true, true
	}, []mischief{stops, joins, leaves}},
	{"promote a copy that is still filling", func(r *options) {
		r.replica.PromoteFilling, r.hard, r.overflows = true, true, true
	}, []mischief{joins, crashes}},
	{"adopt foreign tables", func(r *options) {
		r.adoptForeign, r.ownership.AdoptForeign, r.hard, r.restless = true, true, true, true
	}, []mischief{cuts}},
	{"count a copy that was handed over as none", func(r *options) {
		r.replica.HandedIsNothing, r.hard, r.overflows, r.restless = true, true, true, true
	}, []mischief{crashesOfTakers, leaves, stopsOfTwo, stops}},
	{"let the effects of a transaction reach copies one by one", func(r *options) { r.splitUnits, r.later, r.holds, r.busy = true, true, true, true }, []mischief{crashes}},
	{"hand over what is held", func(r *options) { r.ownership.HandHeld, r.later, r.holds, r.busy = true, true, true, true }, []mischief{joins, leaves}},
	{"never ask again for what was held", func(r *options) { r.ownership.AskOnce, r.later, r.holds, r.busy = true, true, true, true }, []mischief{joins}},
	{"count what a node had before an absence", func(r *options) {
		r.ownership.IgnoreAbsence, r.hard, r.overflows, r.restless = true, true, true, true
	}, []mischief{stops}},
	{"give a claim no turn", func(r *options) { r.noTurns, r.claims = true, true }, nil},
	{"pop where a claim has its turn", func(r *options) { // hardly any history shows it, but one of before other rules
		r.ignoreTurns, r.claims, r.order.RepeatOld, r.setsAgain, r.order.ForgetDeadlines, r.anyTime = true, true, true, true, true, true
	}, nil},
	{"end the turn of a claim ahead of the pop", func(r *options) { r.order.PassEarly, r.claims = true, true }, nil},
	{"end the turn of a claim whose pop is parked", func(r *options) {
		r.order.PassUnsent, r.claims, r.later, r.restless = true, true, true, true
	}, []mischief{joins, leaves, resets, stops}},
	{"do not claim again what came back", func(r *options) { r.order.ForgetUndone, r.claims = true, true }, nil},
	{"claim again without an age", func(r *options) { r.order.ForgetAges, r.claims = true, true }, nil},
	{"do not end a command with claims in time", func(r *options) { r.order.ForgetLimits, r.claims = true, true }, nil},
	{"forget for how long a command waits that no node has", func(r *options) { r.order.ForgetDeadlines, r.claims = true, true }, nil},
	{"let $ mean another ID when it is claimed again", func(r *options) { r.order.ForgetIDs, r.reads = true, true }, nil},
	{"let $ mean another ID when a read is sent again", func(r *options) {
		r.order.ForgetIDs, r.reads, r.alone, r.restless = true, true, true, true
	}, []mischief{joins, leaves, resets}},
	{"serve one of those who wait for an entry", func(r *options) { r.oneReader, r.reads, r.restless = true, true, true }, nil},
	{"take an element that is moved before it is stored", func(r *options) {
		r.takeFirst, r.claims, r.moves, r.restless, r.hard, r.order.ForgetDeadlines, r.anyTime = true, true, true, true, true, true, true
	}, []mischief{crashes, stops}},
	{"move elements between lists that others use", func(r *options) { r.moveUnheld, r.claims, r.moves = true, true, true }, nil},
	{"follow a channel while the owner before may have more", func(r *options) { r.followEarly, r.channels, r.busy = true, true, true }, []mischief{joins, leaves}},
	{"end at the owner before while that may publish", func(r *options) { r.endEarly, r.channels, r.busy = true, true, true }, []mischief{joins, leaves}},
	{"listen where a channel is about to come", func(r *options) { r.listenEarly, r.channels, r.busy = true, true, true }, []mischief{joins, leaves}},
	{"keep nothing for those who follow", func(r *options) { r.noBacklogs, r.channels, r.busy = true, true, true }, []mischief{joins, leaves}},
	{"do not pass on what those have not got who have not followed", func(r *options) {
		r.noMissed, r.channels, r.busy, r.restless = true, true, true, true
	}, []mischief{joins, leaves, stopsOfProxies}},
	{"believe that everything of a channel was handed over", func(r *options) {
		r.trustAnybody, r.knowAnybody, r.channels, r.busy, r.restless, r.hard = true, true, true, true, true, true
	}, []mischief{crashesOfTakers, crashes, joins, leaves}},
	{"believe that all who follow were told of", func(r *options) {
		r.knowAnybody, r.channels, r.busy, r.script = true, true, true, sleepThroughMoves
	}, nil},
	{"do not return what was popped for who is gone", func(r *options) { r.noReturns, r.claims = true, true }, nil},
}

// caughtBy are histories that catch a broken rule which few catch: the search begins there.
var caughtBy = map[string]uint64{
	"pass no barrier": 18,
	"keep what its living owner has not handed over":                     38,
	"ignore generations":                                                 16,
	"repeat what must not be repeated":                                   17,
	"repeat what a later write has replaced":                             109,
	"change the route of outstanding commands, and do not wait for them": 16,
	"lose what is handed over with an overflow":                          13,
	"let another life of a node acknowledge":                             26,
	"leave before the new owners have everything":                        35,
	"forget the owner before with one copy":                              36,
	"count nodes that do not answer":                                     153,
	"ignore eras":                                                        50,
	"keep a copy whose stream begins anew unheard":                       6,
	"promote a copy that is still filling":                               39,
	"adopt foreign tables":                                               8,
	"count a copy that was handed over as none":                          31,
	"never ask again for what was held":                                  7,
	"count what a node had before an absence":                            179,
	"pop where a claim has its turn":                                     99,
	"do not end a command with claims in time":                           15,
	"let $ mean another ID when a read is sent again":                    7,
	"serve one of those who wait for an entry":                           45,
	"take an element that is moved before it is stored":                  89,
	"follow a channel while the owner before may have more":              23,
	"end at the owner before while that may publish":                     5,
	"do not pass on what those have not got who have not followed":       15,
	"believe that everything of a channel was handed over":               69,
}

// TestBrokenRules shows that the simulation notices.
func TestBrokenRules(t *testing.T) {
	within, all := uint64(300), broken
	if testing.Short() {
		within, all = 30, broken[:4]
	}
	if *rounds != 0 {
		within = uint64(*rounds)
	}
	for name := range caughtBy {
		if !slices.ContainsFunc(broken, func(b brokenRule) bool { return b.name == name }) {
			t.Errorf("there is no rule %q", name)
		}
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			o := options{only: b.only}
			if b.only != nil {
				o.copies = 2
			}
			b.rule(&o)
			first := max(caughtBy[b.name], 1)
			for o.seed = first; o.seed < first+within; o.seed++ {
				if w := history(o); w.fault != "" {
					t.Logf("caught by history %d, looked for from %d on: %s", o.seed, first, w.fault)
					return
				}
			}
			t.Errorf("not caught in %d histories", within)
		})
	}
}
