package order

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Lane selects the pipes that a session's outstanding requests use: a kind of pipe, a protocol
// version, and whether the requests touch the keys that they find.
type Lane struct {
	Kind    member.Kind
	Version resp.Version
	NoTouch bool
	Tracks  bool // nodes track the keys that the requests read
}

// Node is a node as one worker sees it.
type Node struct {
	Member ring.Member
	// Kept is the number of large replies that the node keeps for this worker. The shell counts it:
	// a node that leaves is not dropped before it is 0.
	Kept int

	room   Room              // of Config
	owned  ring.PartitionSet // by the table, and by -MOVED replies since
	left   bool              // not in the table any more
	gone   bool              // declared dead, or left: its pipes stay closed unless it turns out to be alive
	goneAt time.Duration
	pipes  [member.Kinds][8]*Pipe // for each kind: two versions, and these again with NoTouch, and all again with Tracks
}

// Pipe returns the node's pipe for a lane, and makes it at the first call. It may be closed.
func (n *Node) Pipe(l Lane) *Pipe {
	at := &n.pipes[l.Kind][l.index()]
	if *at == nil {
		*at = &Pipe{Node: n, Lane: l}
	}
	return *at
}

// index returns the lane's place among those of its kind.
func (l Lane) index() int {
	at := int(l.Version - resp.RESP2)
	if l.NoTouch {
		at += 2
	}
	if l.Tracks {
		at += 4
	}
	return at
}

// Each calls f with every pipe that was made.
func (n *Node) Each(f func(*Pipe)) {
	for k := range n.pipes {
		for _, p := range n.pipes[k] {
			if p != nil {
				f(p)
			}
		}
	}
}

// Owns returns the set of partitions that are routed to the node. The caller must not change it.
func (n *Node) Owns() *ring.PartitionSet { return &n.owned }

// Inflight returns the number of requests that the node has not answered, plus that of the large
// replies that it keeps.
func (n *Node) Inflight() (count int) {
	count = n.Kept
	n.Each(func(p *Pipe) { count += p.Inflight() })
	return count
}

// failingSince returns the time since when the node has been out of reach, judged by its pipes: if
// one of them cannot be opened, the others are of no use either, though they may not have noticed
// yet. 0 means that the node can be reached, or that nobody has tried.
func (n *Node) failingSince(now time.Duration) (since time.Duration) {
	if n.gone {
		return n.goneAt
	}
	n.Each(func(p *Pipe) {
		if p.failing(now) && (since == 0 || p.failingSince < since) {
			since = p.failingSince
		}
	})
	return since
}
