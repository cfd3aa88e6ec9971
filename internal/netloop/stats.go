package netloop

import "time"

// LoopStats counts what a loop has done since it started. A loop's counters are its
// own: they are read on the loop, and summed by whoever shows them (see Group.Each).
type LoopStats struct {
	Iterations uint64
	Conns      int    // open now, connecting ones included
	Accepted   uint64 // connections accepted and given to this loop
	Dialed     uint64 // connections opened by Dial
	BytesIn    uint64
	BytesOut   uint64
	Reads      uint64 // system calls, also those that found nothing
	Writes     uint64
	Posted     uint64 // functions given to Post and run

	SlowReaders uint64 // connections closed with ErrSlowReader
	Starved     uint64 // connections closed with ErrNoMemory
	Panics      uint64 // of handlers and other functions called by the loop

	Busy             time.Duration // time not spent waiting for events
	LongestIteration time.Duration
	LongestStall     time.Duration // see LastStall

	LentBytes   int // capacity of the buffers that conns have
	PooledBytes int // capacity of the free buffers that have memory, for reuse
}

// Stats returns the loop's counters.
func (l *Loop) Stats() LoopStats {
	s := l.stats
	s.Conns = int(l.load.Load())
	s.LongestStall = l.LastStall()
	s.LentBytes, s.PooledBytes = l.pool.lent, l.pool.kept
	return s
}
