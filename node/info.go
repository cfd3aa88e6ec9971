package node

import (
	"context"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/keys"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// info: INFO [section...]. A part of a reply is made of counters, and with an argument (INFO
// commandstats) of the calls too.
func info(r *request) {
	n, version, part := r.node, r.Version(), r.Part
	sections := exec.CloneArgs(r.Args[1:])
	r.conn.CoverLater(func(_ context.Context, covered *ring.PartitionSet) []byte {
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
			in := figures.Info{Calls: calls, Counters: counters, Nodes: 1, Sections: []figures.InfoSection{stats.section()}}
			return n.process.AppendInfo(nil, version, sections, in)
		case calls == nil:
			return figures.AppendCounters(nil, &counters)
		}
		return figures.AppendCalls(figures.AppendCounters(resp.AppendArray(nil, 2), &counters), calls)
	})
}

// section is what only a node of Dunlin has to say.
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

// gatherCounters returns the numbers of INFO, with the keys of the partitions.
func (n *Node) gatherCounters(covered *ring.PartitionSet) (figures.Counters, Stats, error) {
	s, err := n.Stats()
	if err != nil {
		return figures.Counters{}, s, err
	}
	e := &s.Engine
	c := figures.Counters{
		Keys:       keys.Count(n.engine, covered),
		UsedMemory: e.Used, PeakMemory: s.PeakBytes, MaxMemory: e.Max,
		Hits: int64(s.Hits), Misses: int64(s.Misses), Evicted: e.Evicted, Expired: e.Expired,
		Commands: int64(s.Requests), OpsPerSec: int64(s.OpsPerSec), Errors: int64(s.Errors),
		Clients: int64(s.Clients), Connections: int64(s.Connections),
		Rejected: int64(s.Rejected), SlowReaders: int64(s.SlowReaders),
		MaxInput: int64(s.InBuffer), MaxOutput: int64(s.OutBuffer),
		NetIn: int64(s.BytesIn), NetOut: int64(s.BytesOut),
		Reads: int64(s.Inputs), Writes: int64(s.Outputs),
	}
	c.Dataset = e.Values
	c.Overhead = c.UsedMemory - c.Dataset
	// Expiries are not counted by partition: assume them evenly spread. They include
	// those of dropped keys that are not freed yet.
	if e.Keys > 0 {
		c.Expires = min(c.Keys, int64(float64(e.Volatile)*float64(c.Keys)/float64(e.Keys)))
	}
	c.Startup, c.ClientBytes = e.Fixed+s.Overhead, e.Outside-s.Overhead
	c.CountPolicy(n.settings.PolicyNumber())
	figures.FillProcess(&c, n.cfg.Nodes)
	return c, s, nil
}
