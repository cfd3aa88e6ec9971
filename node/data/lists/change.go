package lists

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lSet: LSET key index element
func lSet(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	l, ok := open(r, t, r.Args[1])
	switch {
	case !ok:
	case !l.found:
		r.Fail(ErrNoKey)
	default:
		index, ok := r.IntArg(2)
		if !ok {
			return
		}
		position, ok := l.index(index)
		if !ok {
			r.Fail(ErrIndex)
			return
		}
		if !r.UseElements(t) {
			return
		}
		if err := l.set(position, r.Args[3]); err != nil {
			r.ReplyValueError(err)
			return
		}
		r.Notify(keyevent.List, "lset", l.key)
		r.ReplyOK()
	}
}

// What one run of a command looks at, and removes, at most: about 0.1 ms.
const (
	searchAtOnce = 4096
	removeAtOnce = 256
	trimAtOnce   = 8192
)

// edit is a command that goes through a list, of which it has done some.
type edit struct {
	position int // where it goes on, or how many elements are in front of those that stay
	removed  int
	kept     int // elements that stay
	compared int // bytes of the element at position that are equal, see comparison
}

// openEdit locks the list of a command that goes through it. If ok is false, the request is taken
// care of.
func openEdit(r *exec.Request) (l list, locks exec.KeyLocks, rest *edit, ok bool) {
	locks = r.LockElements()
	t, key, ok := locks.At(locks.First)
	if !ok {
		locks.Stop(locks.First, 0)
		return l, locks, nil, false
	}
	rest, begun := locks.State.(*edit)
	if !begun {
		rest = new(edit)
	}
	l, ok = open(r, t, key)
	return l, locks, rest, ok
}

// goOn has the command go on in another run. Until its end it holds the partition.
func (rest *edit) goOn(locks *exec.KeyLocks) {
	locks.State = rest
	locks.Hold()
	locks.Stop(1, 0)
}

// search looks for an element among as many as left says, from where the command has come or, if
// back, in front of that, and takes from left those it has looked at. It returns where the element is,
// or -1.
func (l *list) search(rest *edit, element []byte, back bool, left *int) (at int) {
	at = -1
	c, position := comparison{element, rest.compared}, rest.position
	look := func(x shape.Item) bool {
		equal, ended := c.is(x, left)
		if !ended {
			return false
		}
		if back {
			position--
		}
		if equal {
			at = position
		}
		if !back {
			position++
		}
		return at < 0
	}
	if back {
		l.eachBack(position, look)
	} else {
		l.each(position, look)
	}
	rest.position, rest.compared = position, c.same
	return at
}

// lInsert: LINSERT key BEFORE|AFTER pivot element
func lInsert(r *exec.Request) {
	after := 0
	switch {
	case exec.Is(r.Args[2], "AFTER"):
		after = 1
	case !exec.Is(r.Args[2], "BEFORE"):
		r.Fail(exec.ErrSyntax)
		return
	}
	l, locks, rest, ok := openEdit(r)
	defer locks.Release()
	if !ok {
		return
	}
	if !l.found {
		r.ReplyInt(0)
		return
	}
	if !r.UseElements(l.txn) {
		return
	}
	left := searchAtOnce
	at := l.search(rest, r.Args[3], false, &left)
	switch {
	case at >= 0:
		length := l.len() + 1
		if err := l.insert(at+after, r.Args[4:5], false); err != nil {
			r.ReplyValueError(err)
			return
		}
		r.Notify(keyevent.List, "linsert", l.key)
		r.ReplyInt(int64(length))
	case rest.position >= l.len():
		r.ReplyInt(-1)
	default:
		rest.goOn(&locks)
	}
}

