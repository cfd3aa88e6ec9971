package main

import (
	"context"
	"fmt"
	"slices"
)

var (
	// openWork are the workloads that are repeated in an open loop.
	openWork = []string{"get1", "get16"}
	// shares of a peer's own median throughput in the closed loop, in percent.
	shares = []int{50, 70, 90}
)

// openTimes is how many times longer an open run is, because its figure is a rare wait.
const openTimes = 2

// pace is an open loop on a peer.
type pace struct {
	cell
	share int
}

// calm is the result of one run of an open loop.
type calm struct {
	rate           float64 // commands a second, by schedule
	p50, p99, p999 float64 // milliseconds from the intended time
	late           float64 // milliseconds by which this process sent batches late, in the 99th percentile
}

// runOpen loads every peer at shares of its own peak, in rounds as run does.
func (r *race) runOpen(ctx context.Context) error {
	for round := range r.rounds {
		for _, w := range r.work {
			if !slices.Contains(openWork, w.name) {
				continue
			}
			for i := range r.live {
				l := r.live[(i+round)%len(r.live)]
				if err := r.runShares(ctx, round, w, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *race) runShares(ctx context.Context, round int, w workload, l *live) error {
	at := cell{w.name, l.name}
	ok := succeeded(r.results[at])
	if len(ok) == 0 {
		return nil // the failure is among the notes
	}
	peak := medianOf(ok, func(x *sample) float64 { return x.ops })
	for _, share := range shares {
		fmt.Fprintf(r.say, "round %d of %d: %s on %s, open loop at %d %%\n", round+1, r.rounds, w.name, l.name, share)
		c := w.config(l, r.keys, r.threads, openTimes*r.length)
		c.Rate = peak * float64(share) / 100
		result, err := r.load(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			r.notef("%s on %s failed in round %d of the open loop: %v", w.name, l.name, round+1, err)
			continue
		}
		r.noteMissed(w.name, l.name, result)
		q := func(q float64) float64 { return millis(result.Latency.Quantile(q)) }
		x := &calm{rate: c.Rate, p50: q(0.5), p99: q(0.99), p999: q(0.999), late: millis(result.Late.Quantile(0.99))}
		r.steady[pace{at, share}] = append(r.steady[pace{at, share}], x)
	}
	return nil
}
