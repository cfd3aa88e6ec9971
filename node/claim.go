package node

import (
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A claim stands in the queues of its keys as a blocking command does (blocked.go). When it is its turn, it is
// told so, and its proxy pops; see internal/member.

// claimTypes are the types of values by their kind on the wire.
var claimTypes = map[member.ValueKind]engine.Type{member.List: engine.TypeList, member.SortedSet: engine.TypeZSet}

// claim: DUNLIN CLAIM age kind key... The keys are of one partition. A key with a value of another type
// counts as ready, since the pop must say so.
func claim(r *request) {
	c, ok := member.ParseClaim(r.Args[2:])
	switch {
	case !ok || r.conn.pipe == nil:
		r.Fail(errBadClaim)
		return
	case len(c.Keys) > exec.MaxAwaited:
		r.Fail(errBadClaim)
		return
	}
	slot := ring.Slot(c.Keys[0])
	for _, key := range c.Keys[1:] {
		if ring.PartitionOf(key) != ring.Partition(slot) {
			r.Fail(errCrossSlot)
			return
		}
	}
	if !r.admitSlot(slot) {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	typ := claimTypes[c.Kind]
	for i, key := range c.Keys {
		if item, found := t.Peek(key); found && (item.Type() != typ || !t.HasTurn(typ, key)) {
			r.Out = member.AppendReady(r.Out, member.Ready{Key: i})
			return
		}
	}
	r.Request.Await(t, exec.Await{Type: typ, Keys: c.Keys, Waited: c.Waited})
}

// ready tells the proxy that it is the turn of a claim, which the queues know no more. The turn ends after
// member.ClaimTurn, or now if nobody hears of it.
func (w *blocked) ready() {
	c, _ := member.ParseClaim(w.args[2:])
	key := c.Keys[w.Ready]
	pass := func() { w.conn.node.endTurn(member.Pass{Kind: c.Kind, Turn: w.Turn, Key: key}, w.conn.worker) }
	switch {
	case w.Turn == 0:
	case w.conn.closed || w.job.canceled:
		w.conn.worker.loop.Post(pass)
	default:
		w.conn.worker.turns.takeAfter(member.ClaimTurn, pass)
	}
	w.answer(func(r *request) {
		r.Out = member.AppendReady(r.Out, member.Ready{Key: int(w.Ready), Turn: w.Turn})
	}, func() {})
}

// pass: DUNLIN PASS kind turn key
func pass(r *request) {
	p, ok := member.ParsePass(r.Args[2:])
	if !ok {
		r.Fail(errBadClaim)
		return
	}
	r.node.endTurn(p, r.worker)
	r.ReplyOK()
}

// endTurn ends the turn of a claim, if it is not over. The partition may be another node's by now: then nobody
// waits here any more.
func (n *Node) endTurn(p member.Pass, w *worker) {
	n.engine.EndTurn(ring.PartitionOf(p.Key), claimTypes[p.Kind], p.Key, p.Turn, w.loop.UnixMilli())
}
