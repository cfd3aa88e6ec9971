//go:build checked && !linux

package engine

import "sync"

// mutex is a shard's.
type mutex = sync.Mutex
