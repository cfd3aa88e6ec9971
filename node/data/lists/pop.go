package lists

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// pop: LPOP, RPOP key [count]
func pop(r *exec.Request, from end) {
	switch len(r.Args) {
	case 2:
		popOne(r, from)
	case 3:
		if count, ok := intArg(r, 2, 0, ErrPositive); ok {
			popCount(r, from, count)
		}
	default:
		r.FailArity()
	}
}

// intArg parses Args[i], an integer of at least least. If it is none, intArg answers the error text
// and ok is false.
func intArg(r *exec.Request, i int, least int64, text string) (n int, ok bool) {
	value, ok := resp.ParseInt(r.Args[i])
	if !ok || value < least {
		r.Fail(text)
		return 0, false
	}
	return int(min(value, math.MaxInt)), true
}

func popOne(r *exec.Request, from end) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	l, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	if !l.found {
		r.ReplyNull()
		return
	}
	position := l.first(from, 1)
	start, element := len(r.Out), l.at(position)
	if !r.ReplyElement(element) {
		return
	}
	if err := l.remove(position, 1); err != nil {
		r.Undo(start)
		r.ReplyValueError(err)
		return
	}
	r.NotifyLeft(t, keyevent.List, from.popped(), l.key)
}

// first returns where the first of n elements stands that are at an end.
func (l *list) first(from end, n int) int {
	if from == head {
		return 0
	}
	return l.len() - n
}

func popCount(r *exec.Request, from end, count int) {
	locks := r.LockElements()
	defer locks.Release()
	t, _, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return
	}
	l, ok := open(r, t, r.Args[1])
	switch {
	case !ok:
	case !l.found && locks.First == 0:
		r.Out = resp.AppendNullArray(r.Out, r.Version())
	case count == 0:
		r.Out = resp.AppendArray(r.Out, 0)
	default:
		popMany(&l, &locks, from, count, -1)
	}
}

// popped is a command that has popped some elements.
type popped struct {
	left int
	key  int // which of the keys has the list
}

// popElements is how many elements one run of a command pops at most: about 0.1 ms.
const popElements = 256

// popMany pops up to count elements at an end and answers them, in as many runs as it takes. key is
// which of several keys has the list: it is answered first. It is -1 for a command of one key.
func popMany(l *list, locks *exec.KeyLocks, from end, count, key int) {
	r := l.r
	begin := len(r.Out)
	var rest popped
	if before, begun := locks.State.(*popped); begun {
		rest = *before
	} else {
		if rest = (popped{min(count, l.len()), key}); r.Woken {
			rest.left = l.inOneRun(from, rest.left)
		}
		if !r.Room(len(l.key) + 3*exec.LineRoom) {
			return
		}
		if key >= 0 {
			r.Out = resp.AppendArray(r.Out, 2)
			r.ReplyBulk(l.key)
		}
		r.Out = resp.AppendArray(r.Out, rest.left)
	}
	start, n, fits := len(r.Out), 0, true
	reply := func(element shape.Item) bool {
		if fits = r.ReplyElement(element); !fits {
			return false
		}
		n++
		return n < min(rest.left, popElements) && len(r.Out)-start < exec.RunBytes
	}
	if from == head {
		l.each(0, reply)
	} else {
		l.eachBack(l.len(), reply)
	}
	if !fits {
		return
	}
	if n == 0 { // the command has lost its partition
		r.Fail(exec.ErrGone)
		return
	}
	if n == rest.left {
		r.Take(l.txn, l.key, begin)
	}
	if err := l.remove(l.first(from, n), n); err != nil {
		r.Undo(begin)
		r.ReplyValueError(err)
		return
	}
	if rest.left -= n; rest.left > 0 {
		state := rest
		locks.State = &state
		locks.Hold()
		locks.Stop(1, 0)
		return
	}
	r.NotifyLeft(l.txn, keyevent.List, from.popped(), l.key)
	locks.Whole()
}

// inOneRun returns how many of the first n elements at an end one run pops.
func (l *list) inOneRun(from end, n int) int {
	found, bytes := 0, 0
	count := func(element shape.Item) bool {
		found++
		bytes += element.Size() + exec.LineRoom
		return found < min(n, popElements) && bytes < exec.RunBytes
	}
	if from == head {
		l.each(0, count)
	} else {
		l.eachBack(l.len(), count)
	}
	return found
}

// lmPop: LMPOP numkeys key... LEFT|RIGHT [COUNT count]
func lmPop(r *exec.Request) {
	lmPopOr(r, 1, func() bool { return true }, func(engine.Txn) { r.Out = resp.AppendNullArray(r.Out, r.Version()) })
}

// lmPopOr pops from the first list that has elements, or calls none if there is none. Args[first] is
// numkeys. limited checks, behind all other arguments, what stands before it.
func lmPopOr(r *exec.Request, first int, limited func() bool, none func(t engine.Txn)) {
	numKeys, ok := intArg(r, first, 1, ErrNumKeys)
	if !ok {
		return
	}
	if numKeys > len(r.Args)-first-2 { // not a sum, which could overflow
		r.Fail(exec.ErrSyntax)
		return
	}
	at := first + 1 + numKeys
	from, ok := endArg(r, at)
	if !ok {
		return
	}
	count := 0
	for i := at + 1; i < len(r.Args); i += 2 {
		if count > 0 || i+1 == len(r.Args) || !exec.Is(r.Args[i], "COUNT") {
			r.Fail(exec.ErrSyntax)
			return
		}
		if count, ok = intArg(r, i+1, 1, ErrCountAtLeast); !ok {
			return
		}
	}
	if !limited() {
		return
	}
	count = max(count, 1)
	locks := r.LockKeys()
	defer locks.Release()
	begin := locks.First
	if rest, ok := locks.State.(*popped); ok {
		begin, locks.AtOnce = rest.key, numKeys+1
	}
	var t engine.Txn
	for i := begin; i < numKeys; i++ {
		var key []byte
		if t, key, ok = locks.At(i); !ok {
			locks.Stop(i, 0)
			return
		}
		l, ok := open(r, t, key)
		if !ok {
			return
		}
		if l.found && !r.Leaves(t, engine.TypeList, nil, key) {
			popMany(&l, &locks, from, count, i)
			return
		}
	}
	none(t)
}

// endArg parses LEFT or RIGHT. If Args[i] is neither, endArg answers the error and ok is false.
func endArg(r *exec.Request, i int) (at end, ok bool) {
	switch {
	case exec.Is(r.Args[i], "LEFT"):
		return head, true
	case exec.Is(r.Args[i], "RIGHT"):
		return tail, true
	}
	r.Fail(exec.ErrSyntax)
	return 0, false
}
