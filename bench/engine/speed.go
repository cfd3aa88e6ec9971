package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"syscall"
)

// speedSize is how much the speed table measures.
type speedSize struct {
	keys, values []int
	rounds       int
	ops          int // of one contender in one round
	accesses     int
}

var speedSizes = [sizes]speedSize{
	full:  {keys: []int{1_000_000, 10_000_000}, values: []int{64, 256}, rounds: 5, ops: 300_000, accesses: 1 << 22},
	quick: {keys: []int{1_000_000}, values: []int{64}, rounds: 3, ops: 200_000, accesses: 1 << 20},
	tiny:  {keys: []int{2000}, values: []int{64}, rounds: 1, ops: 500, accesses: 1000},
}

const speedKeyLen = 16

// race has the contenders with one number of keys and one length of values. Each has a process, and
// all but the measured one are stopped, so that no collector runs while another contender is
// measured.
type race struct {
	size       speedSize
	keys       int
	valueLen   int
	cores      int
	contenders []*child
	rows       []*speedRow
	resident   [4]int64 // bytes by contender, when it has all keys
	say        io.Writer
}

// speedRow is a line of the table. The figures of a round were measured one right after another.
type speedRow struct {
	speedTask
	rounds [][4]speedResult // by contender; Nanos is 0 where it takes no part
}

func printSpeed(ctx context.Context, out io.Writer, o options) error {
	size := speedSizes[o.size]
	if o.keys > 0 {
		size.keys = []int{o.keys}
	}
	fmt.Fprint(out, speedNotes)
	for _, keys := range size.keys {
		for _, valueLen := range size.values {
			r := &race{size: size, keys: keys, valueLen: valueLen, cores: runtime.NumCPU(), say: o.say}
			if err := r.run(ctx); err != nil {
				return err
			}
			r.write(out)
		}
	}
	return nil
}

// run measures every row. The keys are inserted once by each number of workers, into empty
// contenders.
func (r *race) run(ctx context.Context) error {
	defer r.end()
	for _, workers := range r.workerCounts() {
		r.end()
		if err := r.open(); err != nil {
			return err
		}
		if err := r.insert(ctx, workers); err != nil {
			return err
		}
	}
	for i := range contenders {
		if _, err := r.ask(i, speedTask{Settle: true}); err != nil {
			return err
		}
	}
	for _, o := range []op{opGet, opGetMany, opDel, opSetSame, opSetMany, opSetOther, opExpireFirst,
		opExpireAgain, opIncr} {
		if err := r.prepare(o); err != nil {
			return err
		}
		for _, zipfian := range []bool{false, true} {
			for _, workers := range r.workerCounts() {
				t := speedTask{Op: o, Zipf: zipfian, Workers: workers, To: r.size.ops}
				if err := r.measure(ctx, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *race) workerCounts() []int { return slices.Compact([]int{1, r.cores}) }

func (r *race) open() error {
	q := speedOpen{Keys: r.keys, KeyLen: speedKeyLen, ValueLen: r.valueLen, Accesses: r.size.accesses,
		MaxBytes: r.maxBytes()}
	for i, name := range contenders {
		q.Contender = name
		c, err := startCase("speed")
		if err != nil {
			return err
		}
		r.contenders = append(r.contenders, c)
		if _, err := r.ask(i, q); err != nil {
			return err
		}
	}
	return nil
}

// maxBytes is one and a half times the memory that all keys need in any contender.
func (r *race) maxBytes() int64 {
	return max(64<<20, int64(r.keys)*int64(speedKeyLen+r.valueLen+48)*3/2)
}

func (r *race) end() {
	for _, c := range r.contenders {
		c.end()
	}
	r.contenders = nil
}

// ask lets contender i work, alone.
func (r *race) ask(i int, question any) (answer speedResult, err error) {
	c := r.contenders[i]
	_ = c.cmd.Process.Signal(syscall.SIGCONT) // ask says if it has ended
	err = c.ask(question, &answer)
	_ = c.cmd.Process.Signal(syscall.SIGSTOP)
	return answer, err
}

// insert fills the contenders in turn, and adds a row for that.
func (r *race) insert(ctx context.Context, workers int) error {
	const turns = 8
	row := &speedRow{speedTask: speedTask{Op: opInsert, Workers: workers}}
	r.rows = append(r.rows, row)
	fmt.Fprintf(r.say, "speed: %d keys, values of %d bytes: insert by %d\n", r.keys, r.valueLen, workers)
	var sum [4]speedResult
	for turn := range turns {
		for i := range r.contenders {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			t := row.speedTask
			t.From, t.To = r.keys*turn/turns, r.keys*(turn+1)/turns
			a, err := r.ask(i, t)
			if err != nil {
				return err
			}
			sum[i].Nanos += a.Nanos / turns
			sum[i].Allocs += a.Allocs / turns
			sum[i].Keys, r.resident[i] = a.Keys, a.Resident
		}
	}
	row.rounds = append(row.rounds, sum)
	for i, name := range contenders {
		if n := sum[i].Keys; n != r.keys && name != harness {
			fmt.Fprintf(r.say, "%s has %d of %d keys\n", name, n, r.keys)
		}
	}
	return nil
}

// prepare brings the keys into the state in which an operation is measured.
func (r *race) prepare(o op) error {
	t := speedTask{Op: opInsert, Workers: r.cores, To: r.keys, Untimed: true}
	switch o {
	case opExpireAgain:
		t.Expire = true
	case opIncr:
		t.Counters = true
	default:
		return nil
	}
	for i, name := range contenders {
		if !takesPart(name, o) {
			continue
		}
		if _, err := r.ask(i, t); err != nil {
			return err
		}
	}
	return nil
}

// measure adds a row. In each of its rounds another contender begins.
func (r *race) measure(ctx context.Context, t speedTask) error {
	row := &speedRow{speedTask: t}
	r.rows = append(r.rows, row)
	fmt.Fprintf(r.say, "speed: %d keys, values of %d bytes: %s\n", r.keys, r.valueLen, row.title())
	for round := range r.size.rounds {
		var results [4]speedResult
		for k := range contenders {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			i := (k + round) % len(contenders)
			if !takesPart(contenders[i], t.Op) {
				continue
			}
			var err error
			if results[i], err = r.ask(i, t); err != nil {
				return err
			}
		}
		row.rounds = append(row.rounds, results)
	}
	return nil
}

func takesPart(contender string, o op) bool {
	return contender != fastc || o != opExpireFirst && o != opExpireAgain && o != opIncr
}
