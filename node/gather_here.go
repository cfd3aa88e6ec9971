package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// borrowHere is Node.borrowHere for what may lie here, when there is a place to compute.
func (w *gatherRun) borrowHere(
	ctx context.Context, key []byte, versioned bool, left *allowance,
) (l *loan, err error) {
	if w.node.view.Load().Standing[ring.PartitionOf(key)] != ownership.Serving {
		return nil, nil
	}
	err = w.compute(ctx, func() (err error) {
		l, err = w.node.borrowHere(w.database, key, versioned, left)
		return err
	})
	return l, err
}

// borrowHere borrows a key as borrow does, if this node is its owner and can lend it at once: no
// connection is needed then, and no loop. It returns nil if not: somebody holds the partition, the
// value is large, or the node would refuse a client.
//
// No barrier waits for a goroutine: a newer table may give the partition to somebody else, who
// changes the key. But under the lock nobody has changed it since the view was loaded, which was
// the one to obey then.
func (n *Node) borrowHere(database uint8, key []byte, versioned bool, left *allowance) (l *loan, err error) {
	x := n.takeHome()
	x.Partition, x.Database, x.Now = ring.PartitionOf(key), database, n.cfg.Group.UnixMilli()
	x.prepare(spell("DUMP", key))
	l = &loan{node: n, left: left}
	lends := x.lend(key, versioned, l)
	if x.later != nil {
		x.later.End()
		x.later, lends = nil, false
	}
	if lends && l.Found {
		if payload, found := resp.DecodeBulk(x.take()); found {
			err = l.fill(payload)
		} else {
			lends = false // there is an error, which the loop answers as well
		}
	}
	n.giveHome(x)
	if !lends || err != nil {
		return nil, err
	}
	return l, nil
}

// lend has the reply be what a key holds, or leaves that for later, and notes in l what else there
// is to say. It reports false if the key cannot be lent now.
func (x *home) lend(key []byte, versioned bool, l *loan) bool {
	n := x.node
	t := n.engine.Lock(x.Section(), x.Now)
	defer t.Unlock()
	now := n.cfg.Group.Clock()
	fenced := n.isFenced(now)
	v, places := n.view.Load(), n.placing.Load()
	switch {
	case fenced, t.Holder() != nil, v.Standing[x.Partition] != ownership.Serving,
		places.Pins(x.Database), places.closed(v.Table).Has(x.Database):
		return false
	}
	if versioned {
		l.Version = n.appendVersion(nil, v.Began[x.Partition], false, t, key)
	}
	item, found := x.Find(t, key)
	l.Found, l.TTL, l.lentAt = found, -1, now
	if !found {
		return true
	}
	if at := item.ExpireAt(); at != 0 {
		l.TTL = max(0, at-x.Now)
	}
	keys.ReplyDump(&x.Request, t, item, keys.MaxDump)
	return true
}
