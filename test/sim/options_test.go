package sim

import "github.com/dunlin-cache/dunlin/ring"

// options are what one history begins with, and the rules that it breaks.
type options struct {
	seed   uint64
	copies int        // 0: by chance
	only   []mischief // what happens; nil: anything
	// majority sets --min-members to more than half of the nodes that there are in the beginning.
	majority bool
	// overflows has logs overflow more often than by chance.
	overflows bool
	rules
}

// rules are those of the protocol that can be broken, to see that the simulation notices.
type rules struct {
	serveBeforeTake    bool // a gained partition is served before anybody has acknowledged the table
	ackBeforeFlush     bool // TAKE is acknowledged before the new owner has everything
	promoteFilling     bool // a copy counts as in sync while its snapshot is still coming
	keepUnhanded       bool // a copy is kept although its living owner has not handed it over
	skipBarrier        bool // loops may still execute under the old view when the new one is taken for granted
	neverFence         bool // a node that was stopped serves on
	ignoreEras         bool // a node believes a pipe about partitions that it gained after the pipe's last RETRY
	ignoreGenerations  bool // an older generation of a pipe goes on being read
	neverLatch         bool // a node does not refuse what comes behind a refused command
	retryEarly         bool // a proxy says RETRY while refusals are still on their way
	resendEarly        bool // a proxy sends held commands again before all others have come back
	repeatAll          bool // a proxy repeats what must not be executed twice
	adoptForeign       bool // members adopt any table of a later epoch
	ignoreReports      bool // plan takes every copy for one in sync
	forgetDeparted     bool // a node that was dropped as dead is not asked
	askBySince         bool // who has acknowledged the epoch of a partition's data is not asked again
	admitAll           bool // the stream of an earlier owner goes into what is served
	ignoreSeals        bool // every copy that was handed over is continued
	ignoreSince        bool // a stream does not say of which data it is
	handOnce           bool // what is lost of a hand-over is not sent again
	refuseBegin        bool // a stream that begins again is not listened to, though its copy is kept
	copyEarly          bool // a copy is begun before what an older table left has been dropped
	handedIsNothing    bool // a copy that was handed over does not count until the new owner feeds it
	hastyOffice        bool // who takes itself for the coordinator gathers and issues at once
	anyoneAcknowledges bool // the acknowledgement of another life of a node counts
	officeAsleep       bool // a coordinator that was stopped goes on as if nothing had happened
	buryStrangers      bool // a node of the table that was never met is taken for dead at once
	foundAtOnce        bool // who has met another node founds a cluster before it has asked every join address
	ignoreAbsence      bool // what a node had before the cluster went on without it still counts
	trustSilence       bool // a copy counts as in sync however long nothing was heard of its owner
	neverAsk           bool // a node does not ask for the copies that it is to have and has not
	countSilent        bool // with --min-members, nodes count that are not yet declared dead though they do not answer
	leaveEarly         bool // a node that leaves says goodbye before the new owners have what it had
	neverShelter       bool // with one copy, the owner before is not named until the new one serves
}

// plan is ring.Plan.
func (w *world) plan(cur *ring.Table, alive []ring.Member, reports []*ring.Report, self ring.Member) *ring.Table {
	if w.ignoreReports && cur != nil {
		reports = nil
		for _, m := range alive {
			r := &ring.Report{Node: m.Name(), Version: cur.Version()}
			for p := range uint16(ring.Partitions) {
				r.Add(p)
			}
			reports = append(reports, r)
		}
	}
	next := ring.Plan(cur, alive, reports, self, w.copies, w.rng.Uint64)
	if next != nil && w.neverShelter {
		for p := range next.Follower {
			next.Follower[p] = ring.NoNode
		}
	}
	return next
}
