package ownership

import "github.com/dunlin-cache/dunlin/ring"

// Gate decides which commands of one pipe are executed. Its two rules keep a proxy's commands in
// order though nodes refuse some of them:
//
// Refusals latch. Once a command was refused, all later commands of the pipe on its partitions are,
// too. The proxy sent them before it knew: executed now, because a take-over has ended in between,
// they would overtake the refused one, which comes again. The proxy says DUNLIN RETRY when it has
// all of them back and begins to repeat.
//
// A gained partition is believed to be gained. A proxy gives up what it sent to a silent node, and
// sends it to the next owner. If the partition comes back, the given-up command may only now arrive
// here, and would undo what was written since. So a pipe is believed about a gained partition once
// its proxy has shown, in DUNLIN RETRY, that it knows the epoch: what it gave up before cannot say
// that.
//
// A nil Gate is that of a client, to which neither applies. A Gate belongs to its connection's
// loop.
type Gate struct {
	Broken Broken // for the simulation

	latched *ring.PartitionSet // partitions of refused commands; nil: none
	era     uint64             // the newest epoch that the proxy is known to know
}

// Verdict is what becomes of a command.
type Verdict uint8

const (
	Serve Verdict = iota // execute it
	Wait                 // have it come again
	Moved                // send it to the owner
)

// Open is the event that the pipe was opened under the view.
func (g *Gate) Open(v *View) { g.era = v.Epoch() }

// Verdict decides about a command on p. While the node is fenced, what the table says of others may
// be as old as what it says of this node.
func (g *Gate) Verdict(v *View, p uint16, fenced bool) Verdict {
	switch {
	case v.Table == nil || fenced || g.bars(v, p) || v.Standing[p] == Gained:
		return Wait
	case v.Standing[p] == Serving:
		return Serve
	default:
		return Moved
	}
}

// bars reports whether the pipe's own past forbids a command on p.
func (g *Gate) bars(v *View, p uint16) bool {
	return g != nil && (g.latched != nil && g.latched.Has(p) || v.Began[p] > g.era && !g.Broken.IgnoreEras)
}

// Careful reports whether any partition that the view serves may get another verdict than Serve. It
// changes with the view, the fence, Refused and Retry.
func (g *Gate) Careful(v *View, fenced bool) bool {
	return fenced || g != nil && (g.latched != nil || g.Outdated(v))
}

// Outdated reports whether a command over many partitions has to come again, because the pipe may
// hold commands from before this node gained one of them.
func (g *Gate) Outdated(v *View) bool {
	return g != nil && v.Newest > g.era && !g.Broken.IgnoreEras
}

// Refused is the event that a command on the partitions was refused.
func (g *Gate) Refused(partitions ...uint16) {
	if g == nil || g.Broken.NeverLatch {
		return
	}
	if g.latched == nil {
		g.latched = new(ring.PartitionSet)
	}
	for _, p := range partitions {
		g.latched.Add(p)
	}
}

// Retry is the event that the proxy has all refused commands back, and knows the epoch.
func (g *Gate) Retry(epoch uint64, v *View) {
	if g == nil {
		return
	}
	g.latched = nil
	g.era = max(g.era, min(epoch, v.Epoch()))
}
