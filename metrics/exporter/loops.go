package exporter

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// loopSnapshot has every loop's counters, by index, and what concerns all of them.
type loopSnapshot struct {
	loops       []netloop.LoopStats
	clockBehind time.Duration
}

// AddLoops exports the counters of the loops of this process. While they are strained, scrapes rest.
func (e *Exporter) AddLoops(g *netloop.Group) {
	strained := g.IsStrained
	e.scrapes.strained.Store(&strained)
	read := func() (*loopSnapshot, error) { return readLoops(g) }
	e.registry.MustRegister(newCollector(nil, read, table[loopSnapshot]{metrics: groupMetrics, labelled: loopMetrics}))
}

// readLoops visits every loop. After an error a late loop may still write into the slice, so
// readLoops returns the slice only when all loops have been visited.
func readLoops(g *netloop.Group) (*loopSnapshot, error) {
	s := &loopSnapshot{loops: make([]netloop.LoopStats, len(g.Loops())), clockBehind: g.ClockBehind()}
	if err := g.Each(func(l *netloop.Loop) { s.loops[l.Index()] = l.Stats() }); err != nil {
		return nil, err
	}
	return s, nil
}

var groupMetrics = []metric[loopSnapshot]{
	gauge("dunlin_clock_behind_seconds", "How far the system's clock is ahead of the one by which keys expire; negative: behind it.",
		func(s *loopSnapshot) float64 { return s.clockBehind.Seconds() }),
}

var loopMetrics = []labelled[loopSnapshot]{
	loopCounter("dunlin_loop_iterations_total", "Iterations of the event loop.",
		func(s *netloop.LoopStats) float64 { return float64(s.Iterations) }),
	loopCounter("dunlin_loop_busy_seconds_total", "Time that the event loop spent working, not waiting for events.",
		func(s *netloop.LoopStats) float64 { return s.Busy.Seconds() }),
	loopCounter("dunlin_loop_busy_poll_seconds_total",
		"Time that the event loop spent looking for events instead of sleeping (--busy-poll).",
		func(s *netloop.LoopStats) float64 { return s.Looked.Seconds() }),
	loopGauge("dunlin_loop_longest_iteration_seconds", "Longest iteration of the event loop since the start.",
		func(s *netloop.LoopStats) float64 { return s.LongestIteration.Seconds() }),
	loopGauge("dunlin_loop_longest_stall_seconds",
		"Longest time since the start for which the event loop should have run and did not.",
		func(s *netloop.LoopStats) float64 { return s.LongestStall.Seconds() }),
	loopGauge("dunlin_loop_connections", "Open connections of the event loop: clients, pipes and members.",
		func(s *netloop.LoopStats) float64 { return float64(s.Conns) }),
	loopCounter("dunlin_loop_accepted_connections_total", "Connections accepted.",
		func(s *netloop.LoopStats) float64 { return float64(s.Accepted) }),
	loopCounter("dunlin_loop_dialed_connections_total", "Connections opened to others.",
		func(s *netloop.LoopStats) float64 { return float64(s.Dialed) }),
	loopCounter("dunlin_loop_received_bytes_total", "Bytes read from connections.",
		func(s *netloop.LoopStats) float64 { return float64(s.BytesIn) }),
	loopCounter("dunlin_loop_sent_bytes_total", "Bytes written to connections.",
		func(s *netloop.LoopStats) float64 { return float64(s.BytesOut) }),
	loopCounter("dunlin_loop_read_calls_total", "System calls that read from connections.",
		func(s *netloop.LoopStats) float64 { return float64(s.Reads) }),
	loopCounter("dunlin_loop_write_calls_total", "System calls that wrote to connections.",
		func(s *netloop.LoopStats) float64 { return float64(s.Writes) }),
	loopCounter("dunlin_loop_slow_readers_total", "Connections closed because the peer did not read its replies.",
		func(s *netloop.LoopStats) float64 { return float64(s.SlowReaders) }),
	loopCounter("dunlin_loop_starved_total", "Connections closed because there was no memory for their buffers.",
		func(s *netloop.LoopStats) float64 { return float64(s.Starved) }),
	loopCounter("dunlin_loop_panics_total", "Panics of handlers. Each closed one connection and is a bug.",
		func(s *netloop.LoopStats) float64 { return float64(s.Panics) }),
	loopGauge("dunlin_loop_lent_bytes", "Capacity of the buffers of connections.",
		func(s *netloop.LoopStats) float64 { return float64(s.LentBytes) }),
	loopGauge("dunlin_loop_pooled_bytes", "Capacity of the buffers that the event loop keeps for reuse.",
		func(s *netloop.LoopStats) float64 { return float64(s.PooledBytes) }),
}

func loopCounter(name, help string, get func(*netloop.LoopStats) float64) labelled[loopSnapshot] {
	return loopMetric(name, help, prometheus.CounterValue, get)
}

func loopGauge(name, help string, get func(*netloop.LoopStats) float64) labelled[loopSnapshot] {
	return loopMetric(name, help, prometheus.GaugeValue, get)
}

func loopMetric(name, help string, kind prometheus.ValueType, get func(*netloop.LoopStats) float64) labelled[loopSnapshot] {
	return labelled[loopSnapshot]{name, help, kind, "loop", func(s *loopSnapshot, emit func(string, float64)) {
		for i := range s.loops {
			emit(strconv.Itoa(i), get(&s.loops[i]))
		}
	}}
}
