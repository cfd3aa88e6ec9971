package engine

import "time"

// The pace of the sweep. What expires is gone after a round at the latest, and at that pace looking
// for it takes about 1 % of a processor. Four seconds of patience with each page, to gather more
// that is due, and rounds of four saved a sixth of that, but left a burst of expiries half of the
// time.
const (
	sweepRound  = 7 * time.Second
	sweepTick   = 20 * time.Millisecond
	sweepAtOnce = 64 // pages between two looks at stop
)

// KeepSwept sweeps at an even pace until stop is closed. When so much expires at one time that a
// round takes longer than it should, it goes on without pause. unixMilli is the time, which must
// not step while a record expires.
func (e *Engine) KeepSwept(stop <-chan struct{}, unixMilli func() int64) {
	ticker := time.NewTicker(sweepTick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		now := time.Now()
		for pages := e.pagesIn(now.Sub(last)); pages > 0; pages -= sweepAtOnce {
			select {
			case <-stop:
				return
			default:
			}
			e.Sweep(unixMilli(), min(pages, sweepAtOnce))
		}
		last = now
	}
}

// pagesIn is how many pages are to be looked at in a part of a round.
func (e *Engine) pagesIn(part time.Duration) int {
	return 1 + int(min(1, float64(part)/float64(sweepRound))*float64(e.Pages()))
}
