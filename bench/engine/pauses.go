package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
)

// pauseQuestion describes one run: commands at a steady rate, and something that may make them
// wait.
type pauseQuestion struct {
	Disturbance string
	Control     bool // the commands do nothing; everything else is the same
	Keys        int
	MaxBytes    int64
	Rate        int // commands a second
	Length      time.Duration
	LargeLen    int // bytes of the large value
}

// pauseAnswer has how long the commands waited.
type pauseAnswer struct {
	All, Own  histogram.Histogram // see pauseNotes
	Hit       float64             // share of the GETs
	Events    []pauseEvent
	Heap      int64 // bytes of Go's heap, unused memory in it included
	GCs       int
	GCPause99 time.Duration
	GCPause   time.Duration // longest
}

// pauseEvent is one step of the disturbance.
type pauseEvent struct {
	Name    string
	Count   int
	Longest time.Duration
}

const (
	pauseTarget   = time.Millisecond // of the 99.99th percentile
	heapTarget    = 64 << 20
	gcPauseTarget = 500 * time.Microsecond
)

const pauseNotes = `Microseconds. 70 % GET, 20 % SET of new keys, 4 % SET in other sizes, 4 % SET with expiry, 2 % DEL; keys of 16 bytes, values of 64;
memory is full, keys are evicted and expire, and the sweep runs at its pace, as in a node. control: commands that do nothing, beside the same.
one command: from its begin to its end, less the time that the thread could have run and others had the processor.
by schedule: from when it was to begin, whether or not those before were done: what took processors from the thread counts, too.
`

func printPauses(ctx context.Context, out io.Writer, o options) error {
	q := [sizes]pauseQuestion{
		{Keys: 10_000_000, Rate: 500_000, Length: 12 * time.Second, LargeLen: 512 << 20},
		{Keys: 1_000_000, Rate: 500_000, Length: 2 * time.Second, LargeLen: 64 << 20},
		{Keys: 5000, Rate: 50_000, Length: 100 * time.Millisecond, LargeLen: 1 << 20},
	}[o.size]
	if o.keys > 0 {
		q.Keys = o.keys
	}
	// Nine tenths of the memory that all keys would take, or enough for the large value beside
	// others.
	q.MaxBytes = max(int64(q.Keys)*95, int64(q.LargeLen)*3/2, 32<<20)
	if o.maxBytes > 0 {
		q.MaxBytes = o.maxBytes
	}
	fmt.Fprint(out, pauseNotes)
	fmt.Fprintf(out, "%d keys, %d MiB, %d commands a second, %v each; a large value has %d MiB.\n\n",
		q.Keys, q.MaxBytes>>20, q.Rate, q.Length, q.LargeLen>>20)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\t\tone command:\t\t\t\t\t\tby schedule:\t\t\t\t")
	fmt.Fprintln(t, "\t\tp50\tp99.9\tp99.99\tlongest\tabove 1 ms\t\tp50\tp99\tp99.99\tlongest\t")
	var last pauseAnswer
	events := ""
	for _, d := range disturbances {
		if !strings.Contains(d.name, o.rows) {
			continue
		}
		for _, control := range []bool{false, true} {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			q.Disturbance, q.Control = d.name, control
			fmt.Fprintf(o.say, "pauses: %s, control %v\n", d.name, control)
			var a pauseAnswer
			if err := runCase("pauses", q, &a); err != nil {
				return err
			}
			fmt.Fprintf(t, "%s\n", a.line(d.name, control))
			if !control {
				events += a.eventLine(d)
				last = a
			}
		}
	}
	_ = t.Flush() // text for people
	fmt.Fprintf(out, "\n%s", events)
	last.writeHeap(out, q.Keys)
	return nil
}

func (a *pauseAnswer) line(name string, control bool) string {
	who, verdict := "dunlin", reached(a.Own.Quantile(0.9999) < pauseTarget)
	if control {
		name, who, verdict = "", "control", ""
	}
	return fmt.Sprintf("%s\t%s\t", name, who) + quantiles(&a.Own, 0.5, 0.999, 0.9999, 1) +
		fmt.Sprintf("%d\t%s\t", a.Own.Above(pauseTarget), verdict) + quantiles(&a.All, 0.5, 0.99, 0.9999, 1)
}

func quantiles(h *histogram.Histogram, qs ...float64) (cells string) {
	for _, q := range qs {
		cells += fmt.Sprintf("%.1f\t", float64(h.Quantile(q))/1e3)
	}
	return cells
}

func (a *pauseAnswer) eventLine(d disturbance) string {
	line := fmt.Sprintf("%s: %s. %.0f %% of the GETs hit.", d.name, d.title, 100*a.Hit)
	for _, e := range a.Events {
		line += fmt.Sprintf(" %s: %d times, the longest %v.", e.Name, e.Count, e.Longest.Round(time.Microsecond))
	}
	return line + "\n"
}

func (a *pauseAnswer) writeHeap(out io.Writer, keys int) {
	fmt.Fprintf(out, "\nGo's heap with %d keys: %.1f MiB, at most %d: %s. %d collections under load: pauses p99 %v, longest %v, at most %v: %s.\n",
		keys, float64(a.Heap)/(1<<20), heapTarget>>20, reached(a.Heap <= heapTarget),
		a.GCs, a.GCPause99.Round(time.Microsecond), a.GCPause.Round(time.Microsecond), gcPauseTarget,
		reached(a.GCPause <= gcPauseTarget))
}
