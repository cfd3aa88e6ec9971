package node

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/broker"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/node/stream"
	"github.com/dunlin-cache/dunlin/ring"
)

// An owner feeds each of its partitions to the follower and to the node that the partition moves
// to. replica.Feeding derives from tables which nodes those are, and what this node hands over.
// Package stream sends it, and takes in what other nodes send (DUNLIN STREAM, EFFECTS and VALUE).

// replication is the node's part in feeding and keeping copies.
type replication struct {
	senders   *stream.Senders
	receivers *stream.Receivers
	copies    *stream.Copies

	// tableMu protects what is below.
	feeding *replica.Feeding
	fedBy   map[string]*stream.Sender // by the receiver's name
}

// startReplication makes the senders, receivers and copies. Start calls it before anybody else
// knows the node.
func (n *Node) startReplication() {
	cfg := n.streamConfig()
	senders := stream.NewSenders(cfg)
	copies := stream.NewCopies(cfg, senders)
	n.replication = replication{
		senders: senders, receivers: stream.NewReceivers(cfg, copies.Source), copies: copies,
		feeding: replica.NewFeeding(nil), fedBy: make(map[string]*stream.Sender),
	}
}

// streamConfig returns what streams need of this node.
func (n *Node) streamConfig() *stream.Config {
	return &stream.Config{
		Engine: n.engine, Log: n.log, Context: n.ctx, Go: n.goJob,
		Window: n.window, Charge: heapBudget{n}.Charge, Refund: heapBudget{n}.Refund,
		Monotonic: n.monotonic, UnixMilli: n.cfg.Group.UnixMilli,
		Admits:      func(typ engine.Type, value []byte) error { return types.AdmitsValue(typ, value) },
		Strained:    n.strained,
		TellsStrain: func() bool { t := n.view.Load().Table; return t != nil && t.Level >= ring.StrainLevel },
		Name:        n.name(), Boot: n.cfg.Boot, Secret: n.cfg.Secret, Dialer: n.cfg.Dialer, MoveRate: n.cfg.MoveRate,
	}
}

// windowShare is the part of the limit that one stream may have unacknowledged.
const windowShare = 256

// window returns how many bytes one stream may have unacknowledged.
func (n *Node) window() int {
	return int(max(replica.LeastWindow, min(n.MaxMemory()/windowShare, replica.WindowBytes)))
}

// Hurry notes that the node leaves: it moves data faster and faster, whatever clients want of it, and
// gives up after d.
func (n *Node) Hurry(d time.Duration) { n.senders.Hurry(d) }

// EndStreams ends what this node sends to other nodes, for good: they are about to end with it, and
// nobody is left who needs that.
func (n *Node) EndStreams() { n.senders.End() }

// handOver is what one table has taken from this node, until the new owners have it.
type handOver struct {
	*replica.HandOver
	heirs    []string // those of the data, and those who get channels only
	channels ring.PartitionSet
	begun    time.Duration
	ctx      context.Context // ends with the hand-over
	end      context.CancelFunc
}

// actFeedingLocked runs the actions of the machine.
func (n *Node) actFeedingLocked() {
	for _, a := range n.feeding.Actions() {
		switch a.Do {
		case replica.FeedOpen:
			n.fedBy[a.To] = n.senders.To(*a.Member)
		case replica.FeedClose:
			n.fedBy[a.To].Close()
			delete(n.fedBy, a.To)
		case replica.FeedSync:
			n.fedBy[a.To].Sync(a.Partition, a.Since)
		case replica.FeedResume:
			n.fedBy[a.To].Resume(a.Partition, a.Since, a.Seal)
		case replica.FeedStop:
			n.fedBy[a.To].Stop(a.Partition)
		case replica.FeedHand:
			n.fedBy[a.To].Hand(a.Partition, a.Seal, a.Heir)
		case replica.FeedRest:
			n.engine.SetCopy(a.Partition, engine.PlainCopy)
		case replica.FeedForget:
			n.copies.Forget(a.Partition)
		case replica.FeedKeep:
			n.copies.Keep(a.HandOver)
		case replica.FeedUnkeep:
			n.copies.Unkeep(a.HandOver)
		case replica.FeedReview:
			n.copies.Review(n.view.Load(), false, n.feeding.Spared(), n.aliveNodes())
		}
	}
}

