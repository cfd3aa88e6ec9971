package engine

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
)

// The pace of the sweep. What expires is gone after a round at the latest, and at that pace looking
// for it takes about 1 % of a processor. Four seconds of patience with each page, to gather more
// that is due, and rounds of four saved a sixth of that, but left a burst of expiries half of the
// time.
const (
	sweepRound  = 7 * time.Second
	sweepTick   = 20 * time.Millisecond
	sweepRest   = 500 * time.Millisecond // instead of sweepTick, after as long without anything to free
	sweepAtOnce = 64                     // pages between two looks at stop
)

// KeepSwept sweeps at an even pace until stop is closed. When so much expires at one time that a
// round takes longer than it should, it goes on without pause. While nothing expires it looks at as
// much as otherwise, but less often, so that an idle process sleeps. unixMilli is the time, which
// must not step while a record expires.
func (e *Engine) KeepSwept(stop <-chan struct{}, unixMilli func() int64) {
	timer := time.NewTimer(sweepTick)
	defer timer.Stop()
	last := time.Now()
	found := last // when there was something to free
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		if e.haveSpare(doomedRecords) || e.haveSpare(doomedParts) {
			found = now
		}
		atOnce := min(e.pagesIn(sweepTick), sweepAtOnce)
		for pages := e.pagesIn(now.Sub(last)); pages > 0; pages -= atOnce {
			select {
			case <-stop:
				return
			default:
			}
			if e.Sweep(unixMilli(), min(pages, atOnce)) > 0 {
				found = now
			}
		}
		last = now
		pause := max(0, sweepTick-time.Since(now))
		if now.Sub(found) > sweepRest {
			pause = beat.Until(sweepRest)
		}
		timer.Reset(pause)
	}
}

// pagesIn is how many pages are to be looked at in a part of a round.
func (e *Engine) pagesIn(part time.Duration) int {
	return 1 + int(min(1, float64(part)/float64(sweepRound))*float64(e.Pages()))
}
