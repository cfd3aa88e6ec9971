package keys

import (
	"context"
	"errors"
	"runtime"

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

// dumpParts answers DUMP of a value that has parts, or could have.
func dumpParts(r *exec.Request, t engine.Txn, typ *exec.Type, item engine.Item, atMost int) {
	v, big := t.Parts(item)
	if !big {
		payload := r.Worker.Body[:0]
		if typ.Payloads != nil {
			payload = typ.Payloads.AppendSmall(payload, item, r.DumpForValkey)
		} else {
			payload = typ.Collection.AppendPacked(payload, item.Value())
		}
		r.ReplyBulk(payload)
		r.Worker.KeepBody(payload)
		return
	}
	pin, err := v.PinValue()
	if err != nil {
		r.Fail(exec.ErrPinned)
		return
	}
	d := partsDump{pin: pin, heap: r.Heap, atMost: atMost}
	if typ.Payloads != nil {
		d.from = typ.Payloads.Dump(r.Engine, r.DumpForValkey)
	} else {
		d.from = dumpElements(r, typ.Collection, v, pin)
	}
	r.Host.GatherLater(func(ctx context.Context, reply *exec.Gathered) {
		defer pin.Release()
		defer d.from.Release()
		if err := d.gather(ctx, reply); err != nil {
			reply.End()
			reply.Head = resp.AppendError(nil, err.Error())
		}
	})
}

// partsDump makes the payload of a value with parts, in slices from a pin.
type partsDump struct {
	pin   *engine.ValuePin
	from  exec.Dumper
	heap  exec.Heap
	bytes int

	atMost int // bytes
}

// What is answered if there is no payload.
var (
	errDumpBusy   = errors.New(exec.ErrBusy)
	errDumpPinned = errors.New(exec.ErrPinned)
	errDumpOOM    = errors.New(exec.ErrOOM) //nolint:staticcheck // Redis's own text
	errDumpLarge  = errors.New(ErrDumpTooLarge)
)

func (d *partsDump) gather(ctx context.Context, reply *exec.Gathered) error {
	keep := func(piece []byte) error {
		d.bytes += len(piece)
		switch {
		case exec.Step(ctx) != nil:
			return errDumpBusy
		case d.bytes > d.atMost:
			return errDumpLarge
		case !reply.Append(d.heap, piece):
			return errDumpOOM
		}
		return nil
	}
	for done := false; !done; {
		switch {
		case exec.Step(ctx) != nil:
			return errDumpBusy
		case !d.pin.Lock():
			return errDumpPinned
		}
		done = d.from.Take(d.pin)
		d.pin.Unlock()
		if err := d.from.Write(keep); err != nil {
			return err
		}
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
	head, err := d.from.End(keep)
	if err != nil {
		return err
	}
	if d.bytes += len(head); d.bytes > d.atMost {
		return errDumpLarge
	}
	reply.Head = append(resp.AppendBulkHeader(nil, d.bytes), head...)
	if !reply.Append(d.heap, []byte("\r\n")) {
		return errDumpOOM
	}
	return nil
}
