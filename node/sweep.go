package node

// Expired keys disappear when they are looked up. Those that nobody asks for
// again are found by this sweep.

const (
	// sweepBudget is how many keys one sweep looks at: about 0.1 ms.
	sweepBudget = 1000
	// sweepRounds is how often a sweep goes on at once while it finds much.
	sweepRounds = 8
)

// sweep removes expired keys, more while more than a quarter of what it looks
// at is expired, as Redis does. The first loop's worker does it for the node: the
// engine keeps its place, and two sweepers would only meet at its locks.
func (w *worker) sweep() {
	if w.loop != w.node.workers[0].loop {
		return
	}
	now := w.loop.UnixMilli()
	for range sweepRounds {
		if w.node.engine.Sweep(now, sweepBudget) < sweepBudget/4 {
			return
		}
	}
}
