package node

import "github.com/dunlin-cache/dunlin/node/exec"

// rateWindow tells how fast a counter has grown of late.
type rateWindow struct {
	samples [exec.RateSamples]uint64
	next    int
	filled  int
}

// sample is called every samplePeriod.
func (w *rateWindow) sample(total uint64) {
	w.samples[w.next] = total
	w.next = (w.next + 1) % exec.RateSamples
	w.filled = min(w.filled+1, exec.RateSamples)
}

// perSecond returns the growth between the oldest and the newest sample.
func (w *rateWindow) perSecond() float64 {
	if w.filled < 2 {
		return 0
	}
	newest := w.samples[(w.next+exec.RateSamples-1)%exec.RateSamples]
	oldest := w.samples[(w.next+exec.RateSamples-w.filled)%exec.RateSamples]
	if newest < oldest {
		return 0 // the counters were reset in between
	}
	return float64(newest-oldest) / (float64(w.filled-1) * samplePeriod.Seconds())
}

// sample is a timer of the worker.
func (w *worker) sample() {
	w.rate.sample(w.Count.Executed)
	w.hot.fade(w.loop.Now())
	w.heap.Store(w.account.Other())
	if w.loop == w.node.workers[0].loop {
		w.node.notePeak(w.node.engine.Used())
	}
}
