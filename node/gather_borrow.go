package node

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlin-cache/dunlin/internal/command"
)

const (
	// loansAtOnce is how many keys a gathered command borrows at a time.
	loansAtOnce = 8
	// waitingLoans and waitingBytes are how many loans wait at most until they are put into the
	// scratch, and how long they are together.
	waitingLoans = 64
	waitingBytes = stagedLoan
)

// borrowed is what the keys of a command hold, on its way into a scratch. What is short waits until
// the command is executed. So most commands compute once, and have a scratch for that time only.
type borrowed struct {
	*gatherRun
	dest    []byte   // under which the command stores; nil: it reads
	before  *loan    // of dest, if the command reads that key, too, in any place
	scratch *scratch // nil: nothing had to be put there yet
	waiting []lent
	bytes   int // in waiting
}

// lent is a loan of the key that is an argument, or why there is none.
type lent struct {
	at   int
	loan *loan
	err  error
}

// borrow borrows what the command's keys hold.
func (b *borrowed) borrow(ctx context.Context) error {
	places, _ := b.cmd.AppendKeys(nil, b.args)
	seen := make(map[string]struct{}, len(places))
	stores := func(at int) bool { return at == b.gatherRun.dest && b.how != command.GatherMerge } // and does not read
	isDest := func(at int) bool { return b.dest != nil && bytes.Equal(b.args[at], b.dest) }
	places = slices.DeleteFunc(places, func(at int) bool {
		_, again := seen[string(b.args[at])]
		if again || stores(at) {
			return true
		}
		seen[string(b.args[at])] = struct{}{}
		return false
	})
	return b.borrowEach(ctx, places, isDest, func(l lent) error {
		size := len(l.loan.payload())
		b.waiting, b.bytes = append(b.waiting, l), b.bytes+size
		b.lent += size
		if isDest(l.at) {
			b.before = l.loan
		}
		if b.bytes < waitingBytes && len(b.waiting) < waitingLoans {
			return nil
		}
		return b.compute(ctx, func() error { return b.put(ctx) })
	})
}

// put puts what waits into the scratch.
func (b *borrowed) put(ctx context.Context) (err error) {
	if b.scratch == nil {
		if b.scratch, err = b.node.newScratch(b.version, b.database, b.dest); err != nil {
			return err
		}
	}
	for ; len(b.waiting) > 0; b.waiting = b.waiting[1:] {
		l := b.waiting[0]
		if err := b.scratch.put(ctx, b.args[l.at], l.loan); err != nil {
			return err
		}
		l.loan.end()
	}
	b.bytes = 0
	return nil
}

// execute executes the command on what was borrowed. The reply is valid until the scratch's next
// one.
func (b *borrowed) execute(ctx context.Context) (reply []byte, err error) {
	if err := b.put(ctx); err != nil {
		return nil, err
	}
	b.scratch.stored = keyChange{}
	return b.scratch.do(ctx, b.args...)
}

// end gives everything back.
func (b *borrowed) end() {
	for _, l := range b.waiting {
		l.loan.end()
	}
	b.waiting = nil
	if s := b.scratch; s != nil {
		b.hits, b.misses = b.hits+s.Worker.Count.Hits, b.misses+s.Worker.Count.Misses
		s.close()
	}
}

// borrowEach borrows the keys that are these arguments, some at a time, and calls f with one loan
// after the other, as they come. f ends the loan, or has somebody else do so. While clients have to
// wait for the loops, it borrows one at a time. It may change places.
func (w *gatherRun) borrowEach(
	ctx context.Context, places []int, versioned func(at int) bool, f func(l lent) error,
) error {
	left := newAllowance()
	away := places[:0]
	for _, at := range places {
		switch l, err := w.borrowHere(ctx, w.args[at], versioned(at), left); {
		case err != nil:
			return err
		case l == nil:
			away = append(away, at)
		default:
			if err := f(lent{at: at, loan: l}); err != nil {
				return err
			}
		}
	}
	return w.askEach(ctx, away, func(ctx context.Context, at int) (l lent) {
		l.at = at
		leave, err := enter(ctx, w.node.gathers.asking)
		if l.err = err; err == nil {
			l.loan, l.err = w.node.borrow(ctx, w.database, w.args[at], versioned(at), left)
			leave()
		}
		return l
	}, f)
}

// askEach is borrowEach for keys that other nodes are asked for, each by ask.
func (w *gatherRun) askEach(
	ctx context.Context, places []int, ask func(ctx context.Context, at int) lent, f func(l lent) error,
) error {
	switch len(places) {
	case 0:
		return nil
	case 1: // no other goroutine is needed
		l := ask(ctx, places[0])
		if l.err != nil {
			return l.err
		}
		return f(l)
	}
	ctx, cancel := context.WithCancel(ctx)
	come := make(chan lent)
	defer func() { // f may have failed, or it panics: nobody asks any more, and what has come is given back
		cancel()
		for l := range come {
			if l.loan != nil {
				l.loan.end()
			}
		}
	}()
	var next atomic.Int64
	var askers sync.WaitGroup
	for i := range min(loansAtOnce, len(places)) {
		askers.Go(func() {
			for i == 0 || !w.node.strained() {
				n := int(next.Add(1)) - 1
				if n >= len(places) {
					return
				}
				come <- ask(ctx, places[n])
			}
		})
	}
	go func() {
		askers.Wait()
		close(come)
	}()
	for l := range come {
		if l.err != nil {
			return l.err
		}
		if err := f(l); err != nil {
			return err
		}
	}
	return nil
}
