package gossip

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

// peer is another member that memberlist takes for alive.
type peer struct {
	ring.Member
	gossipAddr string
}

// delegate is what memberlist calls. The Notify methods run with memberlist's node
// lock held.
type delegate struct{ a *Agent }

// NodeMeta returns what gossip tells about this member.
func (d delegate) NodeMeta(int) []byte { return ring.AppendMember(nil, d.a.selfMember()) }

func (d delegate) NotifyMsg([]byte)                {}
func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState introduces this member in an exchange of states, so that the other
// side knows that somebody answered even if it refuses us.
func (d delegate) LocalState(bool) []byte { return d.NodeMeta(0) }

// MergeRemoteState is called with the other side's LocalState, after the exchanged
// members have been merged.
func (d delegate) MergeRemoteState(b []byte, _ bool) {
	m, err := ring.DecodeMember(b)
	if err == nil && m.Name() != d.a.name && !d.a.knows(m.Name()) {
		d.a.heardStranger()
	}
}

// NotifyAlive refuses members that we cannot live with: it keeps them out of
// memberlist's list altogether.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	m, err := ring.DecodeMember(n.Meta)
	switch {
	case err != nil:
	case m.Name() != n.Name:
		err = fmt.Errorf("its name should be %q", m.Name())
	case m.Fingerprint != ring.Fingerprint():
		err = fmt.Errorf("it places keys differently: fingerprint %08x, want %08x",
			m.Fingerprint, ring.Fingerprint())
	}
	if err != nil {
		d.a.rejected.Add(1)
	}
	return err
}

func (d delegate) NotifyJoin(n *memberlist.Node)   { d.a.setPeer(n) }
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.a.setPeer(n) }
func (d delegate) NotifyLeave(n *memberlist.Node)  { d.a.dropPeer(n) }

func (a *Agent) setPeer(n *memberlist.Node) {
	m, err := ring.DecodeMember(n.Meta)
	if err != nil || n.Name == a.name {
		return // NotifyAlive refuses what cannot be decoded
	}
	a.mu.Lock()
	a.peers[n.Name] = peer{Member: m, gossipAddr: n.Address()}
	delete(a.lost, n.Address())
	a.mu.Unlock()
	poke(a.wake)
}

func (a *Agent) dropPeer(n *memberlist.Node) {
	a.mu.Lock()
	p, known := a.peers[n.Name]
	delete(a.peers, n.Name)
	if known && p.State != ring.Leaving {
		a.rememberLostLocked(p.gossipAddr)
	}
	a.mu.Unlock()
	poke(a.wake)
}

const (
	maxLost  = 64
	keepLost = time.Hour
)

// rememberLostLocked notes the address of a member that died, to be joined again: if
// it was the network that broke, and no join address is on our side of it,
// nothing else would bring the two sides together.
func (a *Agent) rememberLostLocked(addr string) {
	now := time.Now()
	oldest := ""
	for other, since := range a.lost {
		if now.Sub(since) > keepLost {
			delete(a.lost, other)
		} else if oldest == "" || since.Before(a.lost[oldest]) {
			oldest = other
		}
	}
	if len(a.lost) >= maxLost {
		delete(a.lost, oldest)
	}
	a.lost[addr] = now
}

func (a *Agent) knows(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.peers[name]
	return known
}

// alive returns the alive members including this one, sorted by id, of each id the
// newest boot. A member that has been replaced by a newer self is not in its own
// list.
func (a *Agent) alive() []ring.Member {
	a.mu.Lock()
	newest := make(map[string]ring.Member, len(a.peers)+1)
	newest[a.self.ID] = a.self
	for _, p := range a.peers {
		if have, ok := newest[p.ID]; !ok || p.Boot > have.Boot {
			newest[p.ID] = p.Member
		}
	}
	a.mu.Unlock()

	members := make([]ring.Member, 0, len(newest))
	for _, m := range newest {
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b ring.Member) int { return cmp.Compare(a.ID, b.ID) })
	return members
}

// otherNodes returns the nodes of members other than this one.
func (a *Agent) otherNodes(members []ring.Member) []ring.Member {
	var nodes []ring.Member
	for _, m := range members {
		if m.Role == ring.RoleNode && m.Name() != a.name {
			nodes = append(nodes, m)
		}
	}
	return nodes
}

// sameMembers compares two lists, versions of tables apart.
func sameMembers(a, b []ring.Member) bool {
	return slices.EqualFunc(a, b, func(x, y ring.Member) bool {
		x.Epoch, x.Issuer, y.Epoch, y.Issuer = 0, "", 0, ""
		return x == y
	})
}
