package exec

import (
	"context"
	"errors"
	"runtime"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// Elements are the arguments of a command that names elements of its only key: the fields of HDEL,
// the fields and values of HSET. One run of the command deals with those from First to End, under
// one lock. A command with more goes on in another run, and holds its partition meanwhile, so that
// it is atomic:
//
//	run, ok := r.LockElementRun(r.Args[2:], 2)
//	if !ok {
//		return
//	}
//	defer run.Release()
//	... run.Txn, run.First, run.End: the sum of earlier runs is run.Sum
//	if !run.GoesOn(sum) {
//		r.ReplyInt(sum)
//	}
//
// A handler that answers an error in a later run has executed the earlier ones: it leaves what they
// did. What a handler replies before GoesOn is gathered; then it ends with run.Whole.
type Elements struct {
	KeyLocks
	Txn engine.Txn
	End int // the element behind the last one of this run
	all int
}

// runElements and RunBytes are about how many elements, and bytes of strings, one run of a command
// deals with: 0.1 ms, in a big value that is in no cache.
const (
	runElements = 128
	RunBytes    = 64 << 10
)

// LongSteps is how many steps a string of n bytes counts for beside its own, when it is copied, hashed
// or compared: none if it is short.
func LongSteps(n int) int { return n >> 10 }

// LockElementRun locks the partition of the command's key, argument 1, for the next run over its
// elements, each of which is so many of args. If ok is false, the request is taken care of, and the
// handler returns. The run is the worker's, valid until the next one.
func (r *Request) LockElementRun(args [][]byte, each int) (run *Elements, ok bool) {
	return r.LockElementPasses(args, each, 1)
}

// LockElementPasses is LockElementRun for a command that passes over its elements several times:
// First and End count on from one pass to the next, and no run belongs to two.
func (r *Request) LockElementPasses(args [][]byte, each, passes int) (run *Elements, ok bool) {
	return r.LockElementRuns(args, each, passes, runElements)
}

// LockElementRuns is LockElementPasses with runs of at most so many elements, for a command to which
// an element costs more than usual.
func (r *Request) LockElementRuns(args [][]byte, each, passes, most int) (run *Elements, ok bool) {
	n := len(args) / each
	run = &r.Worker.elements
	if !r.viewElements() {
		return run, false
	}
	run.begin(r)
	run.single, run.all, run.End = true, n*passes, 1
	if run.all != 1 || run.First > 0 {
		run.bound(args, each, n, most)
	}
	if run.Txn, _, ok = run.At(run.First); ok {
		r.offerElements(run.Txn)
	} else {
		run.Stop(run.First, run.Sum)
	}
	return run, ok
}

// bound sets End: a run has at most so many of the n elements, and about RunBytes.
func (run *Elements) bound(args [][]byte, each, n, most int) {
	run.End = run.First
	end := 0 // of the pass; a command may name no elements
	if n > 0 {
		end = run.First - run.First%n + n
	}
	for bytes := 0; run.End < end && run.End-run.First < most && (bytes < RunBytes || run.End == run.First); run.End++ {
		i := run.End % n * each
		for _, arg := range args[i : i+each] {
			bytes += len(arg)
		}
	}
}

// GoesOn reports whether the command has another run, in which Sum will be sum.
func (run *Elements) GoesOn(sum int64) bool {
	if run.End == run.all {
		return false
	}
	run.Hold()
	run.Stop(run.End, sum)
	return true
}

// Fits reports whether a value of so many bytes may take all the strings besides that a command of
// several runs gives it. Otherwise it answers the error, so that the command has changed nothing.
func (run *Elements) Fits(bytes int64, args [][]byte) bool {
	return !run.isFirstOfMany() || run.fits(bytes, args)
}

// FitsOver is Fits for strings that may replace those of the value, or be there already. A value that is
// too big need not fit them: then only what makes it bigger is refused, in its run.
func (run *Elements) FitsOver(args [][]byte) bool {
	if !run.isFirstOfMany() {
		return true
	}
	item, _ := run.Txn.Peek(run.r.Args[1])
	if v, ok := run.Txn.Parts(item); ok && !run.r.Engine.MayHave(v.Bytes()) {
		return true
	}
	return run.fits(0, args)
}

func (run *Elements) isFirstOfMany() bool { return run.First == 0 && run.End < run.all }

func (run *Elements) fits(bytes int64, args [][]byte) bool {
	if most := run.r.ArgsTake; most > 0 && run.r.Engine.MayHave(bytes+most) {
		return true // without a look at a million of them, under a lock
	}
	for _, arg := range args {
		bytes += int64(len(arg))
	}
	if run.r.Engine.MayHave(bytes) {
		return true
	}
	run.r.ReplyStoreError(engine.ErrTooBig)
	return false
}

// IsFirst reports whether this is the first run.
func (run *Elements) IsFirst() bool { return run.First == 0 }

// ReplyElement answers a string of a value as a bulk string, under the lock of its shard. A long one is
// pinned, any other one copied. It reports false if there is no room for the reply.
func (r *Request) ReplyElement(i shape.Item) (fits bool) {
	if i.Size() >= LongElement {
		return r.ReplyView(i.Long())
	}
	var number shape.Decimal
	s := i.Text(&number)
	if !r.Room(len(s) + LineRoom) {
		return false
	}
	r.Out = resp.AppendBulk(r.Out, s)
	return true
}

// ReplyView is ReplyElement for the view of an element.
func (r *Request) ReplyView(s []byte) (fits bool) {
	if len(s) >= LongElement {
		if !r.Room(LineRoom) {
			return false
		}
		if pin, ok := r.Engine.PinView(s); ok {
			r.Out = resp.AppendBulkHeader(r.Out, len(s))
			r.Insert(s, pin)
			r.Out = append(r.Out, "\r\n"...)
			return true
		}
	}
	if !r.Room(len(s) + LineRoom) {
		return false
	}
	r.Out = resp.AppendBulk(r.Out, s)
	return true
}

// A reply with more elements or bytes than these is made from a pinned value, in slices.
const (
	LongElements = 10_000
	LongBytes    = 256 << 10
)

// IsLong reports whether a reply with all of a value of so many elements and bytes is to be made by
// ReplyPinned.
func IsLong(elements int, bytes int64) bool { return elements > LongElements || bytes > LongBytes }

const (
	// sliceBytes is about how much of a reply is made under one lock.
	sliceBytes = 32 << 10
	// ErrPinned is the error for a command that cannot pin a value, or whose pin has broken.
	ErrPinned = "OOM too many big values are being read"
)

// ReplyPinned has a goroutine answer the command with the value as it is now: first what head
// appends, and then what each call of next appends, under the shard's lock, until that reports that
// it is done. next appends until Slice says that it is enough; it reads from the pin, and keeps its
// place itself. The connection's later commands may change the value meanwhile: so may the command
// itself, which then answers ErrReplyLost if anything goes wrong. ReplyPinned reports false if it
// has answered an error already.
func (r *Request) ReplyPinned(v engine.Parts, head []byte, next func(pin *engine.ValuePin, dst []byte) (_ []byte, done bool)) bool {
	return r.ReplyPinnedCounted(v, func() []byte { return head }, next, func() {})
}

// ReplyPinnedText is ReplyPinned for a reply that has strings of the value, which may be long: next
// appends until Text.IsFull.
func (r *Request) ReplyPinnedText(
	v engine.Parts, head []byte, next func(pin *engine.ValuePin, t *Text) (done bool),
) bool {
	return r.ReplyPinnedTextCounted(v, func() []byte { return head }, next)
}

// ReplyPinnedTextCounted is ReplyPinnedText for a reply whose beginning is known only in the end.
func (r *Request) ReplyPinnedTextCounted(
	v engine.Parts, head func() []byte, next func(pin *engine.ValuePin, t *Text) (done bool),
) bool {
	pin, err := v.PinValue()
	if err != nil {
		r.Fail(ErrPinned)
		return false
	}
	r.replyInSlices(head, pin, next, func() {})
	return true
}

// ReplyPinnedCounted is ReplyPinned for a reply whose beginning is known only in the end.
// end is called when the reply is complete or given up.
func (r *Request) ReplyPinnedCounted(v engine.Parts, head func() []byte,
	next func(pin *engine.ValuePin, dst []byte) (_ []byte, done bool), end func(),
) bool {
	pin, err := v.PinValue()
	if err != nil {
		end()
		r.Fail(ErrPinned)
		return false
	}
	r.replyInSlices(head, pin, func(pin *engine.ValuePin, t *Text) (done bool) {
		t.Bytes, done = next(pin, t.Bytes)
		return done
	}, end)
	return true
}

// ReplySlices is ReplyPinned for a reply that is made of no value with parts, without a lock.
func (r *Request) ReplySlices(head []byte, next func(dst []byte) (_ []byte, done bool)) {
	r.replyInSlices(func() []byte { return head }, nil, func(_ *engine.ValuePin, t *Text) (done bool) {
		t.Bytes, done = next(t.Bytes)
		return done
	}, func() {})
}

func (r *Request) replyInSlices(head func() []byte, pin *engine.ValuePin,
	next func(pin *engine.ValuePin, t *Text) (done bool), end func(),
) {
	heap, writes, text := r.Heap, r.Cmd.Flags&command.Write != 0, r.NewText(nil)
	r.Host.GatherLater(func(ctx context.Context, reply *Gathered) {
		defer end()
		if pin != nil {
			defer pin.Release()
		}
		if problem := gatherSlices(ctx, heap, reply, pin, &text, next); problem != "" {
			if writes {
				problem = ErrReplyLost
			}
			reply.End()
			reply.Head = resp.AppendError(nil, problem)
			return
		}
		reply.Head = head()
	})
}

// gatherSlices makes the reply, and returns what went wrong, if anything did.
func gatherSlices(ctx context.Context, heap Heap, reply *Gathered, pin *engine.ValuePin, slice *Text,
	next func(pin *engine.ValuePin, t *Text) (done bool),
) (problem string) {
	slice.Bytes = make([]byte, 0, 2*sliceBytes)
	for done := false; !done; {
		switch {
		case Step(ctx) != nil:
			return ErrBusy
		case pin != nil && !pin.Lock():
			return ErrPinned
		}
		done = next(pin, slice)
		if pin != nil {
			pin.Unlock()
		}
		if !reply.AppendText(heap, slice) {
			return ErrOOM
		}
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
	return ""
}

// SliceIsFull reports whether a slice of a reply has enough bytes.
func SliceIsFull(slice []byte) bool { return len(slice) >= sliceBytes }

// ReplyValueError answers an error with which a value could not be changed.
func (r *Request) ReplyValueError(err error) {
	if errors.Is(err, shape.ErrCrowded) {
		r.Fail("ERR " + err.Error())
		return
	}
	r.ReplyStoreError(err)
}
