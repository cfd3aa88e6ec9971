//go:build !checked

package engine

import "sync"

const checked = false

// mutex is a shard's.
type mutex = sync.Mutex
