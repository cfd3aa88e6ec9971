package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// DUNLIN TAKE, both ends of it: asking other nodes to obey a table, and obeying one.

// askLocked asks a node to obey a table, and tells the machine what became of that.
func (n *Node) askLocked(a ownership.Ask) {
	if n.asks == nil {
		n.asks, n.endAsks = context.WithCancel(n.ctx)
	}
	ctx, encoded := n.asks, n.encodeLocked(a.Table)
	n.goJob(func() {
		ctx, cancel := context.WithTimeout(ctx, a.Within)
		defer cancel()
		epoch, name, err := n.handTable(ctx, a.Member, encoded)
		if err != nil && a.Attempt == 10 { // after a second, once: it may just be starting
			n.log.Warn("still taking over", "epoch", a.Table.Epoch, "error", err)
		}
		n.step(func(m *ownership.Machine, now time.Duration) {
			if err != nil {
				m.Failed(now, a.ID, errors.Is(err, syscall.ECONNREFUSED))
				return
			}
			m.Acknowledged(now, a.ID, name, epoch)
		})
	})
}

// tellLocked hands a table to a node. The answer does not matter.
func (n *Node) tellLocked(a ownership.Tell) {
	encoded := n.encodeLocked(a.Table)
	n.goJob(func() {
		ctx, cancel := context.WithTimeout(n.ctx, ownership.TakeTimeout)
		defer cancel()
		if _, _, err := n.handTable(ctx, a.Member, encoded); err != nil {
			n.log.Debug("the next owner hears of a table by gossip only", "node", a.Member.Name(), "error", err)
		}
	})
}

// encodeLocked returns the table as it travels, which nobody changes. One table travels to many.
func (n *Node) encodeLocked(t *ring.Table) []byte {
	if n.encodedOf != t {
		n.encoded, n.encodedOf = t.Encode(), t
	}
	return n.encoded
}

// handTable is one DUNLIN TAKE. It returns the epoch that the node obeys then, and its name.
func (n *Node) handTable(ctx context.Context, m ring.Member, encoded []byte) (epoch uint64, name string, err error) {
	p, err := member.DialPeer(ctx, n.cfg.Dialer, m.Addr, n.secret, n.cfg.Boot)
	if err != nil {
		return 0, "", err
	}
	defer p.Close()
	if epoch, name, err = p.Take(encoded); err != nil {
		return 0, "", fmt.Errorf("cannot hand table to node %s: %w", m.Name(), err)
	}
	return epoch, name, nil
}

// obeyTaken obeys a table that another node hands over, and returns what to answer, and the epoch
// that this node obeys. The answer is StillBusy also when the node closes. Must not be called on a
// loop.
func (n *Node) obeyTaken(t *ring.Table) (ownership.Answer, uint64) {
	if source := n.source(); source != nil {
		source.Adopt(t)
		n.SetTable(source.Table())
	} else if t.Newer(n.view.Load().Table) {
		n.SetTable(t)
	}
	reply := n.await(func(m *ownership.Machine, now time.Duration, id uint64) { m.Take(now, id, t.Version()) })
	select {
	case r := <-reply:
		return r.Answer, r.Epoch
	case <-n.ctx.Done():
		return ownership.StillBusy, 0
	}
}

// Release obeys t, which takes everything from this node, and returns when the new owners have all
// that it had, or ctx ends. Until then it must be a member of its cluster: nobody waits for the
// rest from a node that is gone. Must not be called on a loop.
func (n *Node) Release(ctx context.Context, t *ring.Table) {
	n.SetTable(t)
	select {
	case <-n.await(func(m *ownership.Machine, _ time.Duration, id uint64) { m.Release(id) }):
	case <-n.ctx.Done():
	case <-ctx.Done():
		n.log.Warn("leaving before all was handed over", "error", ctx.Err())
	}
}

// await tells the machine about an event that it answers by a Reply with the id.
func (n *Node) await(event func(m *ownership.Machine, now time.Duration, id uint64)) <-chan ownership.Reply {
	reply := make(chan ownership.Reply, 1)
	n.step(func(m *ownership.Machine, now time.Duration) {
		n.waits++
		n.waiting[n.waits] = reply
		event(m, now, n.waits)
	})
	return reply
}
