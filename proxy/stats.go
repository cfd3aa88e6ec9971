package proxy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/proxy/order"
)

const sampleEvery = time.Second

// Stats are counters since the start, and a few gauges. Each worker has its own and counts without
// synchronisation; Proxy.Stats visits the loops and adds them up.
type Stats struct {
	Commands       [command.NumIDs]uint64 // executed or forwarded, by command.ID
	Refused        uint64                 // unknown, wrong number of arguments, not authenticated
	ProtocolErrors uint64
	Splits         uint64 // commands split over several nodes
	LargeReplies   uint64 // fetched in pieces

	Accepted, Rejected, SlowReaders uint64 // connections
	Clients, MaxClients             int    // gauges
	AuthFailed                      int64  // wrong passwords

	Starved              uint64 // connections closed because there was no memory for their buffers
	EarlyClosed          uint64 // connections closed with errTooEarly
	Buffers, PipeBuffers int64  // gauges: bytes that clients and pipes have waiting
	Heap                 int64  // gauge: the part of Buffers in the Go heap

	PipesOpened, PipesBroken uint64
	Pipes, PipesOpen         int                   // gauges
	Nodes                    map[string]*NodeStats // by the id of a node of the table
	PipeFlushes              uint64                // writes of batches to nodes
	PipeRequests             uint64                // requests in them
	PipeBytesOut             uint64
	// BatchSizes counts batches by their number of requests: 0, 1, 2-3, 4-7, ... 2048 and more.
	BatchSizes    [batchBuckets]uint64
	BatchRequests uint64 // in all batches
	Inflight      int    // gauge: requests outstanding at nodes

	// Latency has the times of a sample of the commands, from issue to reply, by family.
	Latency [command.NumFamilies]figures.Durations

	Refusals      uint64 // replies by which a node said that it is not the owner, or not yet
	Parked        uint64 // requests parked to be sent again
	ParkedTooLong uint64 // those answered with errParkedLong in the end
	NotParked     uint64 // commands answered with errNotParked
	// LostReplies are requests that a node may have executed and whose reply is lost. They are
	// answered with errUnknown, errLost or errCutOff.
	LostReplies uint64
	Parking     int // gauge: sessions with parked requests

	Blocked     int64  // gauge: clients whose command waits: a blocking one, WAIT, or what CLIENT PAUSE holds back
	Claimed     uint64 // blocking commands that name keys of several slots
	Returns     uint64 // commands that return what was popped for a client that has gone
	ReturnsLost uint64 // those that failed, and pops that are not returned

	Subscriptions   int    // gauge: of sessions, to channels, patterns and shard channels
	Heard           uint64 // messages from nodes
	Pushed          uint64 // messages to sessions
	Invalidations   uint64 // sent to sessions that track
	Trackers        int    // gauge: sessions that track
	Copies          int    // gauge: that these may have of keys
	Overflows       uint64 // times that sessions were to be told more than is queued: all of a loop forgot everything
	SlowSubscribers uint64 // sessions closed because they did not read them
	LostMessages    uint64 // that had no room on their way from a node
	Gaps            uint64 // topics for which messages may have been lost with a node or its connection

	Loops                         []netloop.LoopStats
	ClientBytesIn, ClientBytesOut uint64
	OpsPerSec                     int64 // over the last sampling interval
	Epoch                         uint64
	sampledAt                     time.Time
}

// NodeStats has a proxy's present figures about one node.
type NodeStats struct {
	Open, Opening, Failing int // pipes; the others are closed, and nothing has needed them since
	Inflight               int // requests outstanding
}

func (n *NodeStats) add(o *NodeStats) {
	n.Open += o.Open
	n.Opening += o.Opening
	n.Failing += o.Failing
	n.Inflight += o.Inflight
}

// node returns the figures of one node, and makes them on the first call.
func (s *Stats) node(id string) *NodeStats {
	if s.Nodes == nil {
		s.Nodes = make(map[string]*NodeStats)
	}
	if s.Nodes[id] == nil {
		s.Nodes[id] = &NodeStats{}
	}
	return s.Nodes[id]
}

