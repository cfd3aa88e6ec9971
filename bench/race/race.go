package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// spotStep is the distance between the keys that are looked at after the race.
const spotStep = 997

// sample is one run of a workload on a peer.
type sample struct {
	speed
	cpu  [roles]float64 // microseconds per operation
	rss  float64        // megabytes, of all processes of the peer, after the run
	busy float64        // share of one processor that redis-benchmark used
	took time.Duration
}

// race is the state of a run; the main goroutine alone uses it.
type race struct {
	work   []workload
	live   []*live
	tools  map[string]string
	rounds int
	scale  float64
	keys   int
	say    io.Writer // progress

	results map[cell][]*sample // by round; nil: failed
	notes   []string           // what the reader of the figures must know
}

type cell struct{ work, peer string }

func (r *race) notef(format string, arguments ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, arguments...))
	fmt.Fprintln(r.say, r.notes[len(r.notes)-1])
}

// prepare starts and fills the peers whose tools are there. One that fails is
// ended and left out, and the others race without it.
func (r *race) prepare(ctx context.Context, s *stable, entered []peer) error {
	for _, p := range entered {
		if err := r.haveTools(p); err != nil {
			r.notef("%s is left out: %v", p.name, err)
			continue
		}
		fmt.Fprintf(r.say, "starting and filling %s\n", p.name)
		l, err := p.start(s, r.tools)
		if err == nil {
			err = l.waitReady(ctx)
		}
		if err == nil {
			err = fill(ctx, l.addr, r.keys)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			l.end()
			r.notef("%s is left out: %v", p.name, err)
		default:
			r.live = append(r.live, l)
		}
	}
	if len(r.live) == 0 {
		return errors.New("no peer could be started")
	}
	return nil
}

func (r *race) haveTools(p peer) error {
	for _, tool := range p.needs {
		path, err := findTool(tool)
		if err != nil {
			return err
		}
		r.tools[tool] = path
	}
	return nil
}

// run races until all rounds are done or ctx ends; what was measured until then
// is in the results.
func (r *race) run(ctx context.Context) error {
	for round := range r.rounds {
		for _, w := range r.work {
			for i := range r.live {
				l := r.live[(i+round)%len(r.live)]
				fmt.Fprintf(r.say, "round %d of %d: %s on %s\n", round+1, r.rounds, w.name, l.name)
				x, err := r.measure(ctx, w, l)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err != nil {
					r.notef("%s on %s failed in round %d: %v", w.name, l.name, round+1, err)
				}
				at := cell{w.name, l.name}
				r.results[at] = append(r.results[at], x)
			}
		}
	}
	return nil
}

// measure runs a workload once. The sample is nil when there is an error.
func (r *race) measure(ctx context.Context, w workload, l *live) (*sample, error) {
	requests := w.count(r.scale)
	before, _, err := l.usage()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	limit := time.Duration(max(1, r.scale) * float64(runLimit))
	s, own, err := w.load(ctx, r.tools[redisBenchmark], l.addr, requests, r.keys, limit)
	if err != nil {
		return nil, err
	}
	x := &sample{speed: s, took: time.Since(begin)}
	after, bytes, err := l.usage()
	if err != nil {
		return nil, err
	}
	after[roleLoad] = own
	for i := range after {
		x.cpu[i] = float64((after[i] - before[i]).Microseconds()) / float64(requests)
	}
	x.rss = float64(bytes) / 1e6
	// Of the time that it says it measured, not of took: starting up, and waiting
	// for the last replies, take a quarter of a second.
	x.busy = own.Seconds() / (float64(requests) / s.ops)
	return x, nil
}

// inspect notes which peers lost keys.
func (r *race) inspect(ctx context.Context) {
	for _, l := range r.live {
		gone, asked, err := missing(ctx, l.addr, r.keys, spotStep)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.notef("%s does not answer rightly after the race: %v", l.name, err)
		case gone > 0:
			r.notef("%s has lost keys (%d of %d are gone): a GET that finds nothing is cheaper than one that does", l.name, gone, asked)
		}
	}
}
