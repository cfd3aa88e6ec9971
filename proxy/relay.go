package proxy

import (
	"net"

	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/ring"
)

// Relay listens to brokers for subscribers that are no sessions of a proxy: the clients of a node, which subscribe
// there to channels and patterns of the whole cluster. It is the listening side of a proxy, on the loops of that
// node, and brokers take it for one:
//
//	client ══> node ── Change ─▶ listening ═ DUNLIN LISTEN ═▶ brokers: the owners, this node among them
//	client <══ node <── Push ── Board <══════ messages ═══════════┘
type Relay struct{ p *Proxy }

// StartRelay starts a relay. Of Config it needs what is about nodes and loops. It connects to nobody before somebody
// subscribes. The caller must Close the relay.
func StartRelay(cfg Config) (*Relay, error) {
	p := newProxy(cfg)
	if err := p.startWorkers(&net.TCPAddr{}); err != nil {
		return nil, err
	}
	return &Relay{p}, nil
}

// SetTable listens by a table from now on, see Proxy.SetTable. A node calls it before it obeys the table itself: that can
// take long, and who follows a channel to its next owner has some seconds for that.
func (r *Relay) SetTable(t *ring.Table) { r.p.SetTable(t) }

// SetMembers sets the members that are alive, see Proxy.SetMembers.
func (r *Relay) SetMembers(members []ring.Member) { r.p.SetMembers(members) }

// Close closes the connections to nodes. The loops stay.
func (r *Relay) Close() error {
	err := r.p.stopWorkers()
	r.p.dividers.all.Wait()
	return err
}

// Change has a subscriber on a loop be shown a channel or pattern, which it wants since a moment ago, or ends that if
// it does not want it any more. It calls done later, on that loop, when all brokers know of the change: messages may
// come before. refused says that a broker has too many patterns; then the subscriber does not want this one. done is
// not called if the subscriber is muted meanwhile.
func (r *Relay) Change(
	loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte, more bool, done func(refused bool),
) {
	l := r.p.workers[loop].listening
	if more {
		l.board.Show(s, kind, name) // before anybody counts it
	}
	l.change(kind, string(name), more, change{s: &relayed{l: l, s: s, done: done}})
}

// Leave ends a subscription without an answer: the subscriber has gone, or need not be told.
func (r *Relay) Leave(loop int, s *pubsub.Subscriber, kind pubsub.Kind, name []byte) {
	r.p.workers[loop].listening.leaveOne(s, kind, string(name))
}

// Counts returns what a loop has counted, on that loop: topics for which messages may be missing, because a node or
// the connection to it was lost, and messages that had no room on their way.
func (r *Relay) Counts(loop int) (gaps, lost uint64) {
	s := &r.p.workers[loop].stats
	return s.Gaps, s.LostMessages
}

// relayed is an asker for a subscriber that is no session.
type relayed struct {
	l    *listening
	s    *pubsub.Subscriber
	done func(refused bool)
}

func (a *relayed) isClosed() bool { return a.s.IsMuted() }

func (a *relayed) subscribed(t *topic, c change) {
	if name := []byte(t.name); !c.more && !a.s.Wants(t.kind, name) {
		a.l.board.Hide(a.s, t.kind, name)
	}
	a.done(false)
}

func (a *relayed) notSubscribed(t *topic, c change) {
	a.l.leaveOne(a.s, t.kind, t.name)
	a.done(c.more)
}
