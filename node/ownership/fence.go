package ownership

import "time"

// A node that did not run for a while, or whose machine was suspended, does not know what the others
// decided meanwhile. They may have declared it dead, and another node may serve its partitions by
// now. So a loop that stood still for longer than such a failover takes fences the node before it
// reads anything:
//
//	loop stood still ──▶ fenced ──▶ confirm: hear the table from another member
//	                       ▲               │ failed, or a new doubt: again
//	                       │               ▼
//	               serve nothing     install it, drop what was lost ──▶ not fenced
//	                                 or, if nobody is left who knows, drop all
//
// One loop is enough: members are heard on other threads, but a stopped process stops all of them,
// and a mistaken fence costs a round trip.

// Fence decides whether a node doubts its table. Loops report to it, so unlike a Machine it accepts
// events while a barrier is pending. The zero Fence with a Limit is ready to use.
type Fence struct {
	Limit time.Duration // the longest standstill that raises no doubt
	// Absence is for how long a node must stand still before the others can have gone on without it.
	Absence time.Duration
	Broken  Broken // for the simulation

	doubts uint64 // number of reasons to fence so far
	seen   uint64 // doubts when the confirmation under way began
	raised bool
	stood  time.Duration // still, while the fence is up and just before
}

// Stalled is the event that a loop did not run for gap. If that is too long, it is a Doubt and
// returns Doubt's result.
func (f *Fence) Stalled(gap time.Duration) (raise bool) {
	if gap <= f.Limit || f.Broken.NeverFence {
		return false
	}
	f.stood += gap
	return f.Doubt()
}

// WasAbsent reports whether the others can have gone on without the node, so that what it serves may
// be out of date. If nobody is left who knows, that begins anew (Machine.Forget).
func (f *Fence) WasAbsent() bool { return f.stood > f.Absence && !f.Broken.KeepUnconfirmed }

// Doubt is the event that something casts doubt on the table: others declared this node dead, say.
// It reports whether the fence rises: then the node stops serving at once and confirms its table.
// If not, the fence is already up.
func (f *Fence) Doubt() (raise bool) {
	f.doubts++
	raise = !f.raised
	f.raised = true
	return raise
}

// Confirm is the event that the node begins to ask another member for the table.
func (f *Fence) Confirm() { f.seen = f.doubts }

// Confirmed is the event that the node obeys the table that it was told. It reports whether the
// fence falls. If not, there was another doubt meanwhile, and the node confirms again.
func (f *Fence) Confirmed() (lift bool) {
	if f.doubts != f.seen {
		return false
	}
	f.raised, f.stood = false, 0
	return true
}
