package shape

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// List is a list in a value with parts: a tree without ranks that notes its changes for receivers
// (list_form.go). It is made for each command. Work is scratch memory, which commands share.
type List struct {
	Tree
	w *Work
}

// ListOwn is how many own bytes a value needs for a list.
const ListOwn = TreeOwn

// The planes of a list.
const (
	listLeaves = iota
	listNodes
	listAway
)

// ListOf is the list of a value with ListOwn own bytes.
func ListOf(v engine.Parts, w *Work) List {
	return List{Tree{V: v, Leaves: listLeaves, Nodes: listNodes, Away: listAway, Items: 1}, w}
}

// PinnedList is the list as it was when its value was pinned, to be read after pin.Lock.
func PinnedList(pin *engine.ValuePin) Tree {
	return Tree{Pin: pin, Leaves: listLeaves, Nodes: listNodes, Away: listAway, Items: 1}
}

// MaxInLeaf is the longest string that a list keeps in its leaves. Tree.Bytes counts those only.
const MaxInLeaf = maxInline

// Insert inserts elements in front of a position, no more than a command may insert under one lock:
// the first of them first, or if back is true, the last one. It reserves what they take: all are
// inserted or none.
func (l *List) Insert(position int, elements [][]byte, back bool) error {
	if len(elements) == 1 {
		if err := l.InsertAt(position, elements[0], nil); err != nil {
			return err
		}
	} else {
		if err := l.ReserveAt(l.w, position, elements); err != nil {
			return err
		}
		for i, s := range elements {
			at := position + i
			if back {
				at = position
			}
			if err := l.InsertAt(at, s, nil); err != nil {
				panic("BUG: no memory for a reserved element: " + err.Error())
			}
		}
		l.Settle()
	}
	l.noteInsert(position, elements, back)
	return nil
}

// Set gives the element at a position another string.
func (l *List) Set(position int, s []byte) error {
	if err := l.Replace(position, 0, s); err != nil {
		return err
	}
	switch {
	case !l.V.Fed():
		l.V.Note(nil)
		return nil
	case len(s) > engine.MaxNote:
		l.V.NoteTooLong()
		return nil
	}
	d := l.begin(opSet, position)
	if len(s) > maxPiece {
		l.V.BeginUnit()
		l.note(binary.AppendUvarint(d.withOp(opSetLong), uint64(len(s))))
		l.noteFills(position, s)
		return nil
	}
	l.note(appendText(d, s))
	return nil
}

// Remove removes n elements from a position on, of which there are so many, and no more than a
// command may remove under one lock.
func (l *List) Remove(position, n int) {
	if l.V.Fed() {
		l.note(binary.AppendUvarint(l.begin(opRemove, position), uint64(n)))
	} else {
		l.V.Note(nil)
	}
	for n > 0 {
		n -= l.DeleteSome(position, n)
	}
}

// Lend takes the memory of an element that is too long for a cell from the list, and returns it with a
// view of the element. It is offered for another list, or for this one, which then takes it over with
// the view. Otherwise Return gives it back. Meanwhile the list has an empty string there. long is
// false, and nothing has changed, if the element is not so long.
func (l *List) Lend(position int) (lent engine.Staged, element []byte, long bool) {
	number, ok := l.awayAt(position)
	if !ok {
		return lent, nil, false
	}
	element = awayString(l.V.Part(l.Away, number))
	lent, long = l.V.Detach(l.Away, number)
	return lent, element, long
}

// Return gives back what Lend has taken.
func (l *List) Return(position int, lent *engine.Staged) {
	if number, ok := l.awayAt(position); ok {
		l.V.Attach(l.Away, number, lent)
	}
}

// awayAt is the part that has the element at a position, if there is one.
func (l *List) awayAt(position int) (number int, ok bool) {
	w := l.to(position)
	b := block(l.V.Part(l.Leaves, w.leaf))
	code, raw := b.item(w.entry, b.offset(w.entry), 0)
	if code != codeAway {
		return 0, false
	}
	return int(binary.LittleEndian.Uint32(raw)), true
}

// Take adds the elements of a packed list to an empty list, and notes that.
func (l *List) Take(p *Packed) error {
	if err := l.Unpack(l.w, p); err != nil {
		return err
	}
	for from := 0; from < l.Len(); {
		var delta []byte
		delta, from = l.dump(from, l.w.change[:0], chunkOfPacked)
		l.note(delta)
	}
	return nil
}

// Each calls f for the elements from a position on, until it returns false. It is Walk in half of its
// time.
func (l *List) Each(position int, f func(element Item) bool) {
	for total := l.Len(); position < total; {
		w := l.to(position)
		b := block(l.part(l.Leaves, w.leaf))
		n, off := b.count(), b.offset(w.entry)
		position += n - w.entry
		for at := len(b) - 1 - w.entry; at >= len(b)-n; at-- { // an element's slot is its code
			code := b[at]
			end := off + int(stored[code])
			x := Item{code, b[off:end:end]}
			if code == codeAway {
				x.bytes = awayString(l.part(l.Away, int(binary.LittleEndian.Uint32(x.bytes))))
			}
			if !f(x) {
				return
			}
			off = end
		}
		l.passed(w.leaf)
	}
}

// chunkOfPacked is more than a packed list can have.
const chunkOfPacked = 2 * MaxPackedList
