//go:build !linux || !(checked || locktimes)

package engine

import (
	"runtime"
	"sync"
)

// mutex is a shard's.
type mutex = sync.Mutex

// yield lets other goroutines run. Its caller may have a shard locked.
func yield() { runtime.Gosched() }
