// Package beat has the timers of a process fire together. Each wake-up of an idle process costs 50 to
// 100 µs: a thread wakes, then the runtime's monitor, and both look for work. Timers that run every
// 400 ms, every second and so on, each from a start of its own, wake the process one by one. At
// multiples of their intervals, counted from one moment for all, most of them share a wake-up: with those of
// other processes of a cluster, too, as these send each other something then.
//
//	grid     |    |    |    |    |    |    |    |    |    |    |     100 ms: Grid
//	400 ms   x                   x                   x
//	500 ms   x                        x                        x
package beat

import "time"

// Grid is the interval of which others should be multiples.
const Grid = 100 * time.Millisecond

// origin is the last full second before the start. So processes whose clocks agree beat together, and what
// one of them sends finds the others awake.
var origin = lastSecond(time.Now())

func lastSecond(t time.Time) time.Time { return t.Add(-time.Duration(t.Nanosecond())) }

// Until returns the time until the next multiple of every. It is above 0, and at most every.
func Until(every time.Duration) time.Duration { return until(time.Since(origin), every) }

func until(now, every time.Duration) time.Duration { return every - now%every }

// Before returns the last moment of the grid that is not after t; t itself if t is before the process
// started.
func Before(t time.Time) time.Time { return t.Add(-max(t.Sub(origin), 0) % Grid) }
