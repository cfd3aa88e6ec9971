package sets

import (
	"context"
	"errors"
	"math"
	"runtime"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/rdb"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

const (
	keysNow    = 64  // keys that are looked at under the lock of the command
	stepsNow   = 512 // steps that are made there
	sliceSteps = 256 // steps of a slice: about 0.1 ms
)

// output is what becomes of the members of a result.
type output interface {
	// Add takes members, at most exec.AddAtOnce. They are valid until it returns.
	Add(t engine.Txn, all []rdb.Element) error
	// Answer answers the command. All members, found of them, were added.
	Answer(r *exec.Request, t engine.Txn, found int) error
	// End frees what Answer has not used. t is of the partition of the command.
	End(t engine.Txn)
}

// shortoutput is an output that answers a short result at once.
type shortoutput interface {
	AnswerNow(r *exec.Request, all []rdb.Element)
}

// run executes the plan, and answers the command. All keys are in the partition of the command.
func run(r *exec.Request, p plan, out output) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	w := &work{state: state{plan: p, Notices: r.Notices}, out: out, e: r.Engine, heap: r.Heap, section: r.Section(), now: r.Now}
	if len(p.keys) <= keysNow {
		w.look(&slice{t, math.MaxInt})
		if w.wrong {
			w.count(r)
			r.Fail(exec.ErrWrongType)
			return
		}
		if w.steps() <= stepsNow {
			w.count(r)
			w.runNow(r, t)
			return
		}
	}
	w.keys = exec.CloneArgs(p.keys)
	if r.Hold == nil {
		r.Host.HoldOn(t)
	}
	r.Host.Later(w)
}

// work executes a plan.
type work struct {
	state
	out     output
	e       *engine.Engine
	heap    exec.Heap
	section uint16
	now     int64
	pending []rdb.Element // members for the output, with their text
	kept    []byte
	err     error
}

var errWrongType = errors.New(exec.ErrWrongType)

// keep keeps a member for the output.
func (w *work) keep(text []byte) {
	from := len(w.kept)
	w.kept = append(w.kept, text...)
	w.pending = append(w.pending, rdb.Element{First: w.kept[from:len(w.kept):len(w.kept)]})
}

// runNow makes and answers a short result.
func (w *work) runNow(r *exec.Request, t engine.Txn) {
	w.kept = r.Worker.Body[:0]
	w.walk(&slice{t, math.MaxInt}, func(text []byte) bool {
		w.keep(text)
		return true
	})
	defer func() { r.Worker.KeepBody(w.kept) }()
	if out, ok := w.out.(shortoutput); ok {
		out.AnswerNow(r, w.pending)
		return
	}
	for all := w.pending; len(all) > 0 && w.err == nil; {
		n := min(len(all), exec.AddAtOnce)
		w.err = w.out.Add(t, all[:n])
		all = all[n:]
	}
	w.answer(r, t)
	w.out.End(t)
}

func (w *work) answer(r *exec.Request, t engine.Txn) {
	if w.err == nil {
		w.err = w.out.Answer(r, t, w.found)
	}
	switch {
	case w.err == nil:
	case errors.Is(w.err, errWrongType):
		r.Fail(exec.ErrWrongType)
	case errors.Is(w.err, context.Canceled):
		r.Fail(exec.ErrBusy)
	case errors.Is(w.err, engine.ErrTooBig):
		r.ReplyStoreErrorOf(w.out.(*stored).key, w.err)
	default:
		r.ReplyValueError(w.err)
	}
}

// count counts which keys were found.
func (w *work) count(r *exec.Request) {
	for i := range w.looked {
		r.Worker.Count.Lookup(i < w.hits)
	}
}

