package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// A claim stands in the queues of its keys as a blocking command does (blocked.go). When it is its turn, it is
// told so, and its proxy pops; see internal/member.

// claimTypes are the types of values by their kind on the wire.
var claimTypes = map[member.ValueKind]engine.Type{
	member.List: engine.TypeList, member.SortedSet: engine.TypeZSet, member.Stream: engine.TypeStream, member.Group: engine.TypeStream,
}

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
	slot := r.SlotOf(c.Keys[0])
	for _, key := range c.Keys[1:] {
		if ring.Partition(r.SlotOf(key)) != ring.Partition(slot) {
			r.Fail(errCrossSlot)
			return
		}
	}
	if r.Database != 0 && !r.admitDatabase(r.Database) || !r.admitSlot(slot) {
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	a, ready := seek(t, &c)
	if ready >= 0 {
		r.Out = member.AppendReady(r.Out, member.Ready{Key: ready, IDs: a.IDs})
		return
	}
	a.Waited = c.Waited
	r.Request.Await(t, a)
}

// seek looks for what a claim is about. It returns which key is ready, or -1, and what the claim waits for.
func seek(t engine.Txn, c *member.Claim) (a exec.Await, ready int) {
	typ := claimTypes[c.Kind]
	a.Wish, ready = engine.Wish{Type: typ, Keys: c.Keys, Group: c.Group}, -1
	look, looks := types.ByID(typ).Seek, 0
	for i, key := range c.Keys {
		item, found := t.Peek(key)
		other := found && item.Type() != typ
		is := other || found && look == nil
		if look != nil {
			sought := exec.Sought{Group: c.Group, MinIdle: c.MinIdle, Waited: c.Waited, Looks: &looks}
			if c.IDs != nil {
				sought.ID = c.IDs[i]
			}
			f := look(t, key, sought)
			is = is || f.Ready
			a.Positions = append(a.Positions, f.Position)
			if string(sought.ID) == member.LastID {
				a.IDs = member.AppendSettled(a.IDs, f.ID)
			}
			a.Again = sooner(a.Again, f.Again)
		}
		switch {
		case !is || ready >= 0:
		case other || !t.HasTurn(typ, c.Group, key):
			ready = i
		case look != nil: // whose turn it is may leave something, which is told then
			a.Positions[i] = engine.Position{}
			if c.MinIdle != member.NoIdle { // or else nothing: what was pending was not looked at
				a.Again = sooner(a.Again, member.ClaimTurn)
			}
		}
	}
	return a, ready
}

// sooner returns the lesser of two durations, of which 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// finds is the Finds of the engine's Servers.
func (n *Node) finds(t engine.Txn, of *engine.Waiter) (found bool) {
	args := unpackArgs(nil, []byte(of.Text()))
	c, _ := member.ParseClaim(args[2:])
	c.MinIdle = member.NoIdle // time brings what is pending, and then the engine does not ask
	var seen []engine.Position
	for _, key := range c.Keys {
		one := c
		one.Keys = [][]byte{key}
		a, ready := seek(t, &one)
		if ready >= 0 {
			a.Positions[0] = engine.Position{} // there is something behind that
			found = true
		}
		seen = append(seen, a.Positions[0])
	}
	t.Saw(of, seen)
	return found
}

// tellClaim is the Tell of the engine's Servers.
func (n *Node) tellClaim(of *engine.Waiter, turn engine.Turn) (deliver func()) {
	w := blockedOf(of)
	return func() {
		w.conn.worker.loop.Post(func() {
			if w.cmd == command.DunlinClaim {
				w.ready(turn)
			} else {
				w.anew(turn)
			}
		})
	}
}

// ready tells the proxy that it is the turn of a claim, which the queues know no more. The turn ends after
// member.ClaimTurn, or now if nobody hears of it.
func (w *blocked) ready(turn engine.Turn) {
	args := unpackArgs(nil, []byte(w.Text()))
	c, _ := member.ParseClaim(args[2:])
	key := c.Keys[turn.Key]
	pass := func() {
		w.conn.node.endTurn(w.database(), member.Pass{Kind: c.Kind, Turn: turn.Number, Key: key, Group: c.Group}, w.conn.worker)
	}
	switch {
	case turn.Number == 0:
	case w.conn.closed || w.canceled:
		w.conn.worker.loop.Post(pass)
	default:
		w.conn.worker.turns.takeAfter(member.ClaimTurn, pass)
	}
	w.answer(func(r *request) {
		r.Out = member.AppendReady(r.Out, member.Ready{Key: turn.Key, Turn: turn.Number})
	}, func() {})
}

// pass: DUNLIN PASS kind turn key [group]
func pass(r *request) {
	p, ok := member.ParsePass(r.Args[2:])
	if !ok {
		r.Fail(errBadClaim)
		return
	}
	r.node.endTurn(r.Database, p, r.worker)
	r.ReplyOK()
}

// endTurn ends the turn of a claim, if it is not over. The partition may be another node's by now: then nobody
// waits here any more.
func (n *Node) endTurn(database uint8, p member.Pass, w *worker) {
	section := engine.Section(n.placing.Load().PartitionOf(database, p.Key), database)
	n.engine.EndTurn(section, claimTypes[p.Kind], p.Group, p.Key, p.Turn, w.loop.UnixMilli())
}
