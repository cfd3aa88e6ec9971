package netloop

import "time"

// LoopStats counts what a loop has done since it started. The counters belong to the loop: readers
// run on the loop and sum them (see Group.Each).
type LoopStats struct {
	Iterations uint64
	Conns      int    // open now, including connecting ones
	Accepted   uint64 // connections accepted and given to this loop
	Dialed     uint64 // connections opened by Dial
	BytesIn    uint64
	BytesOut   uint64
	Reads      uint64 // system calls, including those that found nothing
	Writes     uint64
	Posted     uint64 // functions given to Post and run

	SlowReaders uint64 // connections closed with ErrSlowReader
	Starved     uint64 // connections closed with ErrNoMemory
	Panics      uint64 // panics of handlers and other functions that the loop called

	Busy             time.Duration // time not spent waiting for events
	Looked           time.Duration // time spent looking for events instead of sleeping: see Config.BusyPoll
	LongestIteration time.Duration
	LongestStall     time.Duration // see LastStall

	LentBytes   int // capacity of the buffers of conns
	PooledBytes int // capacity of the free buffers that have memory, for reuse
}

// Stats returns the loop's counters.
func (l *Loop) Stats() LoopStats {
	s := l.stats
	s.Conns = int(l.load.Load())
	s.Looked = time.Duration(l.polling.looked.Load())
	s.LongestStall = l.LastStall()
	s.LentBytes, s.PooledBytes = l.pool.lent, l.pool.kept
	return s
}
