package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/bench/load"
)

// sample is one run of a workload on a peer.
type sample struct {
	ops      float64        // per second
	p50, p99 float64        // milliseconds
	cpu      [roles]float64 // microseconds per operation
	rss      [roles]float64 // megabytes, after the run
	busy     float64        // share that the load generator used of the processors that it may use
}

// race is the state of a run; the main goroutine alone uses it.
type race struct {
	work    []workload
	live    []*live
	tools   map[string]string
	rounds  int
	length  time.Duration // of a run
	keys    int
	threads int
	machine string    // description of the machine, for people
	say     io.Writer // progress
	load    func(context.Context, load.Config) (*load.Result, error)

	results map[cell][]*sample // by round; nil: failed
	steady  map[pace][]*calm   // successful runs of open loops
	notes   []string           // remarks for the reader of the figures
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
			err = l.fill(ctx, r.keys)
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

// run races until all rounds are done or ctx ends. results has everything that was measured until
// then.
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
	before, _, err := l.usage()
	if err != nil {
		return nil, err
	}
	before[roleLoad] = ownTime()
	result, err := r.load(ctx, w.config(l, r.keys, r.threads, r.length))
	if err != nil {
		return nil, err
	}
	own := ownTime()
	after, bytes, err := l.usage()
	if err != nil {
		return nil, err
	}
	after[roleLoad] = own
	x := &sample{ops: result.PerSecond(), p50: millis(result.Latency.Quantile(0.5)),
		p99:  millis(result.Latency.Quantile(0.99)),
		busy: (own - before[roleLoad]).Seconds() / result.Elapsed.Seconds() / float64(r.threads)}
	for i := range after {
		x.cpu[i] = float64((after[i] - before[i]).Microseconds()) / float64(result.Commands)
		x.rss[i] = float64(bytes[i]) / 1e6
	}
	r.noteMissed(w.name, l.name, result)
	return x, nil
}

func (r *race) noteMissed(work, peer string, result *load.Result) {
	if result.Missed > 0 {
		r.notef("%s on %s: %d of the keys asked for were not there, and a GET that finds nothing is cheaper than one that does", work, peer, result.Missed)
	}
}

// ownTime returns the processor time that this process has used.
func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: a process cannot read its own usage: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }
