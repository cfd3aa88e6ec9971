package node

import "github.com/dunlin-cache/dunlin/internal/netloop"

const (
	// busyLoop and lateLoop are the shares of the time from which on clients have to wait for a loop
	// that runs, or that has no processor.
	busyLoop = 0.9
	lateLoop = 0.1
)

// strainOf returns what tells work that can wait whether clients have to wait because loops are busy,
// or have no processor.
func strainOf(loops *netloop.Group) func() bool {
	gauge := loops.NewGauge()
	return func() bool { return gauge.Read().Above(busyLoop, lateLoop) }
}
