package gossip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/dunlin-cache/dunlin/ring"
)

// peer is another member that memberlist considers alive.
type peer struct {
	announcement
	gossipAddr string
}

// delegate has the methods that memberlist calls. It calls the Notify methods with its node lock
// held.
type delegate struct{ a *Agent }

// NodeMeta returns what gossip says about this member.
func (d delegate) NodeMeta(int) []byte { return d.a.ownAnnouncement().encode() }

// NotifyMsg receives another member's announcement about itself.
func (d delegate) NotifyMsg(b []byte) { d.a.hear(b) }

func (d delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState introduces this member in an exchange of states, so that the other side knows that
// somebody answered even if it refuses us.
func (d delegate) LocalState(bool) []byte { return d.NodeMeta(0) }

// MergeRemoteState is called with the other side's LocalState, after the exchanged members have
// been merged.
func (d delegate) MergeRemoteState(b []byte, _ bool) {
	m, err := decodeAnnouncement(b)
	if err == nil && m.Name() != d.a.name && !d.a.knows(m.Name()) {
		d.a.heardStranger()
	}
}

// NotifyAlive refuses members that cannot be in one cluster with this one: memberlist then does not
// list them at all.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	m, err := decodeAnnouncement(n.Meta)
	switch {
	case err != nil:
	case m.Name() != n.Name:
		err = fmt.Errorf("its name should be %q", m.Name())
	case m.Fingerprint != ring.Fingerprint():
		err = fmt.Errorf("it places keys differently: fingerprint %08x, want %08x",
			m.Fingerprint, ring.Fingerprint())
	case n.DMax < d.a.level():
		err = fmt.Errorf("it speaks protocol level %d, and this cluster needs %d: upgrade it", n.DMax, d.a.level())
	}
	if err != nil {
		d.a.rejected.Add(1)
		d.a.warnRejected(n, err)
	}
	return err
}

// rejectedEvery is how often a refused member is logged: memberlist hears of it several times a
// second.
const rejectedEvery = 10 * time.Second

func (a *Agent) warnRejected(n *memberlist.Node, err error) {
	if a.mayWarn() {
		a.cfg.Log.Warn("member refused", "name", n.Name, "addr", n.Address(), "error", err)
	}
}

// mayWarn reports whether it is time for another warning about a refused member.
func (a *Agent) mayWarn() bool {
	now, last := int64(a.clock(time.Now())), a.lastRejected.Load()
	return (last == 0 || now-last >= int64(rejectedEvery)) && a.lastRejected.CompareAndSwap(last, now)
}

func (d delegate) NotifyJoin(n *memberlist.Node)   { d.a.setPeer(n) }
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.a.setPeer(n) }
func (d delegate) NotifyLeave(n *memberlist.Node)  { d.a.dropPeer(n) }

func (a *Agent) setPeer(n *memberlist.Node) {
	heard, err := decodeAnnouncement(n.Meta)
	if err != nil || n.Name == a.name {
		return // NotifyAlive refuses what cannot be decoded
	}
	a.mu.Lock()
	heard.Level = n.DMax
	// What the member itself told may be newer than what gossip brings.
	if known, ok := a.peers[n.Name]; ok && known.seq > heard.seq {
		heard = known.announcement
	}
	a.peers[n.Name] = peer{announcement: heard, gossipAddr: n.Address()}
	maps.DeleteFunc(a.lost, func(addr string, l lostNode) bool {
		return addr == n.Address() || l.id == heard.ID
	})
	a.mu.Unlock()
	poke(a.wake)
}

func (a *Agent) dropPeer(n *memberlist.Node) {
	a.mu.Lock()
	p, known := a.peers[n.Name]
	delete(a.peers, n.Name)
	if known && p.Role == ring.RoleNode && p.State != ring.Leaving {
		a.rememberLostLocked(p)
	}
	a.mu.Unlock()
	poke(a.wake)
}

const (
	maxLost  = 64
	keepLost = 30 * time.Minute
)

// lostNode is a node that died without announcing that it would leave.
type lostNode struct {
	id    string
	since time.Time
}

// rememberLostLocked records where a node was, so that this member joins it again. If the network
// broke, and no join address is on this side of the break, nothing else would reunite the two
// sides. The record ends with the node's next boot.
func (a *Agent) rememberLostLocked(p peer) {
	now := time.Now()
	oldest := ""
	for addr, l := range a.lost {
		if now.Sub(l.since) > keepLost {
			delete(a.lost, addr)
		} else if oldest == "" || l.since.Before(a.lost[oldest].since) {
			oldest = addr
		}
	}
	if len(a.lost) >= maxLost {
		delete(a.lost, oldest)
	}
	a.lost[p.gossipAddr] = lostNode{id: p.ID, since: now}
}

func (a *Agent) knows(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, known := a.peers[name]
	return known
}

// alive returns the alive members that speak the cluster's level, including this one, sorted by id,
// and the newest boot of each id. A member that a newer boot has replaced is not in its own list.
func (a *Agent) alive() []ring.Member {
	a.mu.Lock()
	newest := make(map[string]ring.Member, len(a.peers)+1)
	newest[a.self.ID] = a.self.Member
	for _, p := range a.peers {
		if have, ok := newest[p.ID]; !a.isBelow(p) && (!ok || p.Boot > have.Boot) {
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
