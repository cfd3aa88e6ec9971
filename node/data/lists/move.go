package lists

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// lMove: LMOVE source destination LEFT|RIGHT LEFT|RIGHT
func lMove(r *exec.Request) {
	from, ok := endArg(r, 3)
	if !ok {
		return
	}
	to, ok := endArg(r, 4)
	if !ok {
		return
	}
	move(r, from, to)
}

// move: LMOVE, RPOPLPUSH source destination
func move(r *exec.Request, from, to end) {
	moveOr(r, from, to, func(engine.Txn) { r.ReplyNull() })
}

// moveOr moves an element, or calls none if the source has none.
func moveOr(r *exec.Request, from, to end, none func(t engine.Txn)) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	source, ok := open(r, t, r.Args[1])
	if !ok {
		return
	}
	if !source.found {
		none(t)
		return
	}
	target, ok := open(r, t, r.Args[2])
	if !ok {
		return
	}
	position := source.first(from, 1)
	item := source.at(position)
	if source.big && item.Size() >= exec.LongElement {
		if lent, element, long := source.tree.Lend(position); long {
			moveLong(&source, &target, lent, element, from, to)
			return
		}
	}
	var number shape.Decimal
	element := append(r.Worker.Number[:0], item.Text(&number)...)
	if err := source.moveTo(&target, element, from, to); err != nil {
		r.ReplyValueError(err)
		return
	}
	r.ReplyBulk(element)
}

// moveLong is moveTo of an element that is not copied: its memory was lent, and the target takes it
// over.
func moveLong(source, target *list, lent engine.Staged, element []byte, from, to end) {
	r, t, start := source.r, source.txn, len(source.r.Out)
	fits := r.ReplyView(element)
	err := error(nil)
	if fits {
		t.Offer(&lent)
		err = source.moveTo(target, element, from, to)
	}
	if !lent.Live() {
		return
	}
	if fits && err == nil {
		panic("BUG: a long element was copied")
	}
	if again, ok := open(r, t, source.key); ok && again.big {
		again.tree.Return(again.first(from, 1), &lent)
	} else {
		lent.Discard() // the list was evicted
	}
	if err != nil {
		r.Undo(start)
		r.ReplyValueError(err)
	}
}

// moveTo moves the element at one end of a list to an end of another one, or of the same. It
// inserts first, so that nothing is lost without memory. Making room for that may evict the list:
// then its element has moved all the same.
func (l *list) moveTo(target *list, element []byte, from, to end) error {
	same := bytes.Equal(l.key, target.key)
	target.tree.Moves, l.tree.Moves = same, same
	if same && (from == to || l.len() == 1) {
		err := l.set(l.first(from, 1), element)
		if err == nil {
			l.notifyMoved(target, from, to)
		}
		return err
	}
	l.txn.BeginUnit()
	defer l.txn.EndUnit()
	elements := [1][]byte{element}
	if err := target.insert(target.position(to), elements[:], false); err != nil {
		return err
	}
	source, ok := open(l.r, l.txn, l.key)
	if !ok || !source.found {
		l.r.Notify(keyevent.List, to.pushed(), target.key)
		return nil
	}
	err := source.remove(source.first(from, 1), 1)
	if err == nil {
		l.notifyMoved(target, from, to)
	}
	return err
}

func (l *list) notifyMoved(target *list, from, to end) {
	l.r.Notify(keyevent.List, to.pushed(), target.key)
	l.r.NotifyLeft(l.txn, keyevent.List, from.popped(), l.key)
}
