package ownership

import "github.com/dunlin-cache/dunlin/ring"

// Gate decides which commands of one pipe are executed. Its two rules keep a proxy's commands in
// order although nodes refuse some of them:
//
// Refusals latch. Once the node has refused a command, it refuses all later commands of the pipe on
// the same partitions. The proxy sent them before it knew of the refusal. If a take-over ended in
// between and they were executed, they would overtake the refused command, which the proxy sends
// again. The proxy says DUNLIN RETRY when it has all of them back and begins to send them again.
//
// Commands on a gained partition wait until the proxy knows of the gain. A proxy gives up commands
// that it sent to a silent node, and sends them to the next owner. If the partition returns to the
// first node, the given-up commands may only then arrive there, and would undo later writes. So the
// node serves a gained partition to a pipe only once its proxy has shown, in DUNLIN RETRY, that it
// knows the epoch. Commands that it gave up are ahead of that RETRY.
//
// A write that is executed later (Begun) has its place in the order already: until then, the node
// refuses all commands of the pipe on its partition. RETRY does not change that. What is refused
// meanwhile stays refused until RETRY, like behind any refusal:
//
//	APPEND k (begun)   GET k -> wait   APPEND is executed   GET k -> wait   RETRY   GET k
//
// A nil Gate is that of a client's connection, to which neither rule applies. A Gate belongs to its
// connection's loop.
type Gate struct {
	Broken Broken // for the simulation

	latched *ring.PartitionSet // partitions of refused commands; nil: none
	closed  ring.Databases     // of commands that were refused because their databases were closed
	busy    *ring.PartitionSet // of writes that are executed later; nil: none
	era     uint64             // the newest epoch that the proxy is known to know
}

// Verdict says what to do with a command.
type Verdict uint8

const (
	Serve Verdict = iota // execute it
	Wait                 // refuse it: the sender tries again
	Moved                // refuse it: another node owns the partition
)

// Open is the event that the pipe was opened under the view.
func (g *Gate) Open(v *View) { g.era = v.Epoch() }

// Verdict decides about a command on p. While the node is fenced it is never Moved, because the
// table may be just as outdated about other nodes.
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
	return g != nil && (g.latched != nil && g.latched.Has(p) || g.busy != nil && g.busy.Has(p) || v.Began[p] > g.era && !g.Broken.IgnoreEras)
}

// Careful reports whether any partition that the view serves may get another verdict than Serve. It
// changes with the view, the fence, Refused, Retry, Begun and Resumed.
func (g *Gate) Careful(v *View, fenced bool) bool {
	return fenced || g != nil && (g.latched != nil || g.busy != nil || g.Outdated(v))
}

// Outdated reports whether a command over many partitions must wait, because the pipe may still
// carry commands from before this node gained one of them.
func (g *Gate) Outdated(v *View) bool {
	return g != nil && v.Newest > g.era && !g.Broken.IgnoreEras
}

// Refused is the event that a command on the partitions was refused.
func (g *Gate) Refused(partitions ...uint16) {
	if g == nil || g.Broken.NeverLatch || len(partitions) == 0 {
		return
	}
	if g.latched == nil {
		g.latched = new(ring.PartitionSet)
	}
	for _, p := range partitions {
		g.latched.Add(p)
	}
}

// RefusedDatabase is the event that a command was refused because its database was closed, so that it is not known in
// which partition its keys lie when it comes again.
func (g *Gate) RefusedDatabase(database uint8) {
	if g != nil {
		g.closed = g.closed.With(database)
	}
}

// RefusesDatabase reports whether commands on keys of a database are refused because one was.
func (g *Gate) RefusesDatabase(database uint8) bool { return g != nil && g.closed.Has(database) }

// Begun is the event that a write to the partitions was admitted and is executed later. No two may
// be on their way to one partition.
func (g *Gate) Begun(partitions ...uint16) {
	if g.Broken.PassBusy {
		return
	}
	if g.busy == nil {
		g.busy = new(ring.PartitionSet)
	}
	for _, p := range partitions {
		g.busy.Add(p)
	}
}

// Resumed is the event that the write to the partitions is about to be executed: the pipe's own past
// does not forbid that. refused lists the partitions on which commands behind it were refused. The
// caller must call Refused with them when the write is executed, so that they stay refused.
func (g *Gate) Resumed(partitions ...uint16) (refused []uint16) {
	for _, p := range partitions {
		if g.busy != nil {
			g.busy.Remove(p)
		}
		if g.latched != nil && g.latched.Has(p) {
			g.latched.Remove(p)
			refused = append(refused, p)
		}
	}
	if g.busy != nil && g.busy.Empty() {
		g.busy = nil
	}
	return refused
}

// Retry is the event that the proxy has all refused commands back, and knows the epoch.
func (g *Gate) Retry(epoch uint64, v *View) {
	if g == nil {
		return
	}
	g.latched, g.closed = nil, 0
	g.era = max(g.era, min(epoch, v.Epoch()))
}
