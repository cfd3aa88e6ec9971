//go:build linux && !checked && !race

package node

import "time"

// Only an engine that is built with the tag checked times its locks.
const locksAreTimed = false

func timeLocks() {}

func longestLock() time.Duration { return 0 }
