package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// limitQuestion says what a process runs.
type limitQuestion struct {
	MaxBytes int64
	Cycles   int // of all phases
}

// limitAnswer has what the case measured. Shares are of the limit.
type limitAnswer struct {
	Empty  int64 // resident bytes before the engine was opened
	Phases []phaseResult
	Refuse refuseResult
	Shrink changeResult // to half the limit
	Flush  changeResult // of all partitions
}

// phaseResult is the result of one phase of one cycle.
type phaseResult struct {
	Name              string
	Sets              int
	Written           int64 // bytes of keys and values
	Took              time.Duration
	Failed            int     // SETs
	MaxResident       float64 // at any time
	Data, Live, Least float64 // see limitNotes
}

// refuseResult is about noeviction.
type refuseResult struct {
	Keys, Failed      int // keys when memory was full; those of them that could not be read
	Data, MaxResident float64
	// Bytes of keys and values that were deleted, and that were then stored until memory was full
	// again.
	Deleted, Again int64
}

// changeResult is the result of a change of the limit or of a flush.
type changeResult struct {
	Took               time.Duration
	Resident, MaxBytes int64 // resident bytes afterwards, and what they must be below
}

const (
	residentTarget = 1.10
	liveTarget     = 0.88
)

const limitNotes = `Each phase writes twice the limit. small: new keys of 24 bytes, values of 16-200. large: 4 KiB-1 MiB, one in 64 of 4 MiB.
mixed: 16 B-1 MiB. churn: old keys in new sizes, 16 B-64 KiB, and one DEL to four SETs. Lengths are log-uniform; every SET is
followed by a GET of a key written some time before.
RSS: most memory that the process had at any time, over the limit. data: bytes of keys and values at the end of the phase, over
the limit. live: the same with headers, expiries and index (Stats.Values and Index). least: of live, since memory was first full.
`

func printLimit(ctx context.Context, out io.Writer, o options) error {
	q := [sizes]limitQuestion{
		{MaxBytes: 512 << 20, Cycles: 3},
		{MaxBytes: 256 << 20, Cycles: 1},
		{MaxBytes: 10 << 20, Cycles: 1},
	}[o.size]
	if o.maxBytes > 0 {
		q.MaxBytes = o.maxBytes
	}
	fmt.Fprintf(o.say, "limit: %d MiB, %d times all phases\n", q.MaxBytes>>20, q.Cycles)
	var a limitAnswer
	if err := runCase("limit", q, &a); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	fmt.Fprint(out, limitNotes)
	fmt.Fprintf(out, "\nThe limit is %d MiB; before the engine was opened, the process had %.1f MiB.\n\n", q.MaxBytes>>20, float64(a.Empty)/(1<<20))
	a.writePhases(out)
	a.writeRest(out)
	return nil
}

func (a *limitAnswer) writePhases(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "phase\tSETs\tGiB written\tseconds\tfailed\tRSS\tdata\tlive\tleast\t")
	worst := phaseResult{Data: 1, Live: 1, Least: 1}
	for _, p := range a.Phases {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%.1f\t%d\t%s\n",
			p.Name, p.Sets, float64(p.Written)/(1<<30), p.Took.Seconds(), p.Failed, p.shares())
		worst.Failed += p.Failed
		worst.MaxResident = max(worst.MaxResident, p.MaxResident)
		worst.Data, worst.Live, worst.Least = min(worst.Data, p.Data), min(worst.Live, p.Live), min(worst.Least, p.Least)
	}
	fmt.Fprintf(t, "worst\t\t\t\t%d\t%s\n", worst.Failed, worst.shares())
	_ = t.Flush() // text for people
	fmt.Fprintf(out, "\nRSS at most %.2f of the limit: %s. Live at least %.2f after each phase: %s. No SET fails: %s.\n",
		residentTarget, reached(worst.MaxResident <= residentTarget), liveTarget,
		reached(worst.Live >= liveTarget), reached(worst.Failed == 0))
}

func (p *phaseResult) shares() string {
	return fmt.Sprintf("%.3f\t%.3f\t%.3f\t%.3f\t", p.MaxResident, p.Data, p.Live, p.Least)
}

func (a *limitAnswer) writeRest(out io.Writer) {
	r := &a.Refuse
	fmt.Fprintf(out, "noeviction: refused a SET with %d keys, data %.3f and RSS %.3f of the limit; %d of them could not be read then; DEL of %.1f MiB, and SETs of %.1f MiB went in again.\n",
		r.Keys, r.Data, r.MaxResident, r.Failed, float64(r.Deleted)/(1<<20), float64(r.Again)/(1<<20))
	a.Shrink.write(out, "The limit lowered to half")
	a.Flush.write(out, "Every partition dropped")
}

func (c *changeResult) write(out io.Writer, what string) {
	fmt.Fprintf(out, "%s: %v, then %.1f MiB resident; at most %.1f: %s.\n", what, c.Took.Round(time.Millisecond/10),
		float64(c.Resident)/(1<<20), float64(c.MaxBytes)/(1<<20), reached(c.Resident <= c.MaxBytes))
}

func reached(ok bool) string {
	if ok {
		return "reached"
	}
	return "NOT reached"
}
