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
	w := typ.Collection.Form(false, v)
	if r.DumpForValkey {
		w.Form = w.Form.ForValkey()
	}
	d := partsDump{e: r.Engine, c: typ.Collection, v: v, pin: pin, w: w, heap: r.Heap}
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
	e     *engine.Engine
	c     *exec.Collection
	v     engine.Parts
	pin   *engine.ValuePin
	w     rdb.Writer
	heap  exec.Heap
	bytes int

	elements []rdb.Element // of one lock: copied, or views of what is pinned
	text     []byte        // where they are copied to
	long     []engine.Pin
}

func (d *partsDump) gather(ctx context.Context, reply *exec.Gathered) (problem string) {
	head := d.w.AppendHead(nil, d.c.Len(d.pin.Own()))
	d.bytes = len(head)
	slice := make([]byte, 0, 2*dumpSlice)
	defer d.release()
	for place, done := 0, false; !done; {
		switch {
		case exec.Step(ctx) != nil:
			return exec.ErrBusy
		case !d.pin.Lock():
			return exec.ErrPinned
		}
		for !done && len(d.text) < dumpSlice && len(d.elements) < dumpAtOnce && len(d.long) < longAtOnce {
			place, done = d.c.Piece(d.v, d.pin, place, d.take)
		}
		d.pin.Unlock()
		if slice, problem = d.write(ctx, reply, slice); problem != "" {
			return problem
		}
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

// How many elements are read under one lock, and how many long strings are pinned, about.
const (
	dumpAtOnce = 1024
	longAtOnce = 16
)

// take keeps an element until the shard is unlocked.
func (d *partsDump) take(x rdb.Element) {
	x.First, x.Second = d.view(x.First), d.view(x.Second)
	d.elements = append(d.elements, x)
}

// view returns a string that stays as it is: a copy, or the string itself, pinned.
func (d *partsDump) view(s []byte) []byte {
	if len(s) >= exec.LongElement {
		if pin, ok := d.e.PinView(s); ok {
			d.long = append(d.long, pin)
			return s
		}
	}
	n := len(d.text)
	d.text = append(d.text, s...)
	return d.text[n:len(d.text):len(d.text)]
}

// write adds the elements that were taken to the reply. slice is scratch memory.
func (d *partsDump) write(ctx context.Context, reply *exec.Gathered, slice []byte) (_ []byte, problem string) {
	for _, x := range d.elements {
		if max(len(x.First), len(x.Second)) < exec.LongElement {
			slice = d.w.AppendElement(slice, x)
			continue
		}
		var last []byte
		slice, last = d.w.AppendLong(slice, x)
		for len(last) > 0 {
			n := min(len(last), dumpSlice)
			d.w.Pass(last[:n])
			slice, last = append(slice, last[:n]...), last[n:]
			if problem = d.keep(reply, slice); problem != "" {
				return slice, problem
			}
			if slice = slice[:0]; exec.Step(ctx) != nil {
				return slice, exec.ErrBusy
			}
		}
		slice = d.w.AppendBehind(slice, x)
	}
	d.release()
	return slice[:0], d.keep(reply, slice)
}

// release forgets the elements that were taken.
func (d *partsDump) release() {
	for i := range d.long {
		d.long[i].Release()
	}
	d.elements, d.text, d.long = d.elements[:0], d.text[:0], d.long[:0]
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