// lRem: LREM key count element
func lRem(r *exec.Request) {
	count, ok := r.IntArg(2)
	if !ok {
		return
	}
	if count == math.MinInt64 {
		r.Fail(ErrRange)
		return
	}
	back := count < 0
	most := int(max(count, -count))
	if most == 0 {
		most = math.MaxInt
	}
	l, locks, rest, ok := openEdit(r)
	defer locks.Release()
	if !ok {
		return
	}
	if locks.State == nil && back {
		rest.position = l.len()
	}
	if !r.UseElements(l.txn) {
		return
	}
	ended, err := l.removeEqual(rest, r.Args[3], most, back)
	switch {
	case err != nil:
		r.ReplyValueError(err)
	case ended:
		if rest.removed > 0 {
			r.NotifyLeft(l.txn, keyevent.List, "lrem", l.key)
		}
		r.ReplyInt(int64(rest.removed))
	default:
		rest.goOn(&locks)
	}
}

// removeEqual removes elements of one run that equal a string, until most are removed. ended: there
// is nothing more to do.
func (l *list) removeEqual(rest *edit, element []byte, most int, back bool) (ended bool, err error) {
	if !l.big {
		return true, l.removePacked(rest, element, most, back)
	}
	left := searchAtOnce
	for range removeAtOnce {
		at := l.search(rest, element, back, &left)
		if at < 0 {
			ended = back && rest.position <= 0 || !back && rest.position >= l.len()
			break
		}
		rest.removed++
		if rest.position = at; l.len() == 1 {
			return true, l.remove(at, 1)
		}
		l.tree.Remove(at, 1)
		if ended = rest.removed == most; ended {
			break
		}
	}
	l.shrink()
	return ended, nil
}

// removePacked is removeEqual for a packed list: the elements that stay make a new one.
func (l *list) removePacked(rest *edit, element []byte, most int, back bool) error {
	equal := func(x shape.Item) bool {
		var number shape.Decimal
		return string(x.Text(&number)) == string(element)
	}
	total := 0
	l.each(0, func(x shape.Item) bool {
		if equal(x) {
			total++
		}
		return true
	})
	most = min(most, total)
	rest.removed += most
	switch most {
	case 0:
		return nil
	case l.len():
		return l.remove(0, most)
	}
	spared := 0 // equal elements in front of those that go
	if back {
		spared = total - most
	}
	p := &l.r.Worker.Pack
	p.Open(&shape.PackedList, nil, l.r.Now)
	l.each(0, func(x shape.Item) bool {
		if equal(x) {
			if spared == 0 && most > 0 {
				most--
				return true
			}
			spared--
		}
		var number shape.Decimal
		p.Insert(p.Len(), 0, x.Text(&number), nil) // there is room: the list gets shorter
		return true
	})
	return l.store(p)
}

// lTrim: LTRIM key start stop
func lTrim(r *exec.Request) {
	start, ok := r.IntArg(2)
	if !ok {
		return
	}
	stop, ok := r.IntArg(3)
	if !ok {
		return
	}
	l, locks, rest, ok := openEdit(r)
	defer locks.Release()
	if !ok {
		return
	}
	if locks.State == nil {
		rest.position, rest.kept = l.span(start, stop)
	}
	found := l.found
	ended, err := l.trim(rest)
	switch {
	case err != nil:
		r.ReplyValueError(err)
	case ended:
		if locks.State != nil || found {
			r.NotifyLeft(l.txn, keyevent.List, "ltrim", l.key)
		}
		r.ReplyOK()
	default:
		rest.goOn(&locks)
	}
}

// trim removes elements of one run from the end and from the front. ended: there is nothing more to
// do.
func (l *list) trim(rest *edit) (ended bool, err error) {
	if rest.kept == 0 {
		if l.found {
			l.txn.Delete(l.key) // all at once, and so not Empty
		}
		return true, nil
	}
	behind, left := l.len()-rest.position-rest.kept, trimAtOnce
	if n := min(behind, left); n > 0 {
		if err := l.remove(l.len()-n, n); err != nil {
			return false, err
		}
		behind -= n
		left -= n
		*l, _ = open(l.r, l.txn, l.key)
	}
	if n := min(rest.position, left); n > 0 && behind == 0 {
		if err := l.remove(0, n); err != nil {
			return false, err
		}
		rest.position -= n
	}
	return behind <= 0 && rest.position == 0, nil
}
