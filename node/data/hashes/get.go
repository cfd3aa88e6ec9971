package hashes

import (
	"slices"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// hGet: HGET key field
func hGet(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	if h, ok := read(r, t); ok {
		e, found := h.get(r.Args[2])
		h.replyValue(e, found)
	}
}

// hmGet: HMGET key field...
func hmGet(r *exec.Request) { getEach(r, r.Args[2:], false, "", nil) }

// getEach answers the values of fields, in runs. In each run then, if there is one, is called with
// the fields of the run, after their values are in the reply; event is what it does, if it reports that it
// has changed something. once: a field has a value only where
// it is named first, because then deletes it. If then is called in several runs, the first pass
// over the fields looks only whether their values are too large for a reply.
func getEach(r *exec.Request, fields [][]byte, once bool, event string, then change) {
	passes, n := 1, len(fields)
	if then != nil {
		passes = 2
	}
	run, ok := r.LockElementPasses(fields, 1, passes)
	if !ok {
		return
	}
	defer run.Release()
	start := len(r.Out)
	h, ok := open(r, run.Txn)
	if !ok {
		return
	}
	isAll := run.First == 0 && run.End == n && (then == nil || h.size(fields[:n]) <= exec.RunBytes)
	if passes == 2 && run.First < n && !isAll {
		h.weigh(run, fields[run.First:run.End])
		return
	}
	begin := 0 // of the pass that answers
	if !isAll {
		begin = n * (passes - 1)
	}
	if run.First == begin {
		run.Sum = 0
		r.Lookup(h.found, r.Args[1])
		if !r.Room(exec.LineRoom) {
			return
		}
		r.Out = resp.AppendArray(r.Out, len(fields))
	}
	fields = fields[run.First-begin : run.End-begin]
	before, begun := r.Produced()-int(run.Sum), len(r.Out)
	for i, field := range fields {
		if len(r.Out)-begun > exec.RunBytes && !(isAll && then != nil) {
			isAll, fields = false, fields[:i]
			run.End = run.First + i
			break
		}
		e, found := h.get(field)
		found = found && !(once && contains(fields[:i], field))
		if found && r.Produced()-before+e.value.Size() > exec.MaxReply {
			r.Undo(start)
			r.Fail(errReplyTooLarge)
			return
		}
		if !h.replyValue(e, found) {
			return
		}
	}
	if then != nil && h.found {
		if err := h.change(run, then, fields); err != nil {
			r.Undo(start)
			r.ReplyValueError(err)
			return
		}
	}
	changed := run.State != nil
	if isAll || !run.GoesOn(int64(r.Produced()-before)) {
		if changed {
			r.NotifyLeft(run.Txn, keyevent.Hash, event, r.Args[1])
		}
		run.Whole()
	}
}

// change is what one run of a command does to some fields. It reports whether that has changed anything. If
// it fails, it has changed nothing.
type change = func(h hash, fields [][]byte) (changed bool, err error)

// written is the state of a command that has changed something.
type written struct{}

// change has f change some fields, and remembers whether it has.
func (h hash) change(run *exec.Elements, f change, fields [][]byte) error {
	changed, err := f(h, fields)
	if changed {
		run.State = written{}
	}
	return err
}

// size is about how many bytes a reply with the values of some fields has.
func (h *hash) size(fields [][]byte) (size int64) {
	for _, field := range fields {
		e, _ := h.get(field)
		size += int64(e.value.Size() + exec.LineRoom/4)
	}
	return size
}

// weigh looks at the fields of one run, and ends the command if a reply with their values, and
// those of the runs before, would be too large.
func (h *hash) weigh(run *exec.Elements, fields [][]byte) {
	sum := run.Sum + h.size(fields)
	if sum > exec.MaxReply {
		h.r.Fail(errReplyTooLarge)
		return
	}
	run.GoesOn(sum)
}

// contains reports whether a field is among those of a run.
func contains(fields [][]byte, field []byte) bool {
	return slices.ContainsFunc(fields, func(f []byte) bool { return string(f) == string(field) })
}

// hStrLen: HSTRLEN key field
func hStrLen(r *exec.Request) {
	withHash(r, func(h hash) {
		n := 0
		if e, ok := h.get(r.Args[2]); ok {
			n = e.value.Len()
		}
		r.ReplyInt(int64(n))
	})
}

// hExists: HEXISTS key field
func hExists(r *exec.Request) {
	withHash(r, func(h hash) {
		_, ok := h.get(r.Args[2])
		r.ReplyBool(ok)
	})
}

// hLen: HLEN key
func hLen(r *exec.Request) {
	withCounted(r, func(h hash) { r.ReplyInt(int64(h.len())) })
}

// fieldValue is exec.Type.Field.
func fieldValue(t engine.Txn, item engine.Item, field []byte, now int64) (value shape.Item, found bool) {
	if v, big := t.Parts(item); big {
		table := tableOf(v, now)
		e, ok := table.Get(field)
		return e.Value, ok
	}
	p := shape.ReadPacked(&shape.PackedHash, item.Value())
	keys, at := [1][]byte{field}, [1]int{}
	if p.Find(keys[:], at[:]); at[0] < 0 {
		return value, false
	}
	return p.Item(at[0], 1), true
}
