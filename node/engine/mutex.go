//go:build !linux || !(checked || locktimes)

package engine

import "sync"

// mutex is a shard's.
type mutex = sync.Mutex
