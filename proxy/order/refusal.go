package order

import (
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// maxHops is how many -MOVED replies a request follows before it waits a little.
const maxHops = 4

// Refusal is the answer of a node that did not execute a request.
type Refusal struct {
	// Moved says that the node at Addr owns the partition. Otherwise this node will, or will know
	// who does, before long.
	Moved     bool
	Partition uint16 // with Addr
	Addr      string // host:port; empty: the refusal names none
	Epoch     uint64 // of the table that the node waits for; 0: it names none
}

// Refused is the event that a node has refused the front request of a pipe. It takes the request
// off the pipe.
func (m *Machine) Refused(p *Pipe, why Refusal, now time.Duration) {
	r := *p.inflight.front()
	raw := r.bare(p.buf[p.acked-p.base:r.end-p.base], p.body == nil)
	m.refused(p, &r, raw, p.takeBody(), why, now)
	p.drop(p.inflight.front())
}

// refused does what a refusal of a request of the pipe asks for. See keep about raw and body.
func (m *Machine) refused(p *Pipe, r *Request, raw []byte, body Body, why Refusal, now time.Duration) {
	p.latch.progress = p.latch.progress && !m.broken.forgetsProgress()
	if p.latch.add(r, raw, p.tail(), why.Epoch) {
		m.retrySoon()
	}
	m.Counts.Refusals++
	if why.Moved {
		m.act(Action{Kind: Refresh})
		m.follow(r, why)
	}
	m.undone(r, raw, body, now)
}

// follow routes a partition to the node that a -MOVED reply names, until the next table. Every
// session does so from now on: if one command of a session went by the reply and another by the
// table, they could change places. Two nodes that do not obey the same table yet may point to each
// other: after maxHops the command waits a little and begins at the table again.
func (m *Machine) follow(r *Request, why Refusal) {
	to := m.byAddr[why.Addr]
	if to == nil || to.gone {
		return // the next table says where it is
	}
	if r.hops >= maxHops {
		r.hops = 0
		m.routeByTable(why.Partition)
		return
	}
	r.hops++
	m.redirected = append(m.redirected, r.Session)
	m.reroute(why.Partition, to)
}

// HasMoves reports whether FollowMoves has something to do.
func (m *Machine) HasMoves() bool { return len(m.redirected) > 0 }

// FollowMoves sends the requests that were redirected since the last call. Call it when everything
// that a node has sent at one time was handled, so that the requests that it refused together are
// sent again together.
func (m *Machine) FollowMoves(now time.Duration) {
	for i, s := range m.redirected {
		m.retry(s, now)
		m.redirected[i] = nil
	}
	m.redirected = m.redirected[:0]
}

// Distrust routes the missing partitions by the table again: the node was asked about them, and its
// answer did not cover them. The -MOVED reply of a node with an older table than ours may have sent
// us there, and no other command may come to correct that.
func (m *Machine) Distrust(n *Node, missing *ring.PartitionSet) {
	if missing.Empty() {
		return
	}
	for p := range m.owner {
		if missing.Has(uint16(p)) && m.owner[p] == n {
			m.routeByTable(uint16(p))
		}
	}
}