// CommandsTotal returns the number of commands of all kinds.
func (s *Stats) CommandsTotal() uint64 {
	var n uint64
	for _, c := range s.Commands {
		n += c
	}
	return n
}

// add adds the counters of o. Gauges are left to Proxy.Stats.
func (s *Stats) add(o *Stats) {
	for i, n := range o.Commands {
		s.Commands[i] += n
	}
	for i, n := range o.BatchSizes {
		s.BatchSizes[i] += n
	}
	for i := range o.Latency {
		s.Latency[i].Add(&o.Latency[i])
	}
	for _, f := range []struct{ to, from *uint64 }{
		{&s.Refused, &o.Refused},
		{&s.ProtocolErrors, &o.ProtocolErrors},
		{&s.Splits, &o.Splits},
		{&s.LargeReplies, &o.LargeReplies},
		{&s.Accepted, &o.Accepted},
		{&s.Rejected, &o.Rejected},
		{&s.SlowReaders, &o.SlowReaders},
		{&s.Heard, &o.Heard},
		{&s.Pushed, &o.Pushed},
		{&s.Invalidations, &o.Invalidations},
		{&s.SlowSubscribers, &o.SlowSubscribers},
		{&s.LostMessages, &o.LostMessages},
		{&s.Gaps, &o.Gaps},
		{&s.Overflows, &o.Overflows},
		{&s.Starved, &o.Starved},
		{&s.EarlyClosed, &o.EarlyClosed},
		{&s.PipesOpened, &o.PipesOpened},
		{&s.PipesBroken, &o.PipesBroken},
		{&s.PipeFlushes, &o.PipeFlushes},
		{&s.PipeRequests, &o.PipeRequests},
		{&s.PipeBytesOut, &o.PipeBytesOut},
		{&s.BatchRequests, &o.BatchRequests},
		{&s.Refusals, &o.Refusals},
		{&s.Parked, &o.Parked},
		{&s.ParkedTooLong, &o.ParkedTooLong},
		{&s.NotParked, &o.NotParked},
		{&s.LostReplies, &o.LostReplies},
		{&s.Claimed, &o.Claimed}, {&s.Returns, &o.Returns}, {&s.ReturnsLost, &o.ReturnsLost},
		{&s.ClientBytesIn, &o.ClientBytesIn},
		{&s.ClientBytesOut, &o.ClientBytesOut},
	} {
		*f.to += *f.from
	}
}

// visit adds what a worker does not count in its own Stats: its gauges, and what its loop and its
// order count.
func (s *Stats) visit(w *worker) {
	s.ClientBytesIn, s.ClientBytesOut = w.account.Traffic()
	s.Clients += len(w.clients)
	s.Parking += w.order.Parking()
	s.Subscriptions += w.listening.subscriptions - w.listening.follows
	table := &w.tracking.table
	s.Trackers += table.Clients()
	s.Copies += table.Copies()
	s.Overflows = table.Overflows
	counts := &w.order.Counts
	s.PipeRequests, s.Refusals = counts.Requests, counts.Refusals
	s.Parked, s.ParkedTooLong, s.NotParked = counts.Parked, counts.ParkedTooLong, counts.NotParked
	s.Buffers += w.account.Used()
	s.Heap += w.account.Other()
	s.PipeBuffers += w.pending.Used()
	for _, n := range w.order.Nodes() {
		to := s.node(n.Member.ID)
		n.Each(func(p *order.Pipe) {
			switch {
			case p.IsOpen():
				to.Open++
			case p.IsOpening():
				to.Opening++
			case p.IsFailing():
				to.Failing++
			}
			s.Pipes++
			to.Inflight += p.Inflight()
		})
	}
	s.Loops = append(s.Loops, w.loop.Stats())
}

// HeapMemory returns about how much of Config.Buffers is in the Go heap.
func (p *Proxy) HeapMemory() int64 {
	if last := p.cached.Load(); last != nil {
		return last.Heap
	}
	return 0
}

