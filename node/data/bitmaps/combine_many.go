package bitmaps

import (
	"bytes"
	"context"
	"slices"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// sourcesAtOnce is how many sources a BITOP looks up in one run.
const sourcesAtOnce = 1024

// sourceSize is about the memory of a source beside its bytes.
const sourceSize = 96

// gathered is a BITOP whose sources are gathered in several runs, because they are many, or too long
// to be copied in one. It holds its partition, so the sources do not change meanwhile. A goroutine
// then makes the result.
type gathered struct {
	w      *exec.Rewrite // which does not run again
	op     bitstring.Combination
	length int             // of the result
	runs   [][]exec.Source // the sources that each run has gathered
}

func combineMany(r *exec.Request, op bitstring.Combination) {
	locks := r.LockKeys()
	defer locks.Release()
	g, _ := locks.State.(*gathered)
	if g == nil {
		destination := bytes.Clone(r.Args[2])
		g = &gathered{w: &exec.Rewrite{Args: [][]byte{2: destination}, Engine: r.Engine}, op: op}
	}
	g.runs = append(g.runs, make([]exec.Source, 0, min(sourcesAtOnce, len(r.Keys)-locks.First)))
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
		n, ok := g.add(r, t, key)
		if !ok {
			g.End()
			return
		}
		locks.Copied(i, n)
	}
	locks.Hold()
	r.Host.Later(g)
}

// add gathers the next source. If ok is false, it has answered the error.
func (g *gathered) add(r *exec.Request, t engine.Txn, key []byte) (copied int, ok bool) {
	item, found, ok := r.ReadString(t, key)
	if !ok {
		return 0, false
	}
	s := exec.SourceOf(t, item, found)
	last := &g.runs[len(g.runs)-1]
	*last = append(*last, s)
	if !g.w.Charge(sourceSize + len(s.Small)) {
		r.Fail(exec.ErrOOM)
		return 0, false
	}
	g.length = max(g.length, len(s.Value()))
	return len(s.Small), true
}

// Run makes the result.
func (g *gathered) Run(ctx context.Context) {
	g.w.Sources = slices.Concat(g.runs...)
	g.w.Err = combineAll(ctx, g.w, g.op, g.length)
	g.drop()
}

// drop releases the sources. Run does so, because the loop has no time for thousands.
func (g *gathered) drop() {
	for _, run := range g.runs {
		for i := range run {
			run[i].Drop()
		}
	}
	g.runs, g.w.Sources = nil, nil
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

// End frees what Reply has not used.
func (g *gathered) End() {
	g.drop()
	g.w.DropValues()
}