// refeedLocked begins and ends feeds, so that every receiver is fed what v assigns to it of the
// partitions that this node serves. claims are those that v has just begun to serve.
func (n *Node) refeedLocked(v *ownership.View, claims map[uint16]replica.Claim) {
	heat := sync.OnceValue(n.heat)
	n.feeding.Refeed(v, claims, func(partitions []uint16) {
		by := heat()
		slices.SortStableFunc(partitions, func(p, q uint16) int { return cmp.Compare(by[q], by[p]) })
	})
	n.actFeedingLocked()
}

// handOverLocked ends the feeds of what a table takes from this node, and waits for the new owners
// to have it. The loops execute nothing under the older view any more.
func (n *Node) handOverLocked(a ownership.HandOver) {
	lost := n.feeding.HandOver(a.Old, a.Next, a.Away, newSeal)
	n.actFeedingLocked()
	h := &handOver{HandOver: lost, heirs: slices.Clone(lost.Heirs), begun: n.monotonic()}
	handed := n.following.HandOver(a, lost.Partitions(), n.broker.Overrun(), n.cfg.Group.Clock())
	h.addChannels(a.Next.Table, &handed)
	n.discard(handed.Gone, a.Old.Epoch())
	n.toldBut(a.Old, &h.channels)
	n.noteUntold(a, h.heirs)
	id := n.machine.HandedTo(n.monotonic(), h.heirs)
	if id == 0 {
		n.tolds(&h.channels)
		return // there are none
	}
	h.ctx, h.end = context.WithCancel(n.ctx)
	n.handOvers[id] = h
	for _, heir := range h.heirs {
		var data *stream.Sender
		if slices.Contains(lost.Heirs, heir) {
			data = n.fedBy[heir]
		}
		to, gets := h.heirOf(a.Next.Table, heir)
		whole := handed.Whole.Intersect(gets)
		topics := &toldTopics{heir: to, gets: gets, whole: whole, began: a.Old.Began[:], epoch: a.Next.Epoch()}
		n.goJob(func() {
			endTopics := func() {}
			if !gets.Empty() {
				endTopics = n.handTopics(h.ctx, topics)
			}
			if data != nil {
				if err := data.FlushHanded(h.ctx); err != nil && n.ctx.Err() == nil {
					n.log.Warn("gave up a hand-over: the new owner has died or its stream has ended", "to", heir, "error", err)
				}
			}
			endTopics()
			n.step(func(m *ownership.Machine, _ time.Duration) { m.Flushed(id, heir) })
		})
	}
}

// addChannels sets whose channels the hand-over takes along, and adds the heirs of those that this node has lost
// unserved.
func (h *handOver) addChannels(t *ring.Table, handed *broker.Handed) {
	h.channels = handed.Over
	for p := range uint16(ring.Partitions) {
		if !handed.Unserved.Has(p) {
			continue
		}
		if heir := t.OwnerOf(p).Name(); !slices.Contains(h.heirs, heir) {
			h.heirs = append(h.heirs, heir)
		}
	}
}

// newSeal returns a number that no other hand-over has.
func newSeal() uint64 { return rand.Uint64() | 1 }

// finishHandOverLocked is called when the new owners have everything that this node had. Until then
// this node does not acknowledge the table.
func (n *Node) finishHandOverLocked(id uint64) {
	h := n.handOvers[id]
	delete(n.handOvers, id)
	h.end()
	n.tolds(&h.channels)
	n.feeding.Ended(h.HandOver, n.view.Load())
	n.actFeedingLocked()
	n.log.Info("handed over", "partitions", len(h.Lost), "took", (n.monotonic() - h.begun).Round(time.Millisecond))
}

// report returns which copies are in sync, and what is served, under the present table.
func (n *Node) report() *ring.Report {
	r := n.copies.Report(n.view.Load)
	if n.isFenced(n.cfg.Group.Clock()) {
		return &ring.Report{Version: r.Version}
	}
	return r
}