// Stats visits every loop and adds up what it finds. That takes each loop a few microseconds. It
// fails if a loop does not answer in time.
func (p *Proxy) Stats() (Stats, error) {
	shares := make([]Stats, len(p.workers))
	err := p.cfg.Group.Each(func(l *netloop.Loop) {
		w := p.workers[l.Index()]
		share := &shares[l.Index()]
		share.add(&w.stats)
		share.visit(w)
	})
	var sum Stats
	if err != nil {
		return sum, err
	}
	sum.Blocked = p.server.Blocked()
	for i := range shares {
		for id, n := range shares[i].Nodes {
			sum.node(id).add(n)
		}
		sum.add(&shares[i])
		sum.Clients += shares[i].Clients
		sum.Parking += shares[i].Parking
		sum.Subscriptions += shares[i].Subscriptions
		sum.Trackers += shares[i].Trackers
		sum.Copies += shares[i].Copies
		sum.Buffers += shares[i].Buffers
		sum.Heap += shares[i].Heap
		sum.PipeBuffers += shares[i].PipeBuffers
		sum.Pipes += shares[i].Pipes
		sum.Loops = append(sum.Loops, shares[i].Loops...)
	}
	for _, n := range sum.Nodes {
		sum.PipesOpen += n.Open
		sum.Inflight += n.Inflight
	}
	sum.MaxClients, sum.AuthFailed = p.settings.MaxClients(), p.server.AuthFailures()
	if t := p.table.Load(); t != nil {
		sum.Epoch = t.Epoch
	}
	if last := p.cached.Load(); last != nil {
		sum.OpsPerSec = last.OpsPerSec
	}
	return sum, nil
}

// resetStats is CONFIG RESETSTAT. INFO subtracts what was counted until now; what is exported never
// goes back. It runs on a loop, so it only posts.
func (p *Proxy) resetStats() {
	shares := make([]Stats, len(p.workers))
	var left atomic.Int32
	left.Store(int32(len(p.workers)))
	for i, w := range p.workers {
		w.loop.Post(func() {
			shares[i].add(&w.stats)
			shares[i].visit(w)
			if left.Add(-1) > 0 {
				return
			}
			var sum Stats
			for i := range shares {
				sum.add(&shares[i])
			}
			p.base.Store(&sum)
		})
	}
}

// sinceReset returns the cached sample with the counters that INFO shows less those at the last
// CONFIG RESETSTAT. It returns nil if there is no sample yet.
func (p *Proxy) sinceReset() *Stats {
	own, base := p.cached.Load(), p.base.Load()
	if own == nil || base == nil {
		return own
	}
	later := *own
	less := func(n *uint64, by uint64) { *n -= min(*n, by) } // the sample may be older than the base
	for i := range later.Commands {
		less(&later.Commands[i], base.Commands[i])
	}
	less(&later.Accepted, base.Accepted)
	less(&later.Rejected, base.Rejected)
	less(&later.SlowReaders, base.SlowReaders)
	less(&later.ClientBytesIn, base.ClientBytesIn)
	less(&later.ClientBytesOut, base.ClientBytesOut)
	less(&later.Refused, base.Refused)
	less(&later.ProtocolErrors, base.ProtocolErrors)
	return &later
}

// sample keeps a recent copy of the figures and measures the rate. INFO shows the copy, because a
// loop answers it and cannot visit the other loops.
func (p *Proxy) sample(ctx context.Context) {
	timer := time.NewTimer(beat.Until(sampleEvery))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-timer.C:
			timer.Reset(beat.Until(sampleEvery))
			s, err := p.Stats()
			if err != nil {
				continue // a loop is busy; the sample stays a second older
			}
			s.sampledAt = now
			if last := p.cached.Load(); last != nil {
				s.OpsPerSec = int64(float64(s.CommandsTotal()-last.CommandsTotal()) / now.Sub(last.sampledAt).Seconds())
			}
			before := p.HeapMemory()
			p.cached.Store(&s)
			if p.cfg.HeapMoved != nil && p.HeapMemory() != before {
				p.cfg.HeapMoved()
			}
		}
	}
}
