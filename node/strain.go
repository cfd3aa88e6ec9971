package node

import "github.com/dunlin-cache/dunlin/internal/netloop"

// strain tells work that can wait how the loops are doing.
type strain struct{ gauge *netloop.Gauge }

const (
	// busyLoop and lateLoop are the shares of the time from which on clients have to wait for a loop
	// that runs, or that has no processor.
	busyLoop = 0.9
	lateLoop = 0.1
)

// high reports whether clients have to wait because loops are busy, or have no processor.
func (s strain) high() bool { return s.gauge.Read().Above(busyLoop, lateLoop) }
