//go:build !linux

package tlsbridge

import "time"

var started = time.Now()

// threadTime returns the time since the start, because not every system says for how long a thread has
// had a processor.
func threadTime() time.Duration { return time.Since(started) }
