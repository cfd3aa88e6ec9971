package node

import (
	"maps"
	"slices"
	"time"
)

// StreamStats is what a node has done to feed others.
type StreamStats struct {
	Receivers int           // nodes that are fed, now
	Waiting   int           // partitions that are not wholly sent, summed over the receivers
	LagBytes  int64         // logged, and not acknowledged
	Lag       time.Duration // for how long the oldest batch waits for its acknowledgement
	Moved     int64         // bytes of snapshots, since the start
	Resyncs   uint64        // partitions that had to be sent anew, since the start
}

func (all *senders) stats() (sum StreamStats) {
	all.mu.Lock()
	sum.Moved, sum.Resyncs = all.moved, all.resyncs
	list := slices.Collect(maps.Values(all.to))
	all.mu.Unlock()
	for _, s := range list {
		s.report(&sum)
	}
	return sum
}

// report adds what one sender has done.
func (s *sender) report(sum *StreamStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.Moved += s.moved.Load()
	sum.Resyncs += s.resyncs.Load()
	if s.closed {
		return
	}
	sum.Receivers++
	for _, f := range s.fed {
		if f.state < feedWhole {
			sum.Waiting++
		}
	}
	w := &s.window
	sum.LagBytes += w.to - w.from + s.node.engine.Backlog(s.feed)
	if len(w.frames) > 0 {
		sum.Lag = max(sum.Lag, time.Since(w.frames[0].at))
	}
}
