package bitmaps

import (
	"bytes"
	"context"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sourcesAtOnce is how many sources a BITOP looks up in one run.
const sourcesAtOnce = 1024

// releasedAtOnce is how many large sources the loop releases in one turn. That of one whose key has been deleted
// meanwhile frees its memory.
const releasedAtOnce = 256

// sourceSize is about the memory of a large source while it is pinned.
const sourceSize = 192

// gathered is a BITOP whose sources are gathered in several runs, because they are many, or too long
// to be copied in one. It holds its partition, so the sources do not change meanwhile. A goroutine
// then makes the result. However many sources there are, it keeps little of them: those that are not large are folded
// as they are met, and of one that is named again and again it notes how often.
type gathered struct {
	w      *exec.Rewrite // which does not run again
	turn   func(func())  // of the loop; nil outside of loops
	op     bitstring.Combination
	length int         // of the result
	first  exec.Source // if the others are compared to it
	folded bitstring.Folded
	large  map[engine.Pin]int // how often each is named
}

// comparesFirst reports whether the first source of an operation is not like the others.
func comparesFirst(op bitstring.Combination) bool {
	return op == bitstring.Not || op == bitstring.Diff || op == bitstring.Diff1 || op == bitstring.AndOr
}

func combineMany(r *exec.Request, op bitstring.Combination) {
	locks := r.LockKeys()
	defer locks.Release()
	g, _ := locks.State.(*gathered)
	if g == nil {
		g = &gathered{
			w: r.NewResult([][]byte{2: bytes.Clone(r.Args[2])}), turn: r.Worker.Turn, op: op, large: map[engine.Pin]int{},
		}
	}
	for i := locks.First; i < len(r.Keys); i++ {
		t, key, ok := locks.At(i)
		if !ok {
			locks.State = g
			locks.Stop(i, 0)
			return
		}
		if i == 0 {
			continue // the destination
		}
		n, ok := g.add(r, t, key, i == 1 && comparesFirst(op))
		if !ok {
			locks.Release()
			g.End()
			return
		}
		locks.Copied(i, n)
	}
	locks.Hold()
	r.Host.Later(g)
}

// add gathers the next source. apart: it is the one to which the others are compared. It returns how many bytes it has
// copied or folded. If ok is false, it has answered the error.
func (g *gathered) add(r *exec.Request, t engine.Txn, key []byte, apart bool) (n int, ok bool) {
	item, found, ok := r.ReadString(t, key)
	if !ok {
		return 0, false
	}
	var value []byte
	if found {
		value = item.Value()
		g.length = max(g.length, len(value))
	}
	pin, isLarge := engine.Pin{}, false
	if found && !apart {
		pin, isLarge = t.Pin(item)
	}
	size := 0
	switch {
	case apart:
		g.first = exec.SourceOf(t, item, found)
		n = len(g.first.Small)
		size = n
	case isLarge && g.large[pin] > 0:
		g.large[pin]++
		pin.Release()
	case isLarge:
		g.large[pin] = 1
		size = sourceSize
	default:
		before := g.folded.Len()
		g.folded.Add(g.op, value)
		n = len(value)
		size = max(g.folded.Len()-before, 0)
	}
	if size > 0 && !g.w.Charge(size) {
		r.Fail(exec.ErrOOM)
		return 0, false
	}
	return n, true
}

// sources returns views of what has the effect of all sources. A source that is named four times
// has the effect of one that is named twice, and one that is named five times that of one that is
// named three times, whatever the operation.
func (g *gathered) sources() (views [][]byte) {
	if comparesFirst(g.op) {
		views = append(views, g.first.Value())
	}
	views = g.folded.AppendSources(views)
	for pin, times := range g.large {
		if times > 3 {
			times = 2 + times%2
		}
		for range times {
			views = append(views, pin.Value())
		}
	}
	return views
}

// Run makes the result.
func (g *gathered) Run(ctx context.Context) {
	g.w.Err = combineAll(ctx, g.w, g.sources(), g.op, g.length)
	g.first.Drop()
	g.release(len(g.large)) // here, because the loop has no time for thousands
	g.folded = bitstring.Folded{}
}

// release releases some of the large sources.
func (g *gathered) release(some int) {
	for pin := range g.large {
		if some--; some < 0 {
			return
		}
		delete(g.large, pin)
		pin.Release()
	}
	g.large = nil
}

// Reply stores the result.
func (g *gathered) Reply(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	w := g.w
	switch key := w.Args[2]; {
	case w.Err != nil:
		r.ReplyStoreError(w.Err)
	case g.length == 0:
		deleteCombined(r, t, key)
	case w.Staged.Live():
		storeCombined(r, t.SetStaged(&w.Staged, engine.TypeString, 0), key, g.length)
	default:
		storeCombined(r, t.Set(key, w.Small, engine.TypeString, 0), key, g.length)
	}
}

// End frees what Reply has not used. If the client has left before Run, that are all sources, which takes turns.
func (g *gathered) End() {
	g.first.Drop()
	g.folded = bitstring.Folded{}
	g.endTurn()
}

func (g *gathered) endTurn() {
	some := releasedAtOnce
	if g.turn == nil {
		some = len(g.large)
	}
	if g.release(some); g.large != nil {
		g.turn(g.endTurn)
		return
	}
	g.w.DropValues()
}
