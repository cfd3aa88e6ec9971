// Package boottime is a monotonic clock that goes on while the machine is suspended. Go's own
// monotonic time stands still then, so whoever judges by it takes for fresh what is hours old.
package boottime