// dropRepeated drops keys that are named more than once: to look into their sets again changes
// nothing. In a difference the first key is another matter than the rest.
func (w *work) dropRepeated() {
	seen, first := make(map[string]struct{}, len(w.keys)), 0
	if w.op == diff {
		first = 1
	}
	kept := w.keys[:first]
	for _, key := range w.keys[first:] {
		if _, there := seen[string(key)]; !there {
			seen[string(key)] = struct{}{}
			kept = append(kept, key)
		}
	}
	w.keys = kept
}

// Run makes the result, in slices.
func (w *work) Run(ctx context.Context) {
	hold := w.e.Holder(engine.PartitionOf(w.section))
	if w.looked == 0 {
		w.dropRepeated()
	}
	looked := w.looked == len(w.keys)
	if looked {
		w.remember(w.heap)
	}
	defer func() { w.seen.end() }()
	for !w.done && w.err == nil {
		if w.err = ctx.Err(); w.err != nil {
			return
		}
		t := hold.Lock().Select(engine.DatabaseOf(w.section))
		x := slice{t, sliceSteps}
		if !looked {
			if looked = w.look(&x); w.wrong {
				w.err = errWrongType
			} else if looked {
				w.remember(w.heap)
			}
		} else {
			w.walk(&x, func(text []byte) bool {
				w.keep(text)
				return len(w.pending) < exec.AddAtOnce && len(w.kept) < exec.RunBytes
			})
			if len(w.pending) > 0 {
				w.err = w.out.Add(t, w.pending)
				w.pending, w.kept = w.pending[:0], w.kept[:0]
			}
			if w.seen != nil && w.seen.lost {
				w.err = engine.ErrMemory
			}
		}
		t.Unlock()
		runtime.Gosched() // or this goroutine would have the lock again before those that wait for it
	}
}

// Reply answers the command.
func (w *work) Reply(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	w.count(r)
	w.answer(r, t)
}

// End frees what Reply has not used.
func (w *work) End() {
	t := w.e.Lock(w.section, w.now)
	defer t.Unlock()
	w.out.End(t)
}

// members is an output that answers the members as a set.
type members struct {
	heap exec.Heap

	reply exec.Gathered
	text  []byte
}

// Add gathers members.
func (m *members) Add(_ engine.Txn, all []rdb.Element) error {
	m.text = m.text[:0]
	for _, x := range all {
		m.text = resp.AppendBulk(m.text, x.First)
	}
	if !m.reply.Append(m.heap, m.text) {
		return engine.ErrMemory
	}
	return nil
}

// Answer answers what was gathered.
func (m *members) Answer(r *exec.Request, _ engine.Txn, found int) error {
	m.reply.Head = resp.AppendSet(nil, r.Version(), found)
	m.reply.Answer(r)
	return nil
}

// AnswerNow answers a short result.
func (m *members) AnswerNow(r *exec.Request, all []rdb.Element) {
	r.Out = resp.AppendSet(r.Out, r.Version(), len(all))
	for _, x := range all {
		r.ReplyBulk(x.First)
	}
}

// End frees what was not answered.
func (m *members) End(engine.Txn) { m.reply.End() }

// number is an output that answers how many members there are.
type number struct{}

// Add does nothing.
func (number) Add(engine.Txn, []rdb.Element) error { return nil }

// Answer answers the number.
func (number) Answer(r *exec.Request, _ engine.Txn, found int) error {
	r.ReplyInt(int64(found))
	return nil
}

// End does nothing.
func (number) End(engine.Txn) {}

// stored is an output that stores the members under a key, and answers their number.
type stored struct {
	exec.Builder
	key []byte
}

// Answer stores the value.
func (s *stored) Answer(r *exec.Request, t engine.Txn, found int) error {
	existed := exec.Exists(t, s.key)
	if err := s.Publish(t, s.key); err != nil {
		return err
	}
	r.NotifyStored(existed, int64(found), keyevent.Set, r.Cmd.Name, s.key)
	r.ReplyInt(int64(found))
	return nil
}

// End removes what was not stored.
func (s *stored) End(t engine.Txn) {
	if s.IsAside() {
		s.Drop(t)
	}
}
