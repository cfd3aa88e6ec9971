package wide

import (
	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// INFO, MEMORY STATS and LATENCY HISTOGRAM: the commands that add up the nodes' counters.

// The requests that a node answers with its counters, and with what it knows of commands too.
var (
	infoQuestion  = [][]byte{[]byte("INFO")}
	callsQuestion = [][]byte{[]byte("INFO"), []byte("commandstats")}
)

// info adds the nodes' counters.
type info struct {
	call     *Call
	counters figures.Counters
	calls    *figures.Calls // nil: nodes are not asked about commands
	nodes    int
	render   func(m *info, dst []byte) []byte
}

func askInfo(c *Call, q *Question) error {
	m := askCounters(c, q, figures.InfoNeedsCalls(c.Args[1:]))
	m.render = func(m *info, dst []byte) []byte {
		return c.Host.AppendInfo(dst, c.Version, c.Args[1:],
			figures.Info{Counters: m.counters, Calls: m.calls, Nodes: m.nodes})
	}
	return nil
}

func askMemory(c *Call, q *Question) error {
	askCounters(c, q, false).render = func(m *info, dst []byte) []byte {
		return figures.AppendMemoryStats(dst, c.Version, &m.counters)
	}
	return nil
}

func askLatency(c *Call, q *Question) error {
	askCounters(c, q, true).render = func(m *info, dst []byte) []byte {
		return figures.AppendLatencyHistogram(dst, c.Version, c.Args, m.calls)
	}
	return nil
}

// askCounters asks for the nodes' counters, and what they know of commands if calls.
func askCounters(c *Call, q *Question, calls bool) *info {
	m := &info{call: c}
	q.AboutNodes, q.Words, q.merge = true, infoQuestion, m
	if calls {
		q.Words, m.calls = callsQuestion, &figures.Calls{}
	}
	return m
}

// Begin forgets the figures: they are not about partitions.
func (m *info) Begin() {
	m.counters, m.nodes = figures.Counters{}, 0
	if m.calls != nil {
		m.calls = &figures.Calls{}
	}
}

// Add takes a node's counters, or counters and calls.
func (m *info) Add(a Answer) error {
	m.nodes++
	encoded := a.Reply
	if m.calls != nil {
		n, header, ok := resp.DecodeArray(encoded)
		var scan resp.Scanner
		if !ok || n != 2 || scan.Scan(encoded[header:]) != resp.Done || !m.calls.Decode(encoded[header+scan.Len():]) {
			return errMerge
		}
		encoded = encoded[header : header+scan.Len()]
	}
	counters, ok := figures.DecodeCounters(encoded)
	m.counters.Add(&counters)
	return malformedUnless(ok)
}

// Reply appends the command's reply, which it renders from the figures.
func (m *info) Reply(dst []byte) []byte { return m.render(m, dst) }
