//go:build linux && checked && !race

package node

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlin-cache/dunlin/node/engine"
)

const locksAreTimed = true

// timeLocks has the engine time the locks of the calling thread.
func timeLocks() { engine.TimedThread.Store(int64(unix.Gettid())) }

// longestLock returns the longest one since it was last called.
func longestLock() time.Duration { return time.Duration(engine.LongestLock.Swap(0)) }
