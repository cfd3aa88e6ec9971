package bitmaps

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// combinationOf returns the operation that a BITOP names.
func combinationOf(arg []byte) bitstring.Combination {
	for op := bitstring.And; int(op) < len(bitstring.CombinationNames); op++ {
		if exec.Is(arg, bitstring.CombinationNames[op]) {
			return op
		}
	}
	return bitstring.NoCombination
}

// combineTries bounds how often a result is made again because its sources have other lengths by
// then.
const combineTries = 100

// bitOp: BITOP AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE destination source...
func bitOp(r *exec.Request) {
	op := combinationOf(r.Args[1])
	count := len(r.Args) - 3
	switch {
	case op == bitstring.NoCombination:
		r.Fail(exec.ErrSyntax)
		return
	case op == bitstring.Not && count > 1:
		r.Fail(errBitNot)
		return
	case count < 2 && (op == bitstring.Diff || op == bitstring.Diff1 || op == bitstring.AndOr):
		r.Fail("ERR BITOP " + bitstring.CombinationNames[op] + " must be called with at least two source keys.")
		return
	}
	if r.Rest != nil || count > sourcesAtOnce || !combineFew(r, op) {
		combineMany(r, op)
	}
}

// combineFew answers a BITOP whose sources are looked up in one run. It returns false, and has done
// nothing, if they are too long to be copied in one run.
func combineFew(r *exec.Request, op bitstring.Combination) bool {
	t, ok := r.Lock()
	if !ok {
		return true
	}
	defer t.Unlock()
	length, ok := longest(r, t, r.Args[3:])
	switch {
	case !ok:
	case length == 0:
		deleteCombined(r, t, r.Args[2])
	case length*(len(r.Args)-3) > scanFrom:
		return combineLarge(r, t, op, length)
	default:
		combine(r, t, op, length)
	}
	return true
}

// longest returns the length of the longest string among the keys, all of which it looks up. ok is
// false if one is no string.
func longest(r *exec.Request, t engine.Txn, keys [][]byte) (length int, ok bool) {
	for _, key := range keys {
		item, found, ok := r.FindString(t, key)
		if !ok {
			return 0, false
		}
		if found {
			length = max(length, len(item.Value()))
		}
		if r.Rewrite == nil { // not counted yet
			r.Lookup(found, key)
		}
	}
	return length, true
}

// combine makes a short result on the loop.
func combine(r *exec.Request, t engine.Txn, op bitstring.Combination, length int) {
	w := r.Worker
	result := append(w.Body[:0], make([]byte, length)...)
	fillNow(r, t, op, result)
	storeCombined(r, t.Set(r.Args[2], result, engine.TypeString, 0), r.Args[2], length)
	w.KeepBody(result)
}

// fillNow makes the result from the present sources. They were looked up before, so looking them up
// again removes none, and all views stay valid.
func fillNow(r *exec.Request, t engine.Txn, op bitstring.Combination, result []byte) {
	views := r.Worker.Views[:0]
	for _, key := range r.Args[3:] {
		var value []byte
		if item, found := t.Peek(key); found {
			value = item.Value()
		}
		views = append(views, value)
	}
	op.Fill(result, views, 0)
	r.Worker.KeepViews(views)
}

// deleteCombined answers a BITOP whose result is empty.
func deleteCombined(r *exec.Request, t engine.Txn, key []byte) {
	if t.Delete(key) {
		r.Notify(keyevent.Generic, "del", key)
	}
	r.ReplyInt(0)
}

func storeCombined(r *exec.Request, err error, key []byte, length int) {
	if err != nil {
		r.ReplyStoreError(err)
		return
	}
	r.Notify(keyevent.String, "set", key)
	r.ReplyInt(int64(length))
}

// combineLarge has a goroutine make the result, and then stores it. If the sources keep changing
// meanwhile, it makes the result once more, in the same memory, while it holds the lock. It returns
// false, and has done nothing, if the sources are too long to be copied in one run.
func combineLarge(r *exec.Request, t engine.Txn, op bitstring.Combination, length int) bool {
	w := r.Rewrite
	switch {
	case w != nil && w.Err != nil:
		r.ReplyStoreError(w.Err)
		return true
	case w != nil && w.Tries >= combineTries:
		r.Fail(errSourcesChange)
		return true
	case w != nil && areSources(r, t, w.Sources):
	case w != nil && w.Tries >= exec.RewriteTries && len(w.Result()) == length:
		fillNow(r, t, op, w.Result())
	default:
		return combineLater(r, t, op, length)
	}
	if w.Staged.Live() {
		storeCombined(r, t.SetStaged(&w.Staged, engine.TypeString, 0), r.Args[2], length)
	} else {
		storeCombined(r, t.Set(r.Args[2], w.Small, engine.TypeString, 0), r.Args[2], length)
	}
	return true
}

// areSources reports whether the keys still have the values from which a result was made.
func areSources(r *exec.Request, t engine.Txn, sources []exec.Source) bool {
	for i, key := range r.Args[3:] {
		if item, found := t.Peek(key); !sources[i].IsOf(item, found) {
			return false
		}
	}
	return true
}

func combineLater(r *exec.Request, t engine.Txn, op bitstring.Combination, length int) bool {
	sources, copied := make([]exec.Source, 0, len(r.Args)-3), 0
	for _, key := range r.Args[3:] {
		item, found := t.Peek(key)
		s := exec.SourceOf(t, item, found)
		sources = append(sources, s)
		if copied += len(s.Small); copied > exec.RewriteFrom {
			for i := range sources {
				sources[i].Drop()
			}
			return false
		}
	}
	w := r.NewRewrite()
	w.Sources = sources
	w.Start(r, func(ctx context.Context) error {
		views := make([][]byte, len(w.Sources))
		for i := range w.Sources {
			views[i] = w.Sources[i].Value()
		}
		return combineAll(ctx, w, views, op, length)
	})
	return true
}

// combineAll makes the result of views of the sources, outside the loops.
func combineAll(ctx context.Context, w *exec.Rewrite, views [][]byte, op bitstring.Combination, length int) (err error) {
	if key := w.Args[2]; w.Engine.IsLarge(len(key), length) {
		err = w.Stage(key, length)
	} else if w.Charge(length) {
		w.Small = make([]byte, 0, length)
	} else {
		err = engine.ErrMemory
	}
	piece := make([]byte, min(length, bitstring.CombineStep))
	for at := 0; at < length && err == nil; at += len(piece) {
		if err = ctx.Err(); err != nil {
			break
		}
		piece = piece[:min(len(piece), length-at)]
		op.Fill(piece, views, at)
		if w.Staged.Live() {
			err = w.Write(ctx, piece)
		} else {
			w.Small = append(w.Small, piece...)
		}
	}
	return err
}