// openStream: DUNLIN STREAM name generation
func openStream(r *request) {
	generation, err := strconv.ParseUint(string(r.Args[3]), 10, 64)
	if err != nil || generation == 0 {
		r.breakStream(stream.ErrMalformed)
		return
	}
	r.conn.stream.Close()
	c, last := r.node.receivers.Open(string(r.Args[2]), generation)
	r.conn.stream = c
	r.ReplyInt(int64(last))
}

// takeEffects: DUNLIN EFFECTS seq milli effects. Effects of a newer node are refused by name.
func takeEffects(r *request) {
	b, err := r.batch()
	if effects := r.Args[4]; err == nil && stream.IsLong(effects) && r.Heap.Charge(int64(len(effects))) {
		r.workLater(&longBatch{stream: r.conn.stream, heap: r.Heap, batch: b, effects: bytes.Clone(effects)}, applies, pinned)
		return
	} else if err == nil {
		loop := r.conn.worker.loop
		begun := loop.Clock()
		r.Out, err = r.conn.stream.Effects(r.Out, b, effects)
		loop.Background(loop.Clock() - begun)
	}
	r.endBatch(err)
}

// longBatch is a batch that a goroutine applies, because it would hold the loop for too long.
// It is charged to the memory of connections. If that is used up, the loop applies the batch.
type longBatch struct {
	stream  *stream.Connection
	heap    exec.Heap
	batch   stream.Batch
	effects []byte
	answer  []byte
	err     error
}

// Run implements exec.Work.
func (w *longBatch) Run(context.Context) {
	w.answer, w.err = w.stream.Effects(nil, w.batch, w.effects)
}

// Reply implements exec.Work.
func (w *longBatch) Reply(r *exec.Request) {
	r.Out = append(r.Out, w.answer...)
	r.Host.(*request).endBatch(w.err)
}

// End implements exec.Work.
func (w *longBatch) End() { w.heap.Refund(int64(len(w.effects))) }

// takeValue: DUNLIN VALUE seq milli partition key expireAt type uses total offset piece
func takeValue(r *request) {
	b, err := r.batch()
	v, ok := parsePiece(r.Args[4:])
	switch {
	case err != nil:
	case !ok:
		err = stream.ErrMalformed
	default:
		r.Out, err = r.conn.stream.Value(r.Out, b, &v)
	}
	r.endBatch(err)
}

// batch reads the number and the sending time of a batch.
func (r *request) batch() (b stream.Batch, err error) {
	seq, err := strconv.ParseUint(string(r.Args[2]), 10, 64)
	sent, ok := resp.ParseInt(r.Args[3])
	if err != nil || !ok {
		return b, stream.ErrMalformed
	}
	return stream.Batch{Seq: seq, Sent: sent, Now: r.Now}, nil
}

// endBatch ends a request that was a batch. Without an error, it answers it.
func (r *request) endBatch(err error) {
	if err != nil {
		r.breakStream(err)
		return
	}
	r.longEnough = true
}

// breakStream answers an error after which the node trusts nothing more of the connection.
func (r *request) breakStream(err error) {
	r.Fail("ERR " + err.Error())
	r.conn.Closing = true
}

// parsePiece reads the arguments of a DUNLIN VALUE, from the section on. The piece is a view of
// them.
func parsePiece(args [][]byte) (v stream.Piece, ok bool) {
	var n [6]int64
	for i, at := range []int{0, 2, 3, 4, 5, 6} {
		if n[i], ok = resp.ParseInt(args[at]); !ok || n[i] < 0 {
			return v, false
		}
	}
	v = stream.Piece{
		Section: uint16(n[0]), Key: args[1], ExpireAt: n[1], Type: engine.Type(n[2]), Uses: int(n[3]),
		Total: int(n[4]), Offset: int(n[5]), Bytes: args[7],
	}
	return v, n[0] < engine.Databases*engine.Partitions && types.Admits(n[2], n[4]) &&
		n[5]+int64(len(v.Bytes)) <= n[4] && len(v.Key) <= engine.MaxKeyLen
}
