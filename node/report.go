package node

import (
	"context"
	"fmt"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/ring"
)

// Commands that report what the node does and holds. Its part of a reply (DUNLIN EACH) has figures,
// which the proxy adds up and renders.

// info: INFO [section...]. The node's part of a reply has counters and, if an argument asks for it
// (INFO commandstats), the calls.
func info(r *request) {
	n, version, part := r.node, r.Version(), r.Part
	sections := exec.CloneArgs(r.Args[1:])
	r.coverLater(waits, func(_ context.Context, covered *ring.PartitionSet) []byte {
		counters, stats, err := n.gatherCounters(covered)
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		var calls *figures.Calls
		if part && len(sections) > 0 || !part && figures.InfoNeedsCalls(sections) {
			if calls, err = n.gatherCalls(); err != nil {
				return resp.AppendError(nil, exec.ErrBusy)
			}
		}
		switch {
		case !part:
			in := figures.Info{Calls: calls, Counters: counters, Nodes: 1}
			in.Sections = []figures.InfoSection{stats.section()}
			return n.process.AppendInfo(nil, version, sections, in)
		case calls == nil:
			return figures.AppendCounters(nil, &counters)
		}
		return figures.AppendCalls(figures.AppendCounters(resp.AppendArray(nil, 2), &counters), calls)
	})
}

// section is the part of INFO that Redis does not have.
func (s *Stats) section() figures.InfoSection {
	number := func(name string, n int) figures.InfoLine {
		return figures.InfoLine{Name: name, Value: strconv.Itoa(n)}
	}
	return figures.InfoSection{Name: "Dunlin", Lines: []figures.InfoLine{
		{Name: "epoch", Value: strconv.FormatUint(s.Epoch, 10)},
		number("partitions_serving", s.Serving),
		number("partitions_gained", s.Gained),
		number("fenced", int(exec.BoolInt(s.Fenced))),
		number("pipes", s.Pipes),
	}}
}

// gatherCounters returns the numbers of INFO, with the keys of these partitions.
func (n *Node) gatherCounters(covered *ring.PartitionSet) (figures.Counters, Stats, error) {
	s, since, err := n.gatherStats()
	if err != nil {
		return figures.Counters{}, s, err
	}
	e := &s.Engine
	c := figures.Counters{
		UsedMemory: e.Used, PeakMemory: s.PeakBytes, MaxMemory: e.Max,
		Hits: int64(since.Hits), Misses: int64(since.Misses), Evicted: e.Evicted, Expired: e.Expired,
		Commands: int64(since.OfClients()), OpsPerSec: int64(s.OpsPerSec), Errors: int64(since.Errors),
		Clients: int64(s.Clients), Connections: int64(since.Connections),
		Rejected: int64(since.Rejected), SlowReaders: int64(since.SlowReaders),
		MaxInput: int64(s.InBuffer), MaxOutput: int64(s.OutBuffer),
		NetIn: int64(since.BytesIn), NetOut: int64(since.BytesOut),
		Reads: int64(since.Inputs), Writes: int64(since.Outputs),
		Channels: int64(s.Channels), Patterns: int64(s.Patterns),
		Trackers: int64(s.Tracking.Clients), TrackedKeys: int64(s.Tracking.Keys), TrackedItems: int64(s.Tracking.Marks),
		TrackedPrefixes: int64(s.Tracking.Prefixes),
		Scripts:         int64(s.Scripts.Scripts), ScriptBytes: s.Scripts.Bytes, ScriptMemory: s.ScriptMemory,
		Functions: int64(s.Functions), Libraries: int64(s.Libraries), FunctionBytes: s.FunctionBytes,
	}
	for database := range uint8(engine.Databases) {
		in := keys.Count(n.engine, database, covered)
		if c.Keys += in; database > 0 {
			c.Databases[database].Keys = in
		}
	}
	if base := n.removedBase.Load(); base != nil {
		c.Evicted -= base.evicted
		c.Expired -= base.expired
	}
	c.Dataset = e.Values
	c.Overhead = c.UsedMemory - c.Dataset
	// The engine does not count keys with an expiry by partition or database: assume that they are
	// evenly spread. They include those of dropped keys that are not freed yet.
	if e.Keys > 0 {
		volatile := float64(e.Volatile) / float64(e.Keys)
		c.Expires = min(c.Keys, int64(volatile*float64(c.Keys)))
		for i := range c.Databases {
			in := &c.Databases[i]
			in.Expires = min(in.Keys, int64(volatile*float64(in.Keys)))
		}
	}
	c.Startup, c.ClientBytes = e.Fixed+s.Overhead, s.connBytes()
	c.CountPolicy(n.settings.PolicyNumber())
	figures.FillProcess(&c, n.cfg.Nodes, s.Overhead)
	return c, s, nil
}

