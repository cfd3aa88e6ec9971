package lists

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// end is an end of a list.
type end uint8

const (
	head end = iota
	tail
)

// list is the value of a key while a handler uses it. It is good for one change.
type list struct {
	r     *exec.Request
	txn   engine.Txn
	key   []byte
	item  engine.Item
	found bool
	big   bool // it has parts: tree
	tree  shape.List
}

// open looks up a list that the command changes. If the key holds another type, open answers the
// error and ok is false.
func open(r *exec.Request, t engine.Txn, key []byte) (l list, ok bool) {
	l.r, l.txn, l.key = r, t, key
	l.item, l.found, ok = r.FindOf(t, key, engine.TypeList)
	l.view()
	return l, ok
}

// read is open for a command that reads.
func read(r *exec.Request, t engine.Txn, key []byte) (l list, ok bool) {
	l.r, l.txn, l.key = r, t, key
	l.item, l.found, ok = r.ReadOf(t, key, engine.TypeList)
	l.view()
	return l, ok
}

// view finds out whether the list has parts.
func (l *list) view() {
	if !l.found || l.item.Type() != engine.TypeList {
		return
	}
	var v engine.Parts
	if v, l.big = l.txn.Parts(l.item); l.big {
		l.tree = shape.ListOf(v, &l.r.Worker.Work)
	}
}

func (l *list) packed() shape.Packed { return shape.ReadPacked(&shape.PackedList, l.item.Value()) }

// len returns how many elements the list has, 0 if there is none.
func (l *list) len() int {
	switch {
	case l.big:
		return l.tree.Len()
	case l.found:
		p := l.packed()
		return p.Len()
	}
	return 0
}

// bytes is how much memory a list with parts takes.
func (l *list) bytes() int64 {
	if l.big {
		return l.tree.V.Bytes()
	}
	return 0
}

// at returns the element at a position that the list has.
func (l *list) at(position int) shape.Item {
	if l.big {
		return l.tree.At(position).First
	}
	p := l.packed()
	return p.Item(position, 0)
}

// each calls f for the elements from a position on, until it returns false.
func (l *list) each(position int, f func(element shape.Item) bool) {
	switch {
	case l.big:
		l.tree.Each(position, f)
	case l.found:
		p := l.packed()
		p.Each(position, func(_ int, element, _ shape.Item, _ int64) bool { return f(element) })
	}
}

// eachBack calls f for the elements in front of a position, the nearest first, until it returns
// false.
func (l *list) eachBack(position int, f func(element shape.Item) bool) {
	switch {
	case l.big:
		l.tree.WalkBack(position, func(x shape.Entry) bool { return f(x.First) })
	case l.found:
		p := l.packed()
		p.EachBack(position, func(_ int, element shape.Item) bool { return f(element) })
	}
}

func (l *list) expireAt() int64 {
	if l.found {
		return l.item.ExpireAt()
	}
	return 0
}

// position returns where an element stands that is pushed at an end.
func (l *list) position(at end) int {
	if at == head {
		return 0
	}
	return l.len()
}

// insert inserts the elements of one run in front of a position: the first of them first, or the
// last one first if back is true. A key that had no list has one then. After an error nothing has
// changed.
func (l *list) insert(position int, elements [][]byte, back bool) error {
	if l.big {
		return l.tree.Insert(position, elements, back)
	}
	p := l.pack()
	for i, s := range elements {
		at := position + i
		if back {
			at = position
		}
		if !p.Insert(at, 0, s, nil) {
			return l.grow(func() error { return l.tree.Insert(position, elements, back) })
		}
	}
	return l.store(p)
}

// set gives the element at a position another string. After an error nothing has changed.
func (l *list) set(position int, s []byte) error {
	if l.big {
		return l.tree.Set(position, s)
	}
	p := l.pack()
	if !p.Replace(position, 0, s) {
		return l.grow(func() error { return l.tree.Set(position, s) })
	}
	return l.store(p)
}

// remove removes elements, and the key with the last of them. After an error nothing has changed.
func (l *list) remove(position, n int) error {
	switch {
	case n == l.len():
		l.txn.Empty(l.key)
		return nil
	case !l.big:
		p := l.pack()
		p.DeleteSome(position, n)
		return l.store(p)
	}
	l.tree.Remove(position, n)
	l.shrink()
	return nil
}

// shrink packs a big list that has become small. Then l is not to be used any more.
func (l *list) shrink() {
	if l.tree.Small(&shape.PackedList) {
		p := &l.r.Worker.Pack
		p.PackTree(&l.r.Worker.Work, &shape.PackedList, &l.tree.Tree)
		_ = l.store(p) // without memory it stays big
	}
}

// pack begins a change of a packed list, which may be empty.
func (l *list) pack() *shape.Pack {
	var value []byte
	if l.found {
		value = l.item.Value()
	}
	p := &l.r.Worker.Pack
	p.Open(&shape.PackedList, value, l.r.Now)
	return p
}

// store stores the changed packed value.
func (l *list) store(p *shape.Pack) error {
	return l.txn.Set(l.key, p.Bytes(), engine.TypeList, l.expireAt())
}

// grow makes the list one with parts and calls change for it. If that fails the list is as it was.
func (l *list) grow(change func() error) error {
	r, old := l.r, []byte(nil)
	if l.found {
		old = append(r.Worker.Body[:0], l.item.Value()...)
		defer r.Worker.KeepBody(old)
	}
	l.txn.BeginUnit()
	defer l.txn.EndUnit()
	_, err := shape.Rebuild(l.txn, l.key, engine.TypeList, shape.ListOwn, l.expireAt(), old, func(v engine.Parts) error {
		l.tree, l.big = shape.ListOf(v, &r.Worker.Work), true
		if old != nil {
			p := shape.ReadPacked(&shape.PackedList, old)
			if err := l.tree.Take(&p); err != nil {
				return err
			}
		}
		return change()
	})
	return err
}
