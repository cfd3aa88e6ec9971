package bitmaps

import (
	"context"

	"github.com/dunlin-cache/dunlin/internal/bitstring"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// bitCount: BITCOUNT key [start end [BYTE | BIT]]
func bitCount(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	if !ok {
		return
	}
	if !found {
		r.ReplyInt(0) // whatever the range is
		return
	}
	value := item.Value()
	from, to := int64(0), int64(len(value))*8
	switch len(r.Args) {
	case 2:
	case 4, 5:
		if from, to, ok = bitRange(r, 2, int64(len(value))); !ok {
			return
		}
	default:
		r.Fail(exec.ErrSyntax)
		return
	}
	scan(r, t, item, bitScan{count: true, from: from, to: to})
}

// bitPos: BITPOS key bit [start [end [BYTE | BIT]]]
func bitPos(r *exec.Request) {
	bit, ok := r.IntArg(2)
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		r.Fail(errBitArgument)
		return
	}
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found, ok := r.ReadString(t, r.Args[1])
	if !ok {
		return
	}
	if !found {
		r.ReplyInt(-bit)
		return
	}
	value := item.Value()
	from, to := int64(0), int64(len(value))*8
	switch len(r.Args) {
	case 3:
	case 4, 5, 6:
		if from, to, ok = bitRange(r, 3, int64(len(value))); !ok {
			return
		}
	default:
		r.Fail(exec.ErrSyntax)
		return
	}
	look := bitScan{from: from, to: to, set: bit == 1, nowhere: -1}
	if bit == 0 && len(r.Args) < 5 && from < to {
		look.nowhere = to // without an end, zeros follow the value
	}
	scan(r, t, item, look)
}

// bitScan is a look at the bits [from, to) of a value.
type bitScan struct {
	from, to int64
	count    bool  // how many are set; otherwise:
	set      bool  // where is the first that is, or is not, set?
	nowhere  int64 // the answer if there is none
}

func (s bitScan) of(value []byte) int64 {
	if s.count {
		return int64(bitstring.CountIn(value, s.from, s.to))
	}
	if at := bitstring.Find(value, s.set, s.from, s.to); at >= 0 {
		return at
	}
	return s.nowhere
}

// until is of in steps, for a goroutine. It stops when ctx ends, and its result means nothing then.
func (s bitScan) until(ctx context.Context, value []byte) (found int64) {
	for from, to := s.from, s.to; from < to && exec.Step(ctx) == nil; from = s.to {
		s.from, s.to = from, min(from+8*exec.RewriteStep, to)
		switch {
		case s.count:
			found += s.of(value)
		default:
			if at := bitstring.Find(value, s.set, s.from, s.to); at >= 0 {
				return at
			}
		}
	}
	if s.count {
		return found
	}
	return s.nowhere
}

// scan answers what is found in the item. A goroutine looks where there is much to look through.
func scan(r *exec.Request, t engine.Txn, item engine.Item, s bitScan) {
	if s.to-s.from > scanFrom*8 {
		if pin, ok := t.Pin(item); ok {
			r.Host.AnswerLater(func(ctx context.Context) []byte {
				defer pin.Release()
				return resp.AppendInt(nil, s.until(ctx, pin.Value()))
			})
			return
		}
	}
	r.ReplyInt(s.of(item.Value()))
}