// heat returns how much the hot keys of each partition are used, nothing if the loops do not
// answer.
func (n *Node) heat() *measure.Heat {
	parts, placement := make([]measure.Heat, len(n.workers)), n.placing.Load().Placement
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		n.workers[l.Index()].hot.AddHeat(&parts[l.Index()], placement)
	})
	if err != nil {
		return new(measure.Heat)
	}
	for i := range parts[1:] {
		for p, uses := range parts[1+i] {
			parts[0][p] += uses
		}
	}
	return &parts[0]
}

// HotKeys returns the most used keys with their uses a second, by a sample of about the last
// minute. The most used come first.
func (n *Node) HotKeys() ([]figures.KeyFigure, error) {
	parts := make([]figures.KeyFigures, len(n.workers))
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		n.workers[l.Index()].hot.Report(l.Now(), &parts[l.Index()])
	})
	if err != nil {
		return nil, fmt.Errorf("cannot gather hot keys of node %q: %w", n.cfg.ID, err)
	}
	for i := range parts[1:] {
		parts[0].Add(&parts[1+i])
	}
	return parts[0].Top(), nil
}

// forgetHotKeys is HOTKEYS RESET. It runs on a loop, so it only posts.
func (n *Node) forgetHotKeys() {
	for _, w := range n.workers {
		w.loop.Post(func() { w.hot = measure.NewHotSketch(w.loop.Now()) })
	}
}

// hotKeys: HOTKEYS GET
func hotKeys(r *request) {
	n, reply := r.node, r.figuresReply(figures.UsesASecond)
	r.coverLater(waits, func(context.Context, *ring.PartitionSet) []byte {
		list, err := n.HotKeys()
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		return reply(list)
	})
}

// bigKeys: HOTKEYS BIG
func bigKeys(r *request) {
	reply := r.figuresReply(figures.BytesOfKey)
	r.Cover()
	r.Out = append(r.Out, reply(r.node.BigKeys())...)
}

// figuresReply returns a function that renders keys with their figures, for a client or as a part
// of a reply.
func (r *request) figuresReply(unit string) func(list []figures.KeyFigure) []byte {
	if r.Part {
		return func(list []figures.KeyFigure) []byte { return figures.EncodeKeyFigures(nil, list) }
	}
	version := r.Version()
	return func(list []figures.KeyFigure) []byte { return figures.AppendKeyFigures(nil, version, unit, list) }
}

// hotKeysReset: HOTKEYS RESET
func hotKeysReset(r *request) {
	r.node.forgetHotKeys()
	r.Cover()
	r.ReplyOK()
}

// BigKeys returns the largest keys by the bytes of key and value, the largest first.
func (n *Node) BigKeys() []figures.KeyFigure { return n.big.Top() }

// latencyHistogram: LATENCY HISTOGRAM [command...]
func latencyHistogram(r *request) {
	n, version, args := r.node, r.Version(), exec.CloneArgs(r.Args)
	r.answerLater(func() []byte {
		calls, err := n.gatherCalls()
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		return figures.AppendLatencyHistogram(nil, version, args, calls)
	})
}

// Slow returns the latest entries of the slow log, at most that many.
func (n *Node) Slow(most int) []figures.SlowRequest { return n.slow.Latest(most) }

// slowLog: SLOWLOG GET | LEN | RESET
func slowLog(r *request) {
	reply := r.node.slow.AppendReply(nil, r.Args)
	if !resp.IsError(reply) {
		r.Cover()
	}
	r.Out = append(r.Out, reply...)
}

// gatherCalls sums the workers' counts of commands and errors.
func (n *Node) gatherCalls() (*figures.Calls, error) {
	parts := make([]*figures.Calls, len(n.workers))
	err := n.cfg.Group.Each(func(l *netloop.Loop) { parts[l.Index()] = n.workers[l.Index()].calls() })
	if err != nil {
		return nil, err
	}
	for _, p := range parts[1:] {
		parts[0].Add(p)
	}
	return parts[0], nil
}

func (w *worker) calls() *figures.Calls {
	c, count := &figures.Calls{}, w.sinceReset()
	for id := range c.Commands {
		if command.ByID(command.ID(id)) == nil || command.ByID(command.ID(id)).Flags&command.Internal != 0 {
			continue
		}
		to := &c.Commands[id]
		to.Calls, to.Failed = int64(count.Commands[id]), int64(count.Failed[id])
		to.Rejected = int64(count.Refused[id])
		to.Times = w.timesSinceReset(id)
	}
	for _, code := range count.Codes {
		if code.N > 0 {
			c.CountError(code.Code, int64(code.N))
		}
	}
	return c
}

// memoryStats: MEMORY STATS
func memoryStats(r *request) {
	n, version := r.node, r.Version()
	r.answerLater(func() []byte {
		_, covered := n.coverage(&allPartitions)
		counters, _, err := n.gatherCounters(&covered)
		if err != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
		return figures.AppendMemoryStats(nil, version, &counters)
	})
}
