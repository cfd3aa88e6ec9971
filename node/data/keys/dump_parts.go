package keys

import (
	"context"
	"runtime"

	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

const (
	// dumpSlice is about how many bytes of a payload are made under one lock.
	dumpSlice = 32 << 10
	// maxParts is the longest payload of a value with parts: the longest bulk string.
	maxParts = engine.MaxValueLen
)

// dumpCollection answers DUMP of a value with elements.
func dumpCollection(r *exec.Request, t engine.Txn, typ *exec.Type, item engine.Item) {
	v, big := t.Parts(item)
	if !big {
		payload := typ.Collection.AppendPacked(r.Worker.Body[:0], item.Value())
		r.ReplyBulk(payload)
		r.Worker.KeepBody(payload)
		return
	}
	pin, err := v.PinValue()
	if err != nil {
		r.Fail(exec.ErrPinned)
		return
	}
	d := partsDump{c: typ.Collection, v: v, pin: pin, w: typ.Collection.Form(false, v), heap: r.Heap}
	r.Host.GatherLater(func(ctx context.Context, reply *exec.Gathered) {
		defer pin.Release()
		if problem := d.gather(ctx, reply); problem != "" {
			reply.End()
			reply.Head = resp.AppendError(nil, problem)
		}
	})
}

// partsDump makes the payload of a value with parts, in slices from a pin.
type partsDump struct {
	c     *exec.Collection
	v     engine.Parts
	pin   *engine.ValuePin
	w     rdb.Writer
	heap  exec.Heap
	bytes int
}

func (d *partsDump) gather(ctx context.Context, reply *exec.Gathered) (problem string) {
	head := d.w.AppendHead(nil, d.c.Len(d.pin.Own()))
	d.bytes = len(head)
	slice := make([]byte, 0, 2*dumpSlice)
	for place, done := 0, false; !done; {
		switch {
		case ctx.Err() != nil:
			return exec.ErrBusy
		case !d.pin.Lock():
			return exec.ErrPinned
		}
		for !done && len(slice) < dumpSlice {
			place, done = d.c.Piece(d.v, d.pin, place, func(x rdb.Element) { slice = d.w.AppendElement(slice, x) })
		}
		d.pin.Unlock()
		if problem := d.keep(reply, slice); problem != "" {
			return problem
		}
		slice = slice[:0]
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
	if problem := d.keep(reply, d.w.AppendFoot(slice)); problem != "" {
		return problem
	}
	reply.Head = append(resp.AppendBulkHeader(nil, d.bytes), head...)
	if !reply.Append(d.heap, []byte("\r\n")) {
		return exec.ErrOOM
	}
	return ""
}

// keep adds a slice to the reply.
func (d *partsDump) keep(reply *exec.Gathered, slice []byte) (problem string) {
	if d.bytes += len(slice); d.bytes > maxParts {
		return ErrDumpTooLarge
	}
	if !reply.Append(d.heap, slice) {
		return exec.ErrOOM
	}
	return ""
}
