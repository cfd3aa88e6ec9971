package node

import (
	"context"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/pubsub"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
)

// A node that hands partitions over tells their next owners who listens to the channels there, beside
// everything else and before it acknowledges the table. So PUBLISH counts all of them at the next owner from
// the first message on, however late their proxies hear of the table.

const (
	// topicsTurn and topicsBytes bound what one request tells: the number of topics, and their names.
	topicsTurn  = 128
	topicsBytes = 32 << 10
	// topicsPatience is how much longer than the hand-over of everything else that may take: meanwhile nobody
	// serves the partitions.
	topicsPatience = 200 * time.Millisecond
)

// heirOf returns a new owner, and whose channels the hand-over gives it.
func (h *handOver) heirOf(t *ring.Table, name string) (heir ring.Member, gets *ring.PartitionSet) {
	gets = new(ring.PartitionSet)
	for p := range uint16(ring.Partitions) {
		if !h.channels.Has(p) {
			continue
		}
		if m := t.OwnerOf(p); m.Name() == name {
			heir = *m
			gets.Add(p)
		}
	}
	return heir, gets
}

// toldTopics is what an heir is told of channels.
type toldTopics struct {
	heir  ring.Member
	gets  *ring.PartitionSet
	whole ring.PartitionSet // those of gets of whose channels this node has everything
	began []uint64          // the epochs since which this node had its partitions
	epoch uint64            // of the table that gives them to the heir
}

// handTopics begins to tell an heir who listens to the channels that it gets. The caller calls end when the
// heir has everything else: that waits for topicsPatience at most. If the heir does not take all by then, or is
// of an older build, PUBLISH counts there who has followed.
//
// It also hands over what was published here and some have not got, because the partitions move on before they have
// followed. What does not reach the heir counts as lost. At last the heir hears of which partitions it has everything:
// whoever follows there in others is told of a gap.
func (n *Node) handTopics(ctx context.Context, t *toldTopics) (end func()) {
	ctx, cancel := context.WithTimeout(ctx, ownership.TakeTimeout)
	told := make(chan struct{})
	n.goJob(func() {
		defer close(told)
		n.tellTopics(ctx, t)
	})
	return func() {
		defer cancel()
		select {
		case <-told:
		case <-time.After(n.topicsPatience):
		}
	}
}

func (n *Node) tellTopics(ctx context.Context, t *toldTopics) {
	keep := func(name string) bool { return t.gets.Has(ring.PartitionOf([]byte(name))) }
	began := func(name string) uint64 { return t.began[ring.PartitionOf([]byte(name))] }
	goOn := func() bool { return ctx.Err() == nil }
	missed, allMissed, release := n.broker.Missed(keep, began, goOn)
	defer release()
	list, allTold, done := n.broker.Told(keep, goOn)
	defer done()
	n.tolds(t.gets)
	whole := allMissed && allTold
	p, err := member.DialPeer(ctx, n.cfg.Dialer, t.heir.Addr, n.cfg.Secret.First(), n.cfg.Boot)
	if err == nil {
		defer p.Close()
	}
	for len(list) > 0 && err == nil {
		turn := topicsOfTurn(list)
		list = list[len(turn):]
		err = passOn(p.Topics(t.epoch, turn), &whole)
	}
	for err == nil && len(missed) > 0 {
		m := member.Missed{Kind: uint8(missed[0].Kind), Channel: missed[0].Channel, Message: missed[0].Payload}
		for _, of := range missed[0].By {
			m.By = append(m.By, member.Loop(of))
		}
		took := true
		if err = passOn(p.Missed(t.epoch, &m), &took); err != nil {
			break
		}
		if missed = missed[1:]; !took {
			n.broker.Lose(1)
			whole = false
		}
	}
	if whole && err == nil {
		err = p.Handed(&t.whole, n.name())
	}
	if err != nil {
		n.broker.Lose(len(missed))
	}
	if !whole || err != nil || t.whole != *t.gets { // so gaps may be counted there, even if nobody misses anything
		const text = "the next owner does not have everything of its channels"
		n.log.Info(text, "node", t.heir.Name(), "told", whole, "error", err)
	}
}

// passOn returns err, unless the heir has refused something: the rest may have room there.
func passOn(err error, took *bool) error {
	if isRefusal(err) {
		*took = false
		return nil
	}
	return err
}

// topicsOfTurn returns the first topics of a list, for one request.
func topicsOfTurn(list []broker.Told) (turn []member.Topic) {
	for bytes := 0; len(turn) < len(list) && len(turn) < topicsTurn && bytes < topicsBytes; {
		t := &list[len(turn)]
		bytes += len(t.Name)
		turn = append(turn, member.Topic{Boot: t.Origin.Boot, Loop: t.Origin.Loop, Kind: uint8(t.Kind), Name: t.Name, Count: t.Count})
	}
	return turn
}

// takeTopics: DUNLIN TOPICS epoch ({boot} {loop} {kind} {name} {count})…
func takeTopics(r *request) {
	epoch, topics, ok := member.ParseTopics(r.Args[2:], uint8(pubsub.Kinds))
	if !ok {
		r.Fail(errBadListen)
		return
	}
	r.node.following.Gained(epoch, r.worker.loop.Now()) // so that they are not forgotten at once
	room := true
	for _, t := range topics {
		if kind := pubsub.Kind(t.Kind); kind != pubsub.Pattern && len(t.Name) <= pubsub.MaxName {
			told := broker.Told{Origin: broker.Origin{Boot: t.Boot, Loop: t.Loop}, Kind: kind, Name: t.Name, Count: t.Count}
			room = r.node.broker.Expect(told, epoch) && room
		}
	}
	if !room {
		r.Fail(exec.ErrOOM)
		return
	}
	r.ReplyOK()
}

// takeMissed: DUNLIN MISSED epoch kind channel message ({boot} {loop})…
func takeMissed(r *request) {
	epoch, m, ok := member.ParseMissed(r.Args[2:], uint8(pubsub.Kinds))
	if !ok || pubsub.Kind(m.Kind) == pubsub.Pattern || len(m.Channel) > pubsub.MaxName {
		r.Fail(errBadListen)
		return
	}
	p := ring.PartitionOf(m.Channel)
	if broker.IsLate(r.node.view.Load(), p, epoch) {
		r.Fail(errServed)
		return
	}
	by := make([]broker.Origin, len(m.By))
	for i, l := range m.By {
		by[i] = broker.Origin(l)
	}
	if !r.node.broker.Miss(pubsub.Kind(m.Kind), m.Channel, m.Message, by, epoch) {
		r.Fail(exec.ErrOOM)
		return
	}
	r.ReplyOK()
}

// takeHanded: DUNLIN HANDED partitions name
func takeHanded(r *request) {
	whole, ok := ring.DecodePartitionSet(r.Args[2])
	if !ok {
		r.Fail(errBadListen)
		return
	}
	r.node.following.Took(whole, string(r.Args[3]))
	r.ReplyOK()
}
