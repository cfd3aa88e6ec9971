package node

import (
	"bytes"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// info: INFO [section...]
func info(r *request) {
	n, version := r.node, r.version()
	sections := make([][]byte, 0, len(r.args)-1)
	for _, name := range r.args[1:] {
		sections = append(sections, bytes.Clone(name))
	}
	r.answerLater(func() []byte {
		_, covered := n.coverage(&allPartitions)
		counters, stats, err := n.gatherCounters(&covered)
		if err != nil {
			return resp.AppendError(nil, errBusy)
		}
		var calls *figures.Calls
		if figures.InfoNeedsCalls(sections) {
			if calls, err = n.gatherCalls(); err != nil {
				return resp.AppendError(nil, errBusy)
			}
		}
		in := figures.Info{Calls: calls, Counters: counters, Nodes: 1, Sections: []figures.InfoSection{stats.section()}}
		return n.process.AppendInfo(nil, version, sections, in)
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
		number("fenced", int(boolInt(s.Fenced))),
		number("pipes", s.Pipes),
	}}
}

// infoCounters is the reply to EACH INFO, infoCalls to EACH INFO commandstats.
func (n *Node) infoCounters(covered *ring.PartitionSet) []byte {
	c, _, err := n.gatherCounters(covered)
	if err != nil {
		return resp.AppendError(nil, errBusy)
	}
	return figures.AppendCounters(nil, &c)
}

func (n *Node) infoCalls(covered *ring.PartitionSet) []byte {
	c, _, err := n.gatherCounters(covered)
	if err != nil {
		return resp.AppendError(nil, errBusy)
	}
	calls, err := n.gatherCalls()
	if err != nil {
		return resp.AppendError(nil, errBusy)
	}
	return figures.AppendCalls(figures.AppendCounters(resp.AppendArray(nil, 2), &c), calls)
}

// gatherCounters returns the numbers of INFO, with the keys of the partitions.
func (n *Node) gatherCounters(covered *ring.PartitionSet) (figures.Counters, Stats, error) {
	s, err := n.Stats()
	if err != nil {
		return figures.Counters{}, s, err
	}
	e := &s.Engine
	c := figures.Counters{
		Keys:       n.countKeys(covered),
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
