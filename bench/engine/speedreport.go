package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

const speedNotes = `Nanoseconds for each operation (of all cores: time that passed, by the operations of all), and allocations, if any.
Keys of 16 bytes. A GET copies the value out, a SET copies key and value in. dunlin is used as a node uses it: CRC16 of
the key, lock, operation, unlock. "of 16": the keys are known before the first is used, as those of a pipeline are, and
dunlin is told of them. map: 256 maps behind RWMutexes. What the measuring costs ("harness": making keys, calling a
contender that does nothing) is subtracted. Each contender has its own process; they take turns, the others stopped. Time
in which other programs had the processor is taken off. Medians of the rounds; a ratio is taken within a round, above 1
dunlin is ahead.
`

// The targets of the ratios.
const (
	overMap  = 1
	overFast = 0.9 // "not behind by more than 10 %"
)

// nanos returns the figures of one contender in all rounds, with those of the harness subtracted,
// or nil if it took no part.
func (row *speedRow) nanos(contender int) (all []float64) {
	for _, round := range row.rounds {
		if round[contender].Nanos > 0 {
			all = append(all, max(0.1, round[contender].Nanos-round[len(contenders)-1].Nanos))
		}
	}
	return all
}

// ratio returns how many times faster Dunlin is than the other, or 0 if the other took no part.
func (row *speedRow) ratio(other int) float64 {
	ours, theirs := row.nanos(0), row.nanos(other)
	if theirs == nil {
		return 0
	}
	for i := range ours {
		theirs[i] /= ours[i]
	}
	return median(theirs)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (row *speedRow) title() string {
	return fmt.Sprintf("%v, %s, %d", row.Op, row.order(), row.Workers)
}

func (row *speedRow) order() string {
	switch {
	case row.Op == opInsert:
		return "each once"
	case row.Zipf:
		return "Zipf 1.0"
	}
	return "uniform"
}

// write prints the table of a race, and the rows that miss their targets.
func (r *race) write(w io.Writer) {
	fmt.Fprintf(w, "\n%d keys, values of %d bytes, goroutines 1 and %d; bytes of memory for each key when all are in:", r.keys, r.valueLen, r.cores)
	for i, name := range contenders[:len(contenders)-1] {
		fmt.Fprintf(w, " %s %.0f", name, float64(r.resident[i]-r.resident[len(contenders)-1])/float64(r.keys))
	}
	fmt.Fprint(w, "\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tkeys\tgoroutines\tdunlin\tmap\tfastcache\tharness\tmap/dunlin\tfastcache/dunlin\t")
	for _, row := range r.rows {
		fmt.Fprintln(t, row.line())
	}
	_ = t.Flush() // text for people
	if lost := r.lost(); lost != "" {
		fmt.Fprintln(w, lost)
	}
}

func (row *speedRow) line() string {
	line := fmt.Sprintf("%v\t%s\t%d\t", row.Op, row.order(), row.Workers)
	for i := range contenders {
		line += row.cell(i) + "\t"
	}
	return line + verdict(row.ratio(1), overMap) + "\t" + verdict(row.ratio(2), row.fastTarget()) + "\t"
}

// fastTarget is the target of the ratio to fastcache. Only GET and SET have one, because fastcache
// does less for the other operations.
func (row *speedRow) fastTarget() float64 {
	switch row.Op {
	case opGet, opGetMany, opInsert, opSetSame, opSetMany, opSetOther:
		return overFast
	}
	return 0
}

func (row *speedRow) cell(contender int) string {
	all := row.nanos(contender)
	if contender == len(contenders)-1 {
		all = nil
		for _, round := range row.rounds {
			all = append(all, round[contender].Nanos)
		}
	}
	if all == nil {
		return "-"
	}
	var allocs []float64
	for _, round := range row.rounds {
		allocs = append(allocs, round[contender].Allocs)
	}
	text := fmt.Sprintf("%.0f", median(all))
	if a := median(allocs); a >= 0.005 {
		text += fmt.Sprintf(" (%.1f)", a)
	}
	return text
}

func verdict(ratio, target float64) string {
	switch {
	case ratio == 0:
		return "-"
	case ratio < target:
		return fmt.Sprintf("%.2f BEHIND", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}

// lost names contenders that did not find some of their keys: they did less work than the others.
func (r *race) lost() (text string) {
	for i, name := range contenders {
		for _, row := range r.rows {
			n := 0
			for _, round := range row.rounds {
				n += round[i].Lost
			}
			if n > 0 {
				text += fmt.Sprintf("%s did not find %d keys in %s\n", name, n, row.title())
			}
		}
	}
	return text
}
