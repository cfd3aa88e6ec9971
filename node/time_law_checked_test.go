//go:build linux && checked && !race

package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
)

const locksAreTimed = true

// timeLocks has the engine time its locks.
func timeLocks() { engine.TimeLocks.Store(true) }

// longestLock returns the longest one since it was last called.
func longestLock() time.Duration { return time.Duration(engine.LongestLock.Swap(0)) }
