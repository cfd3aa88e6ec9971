package ownership

import "time"

// A node that did not run for a while does not know what the others decided meanwhile: declared
// dead, it may have lost its partitions to somebody who serves them by now. So a loop that finds
// that it stood still for longer than the others need to decide such a thing fences the node before
// it reads anything:
//
//	loop stood still ──▶ fenced ──▶ confirm: hear the table from another member
//	                       ▲               │ failed, or a new doubt: again
//	                       │               ▼
//	               serve nothing     install it, drop what was lost ──▶ not fenced
//
// One loop is enough: members are heard on other threads, but a stopped process stops all of them,
// and a mistaken fence costs a round trip.

// Fence decides whether a node doubts its table. Unlike a Machine it may be asked while a barrier
// is pending: loops ask it. The zero Fence with a Limit is ready to use.
type Fence struct {
	Limit  time.Duration // of a standstill
	Broken Broken        // for the simulation

	doubts uint64 // so many times there was a reason to fence
	seen   uint64 // so many of them before the confirmation under way began
	raised bool
}

// Stalled is the event that a loop did not run for gap. The result is Doubt's.
func (f *Fence) Stalled(gap time.Duration) (raise bool) {
	return gap > f.Limit && !f.Broken.NeverFence && f.Doubt()
}

// Doubt is the event that something casts doubt on the table: others declared this node dead, say.
// It reports whether that raises the fence: then the node stops serving at once and confirms its
// table. If not, the fence is up already.
func (f *Fence) Doubt() (raise bool) {
	f.doubts++
	raise = !f.raised
	f.raised = true
	return raise
}

// Confirm is the event that the node begins to hear the table from another member.
func (f *Fence) Confirm() { f.seen = f.doubts }

// Confirmed is the event that the node obeys what it has heard. It reports whether the fence falls.
// If not, there was another doubt meanwhile, and the node confirms again.
func (f *Fence) Confirmed() (lift bool) {
	if f.doubts != f.seen {
		return false
	}
	f.raised = false
	return true
}
