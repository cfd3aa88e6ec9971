package shape

import (
	"encoding/binary"
	"fmt"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A delta of a list is a sequence of changes by position, each made to what the ones before have
// left:
//
//	insert    op │ position │ count │ count × (length │ bytes)
//	remove    op │ position │ count
//	set       op │ position │ length │ bytes
//	stub      op │ position │ length            an element of so many bytes, which fills bring
//	set long  op │ position │ length            the same instead of an element
//	fill      op │ position │ offset │ length │ bytes
//
// Numbers are uvarints. Elements of more than maxPiece bytes come in fills, so a delta of any list
// is short. The deltas of one such element form a unit. One of more than engine.MaxNote bytes is not
// noted: receivers get the partition anew.
const (
	opInsert = iota + 1
	opRemove
	opSet
	opStub
	opSetLong
	opFill
	opCount
)

const (
	maxPiece = 32 << 10 // bytes of an element in one change
	maxDump  = 1024     // elements in one delta of a snapshot
)

// ListForm is the form of values that are a List and nothing else. The place of a snapshot is the
// position of the next element, and how many bytes of that one are dumped, if it is dumped in pieces.
var ListForm = engine.Form{Apply: applyList, Dump: dumpList, Within: listWithin, Expire: func(engine.Parts) {}}

type delta []byte

func (d delta) withOp(op byte) delta {
	d[0] = op
	return d
}

func beginChange(dst []byte, op byte, position int) delta {
	return binary.AppendUvarint(append(dst, op), uint64(position))
}

func appendText(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// begin begins a delta with one change.
func (l *List) begin(op byte, position int) delta { return beginChange(l.w.change[:0], op, position) }

// note notes a delta, which was made in the scratch memory.
func (l *List) note(d []byte) {
	l.V.Note(d)
	if l.w.change = d; cap(d) > 4*maxPiece {
		l.w.change = nil
	}
}

// noteInsert notes that elements were inserted in front of a position.
func (l *List) noteInsert(position int, elements [][]byte, back bool) {
	if !l.V.Fed() {
		l.V.Note(nil)
		return
	}
	// Elements stand in the delta as they do in the list: next is the i-th of them.
	next := func(i int) []byte {
		if back {
			i = len(elements) - 1 - i
		}
		return elements[i]
	}
	for i := 0; i < len(elements); {
		if s := next(i); len(s) > engine.MaxNote {
			l.V.NoteTooLong()
			i++
			continue
		} else if len(s) > maxPiece {
			l.V.BeginUnit()
			l.note(binary.AppendUvarint(l.begin(opStub, position+i), uint64(len(s))))
			l.noteFills(position+i, s)
			i++
			continue
		}
		end, bytes := i, 0
		for end < len(elements) && len(next(end)) <= maxPiece && bytes < maxPiece {
			bytes += len(next(end))
			end++
		}
		d := binary.AppendUvarint(l.begin(opInsert, position+i), uint64(end-i))
		for ; i < end; i++ {
			d = appendText(d, next(i))
		}
		l.note(d)
	}
}

// noteFills notes the bytes of a long element.
func (l *List) noteFills(position int, s []byte) {
	for from := 0; from < len(s); from += maxPiece {
		d := binary.AppendUvarint(l.begin(opFill, position), uint64(from))
		l.note(appendText(d, s[from:min(from+maxPiece, len(s))]))
	}
}

// change is one change of a delta.
type change struct {
	op       byte
	position int
	n        int    // elements, or the length or offset of a long one
	text     []byte // strings with their lengths; of a fill the bytes
}

// nextChange parses the first change of a delta. text of an insertion is n strings, which have been
// parsed.
func nextChange(d []byte) (c change, rest []byte, err error) {
	r := changeReader{d: d[1:]}
	c.op, c.position = d[0], r.number()
	switch c.op {
	case opInsert:
		c.n = r.number()
		text := r.d
		for i := 0; i < c.n && !r.bad; i++ {
			r.bytes()
		}
		c.text = text[:len(text)-len(r.d)]
	case opRemove, opStub, opSetLong:
		c.n = r.number()
	case opSet:
		c.text = r.bytes()
	case opFill:
		c.n, c.text = r.number(), r.bytes()
	default:
		r.bad = true
	}
	if r.bad {
		return c, nil, fmt.Errorf("%w: change %d of a list", ErrMalformed, c.op)
	}
	return c, r.d, nil
}

type changeReader struct {
	d   []byte
	bad bool
}

func (r *changeReader) number() int {
	n, size := binary.Uvarint(r.d)
	if size <= 0 || n > 1<<32 {
		r.bad, r.d = true, nil
		return 0
	}
	r.d = r.d[size:]
	return int(n)
}

func (r *changeReader) bytes() (s []byte) {
	n := r.number()
	if n > len(r.d) {
		r.bad, r.d = true, nil
		return nil
	}
	s, r.d = r.d[:n:n], r.d[n:]
	return s
}

// applyList applies a delta.
func applyList(v engine.Parts, d []byte) error {
	l := ListOf(v, nil)
	for len(d) > 0 {
		c, rest, err := nextChange(d)
		if err == nil {
			err = l.apply(&c)
		}
		if err != nil {
			return err
		}
		d = rest
	}
	return nil
}

func (l *List) apply(c *change) error {
	inserts := c.op == opInsert || c.op == opStub
	if c.position > l.Len() || c.position == l.Len() && !inserts {
		return fmt.Errorf("%w: change %d at %d of a list of %d", ErrMalformed, c.op, c.position, l.Len())
	}
	switch c.op {
	case opInsert:
		r := changeReader{d: c.text}
		for i := range c.n {
			if err := l.InsertAt(c.position+i, r.bytes(), nil); err != nil {
				return err
			}
		}
	case opRemove:
		if c.n > l.Len()-c.position {
			return fmt.Errorf("%w: %d elements from %d on of a list of %d", ErrMalformed, c.n, c.position, l.Len())
		}
		for n := c.n; n > 0; {
			n -= l.DeleteSome(c.position, n)
		}
	case opSet:
		return l.Replace(c.position, 0, c.text)
	case opStub, opSetLong:
		if c.n <= maxPiece || c.n > engine.MaxValueLen {
			return fmt.Errorf("%w: an element of %d bytes in pieces", ErrMalformed, c.n)
		}
		if c.op == opSetLong {
			return l.replaceLong(c.position, c.n)
		}
		return l.insertLong(c.position, c.n)
	case opFill:
		return l.fill(c.position, c.n, c.text)
	}
	return nil
}

// insertLong inserts an element of n bytes, whose content is undefined until it is filled.
func (l *List) insertLong(position, n int) error {
	if err := l.firstLeaf(); err != nil {
		return err
	}
	x := newEntry{position: position, items: 1, size: awayNumber}
	x.probes[0] = probe{code: codeAway, long: n}
	_, err := l.insert(l.to(position), &x)
	return err
}

// replaceLong gives the place of an element to one of n bytes.
func (l *List) replaceLong(position, n int) error {
	return l.replace(position, 0, [1]probe{{code: codeAway, long: n}})
}

// fill writes bytes of a long element.
func (l *List) fill(position, offset int, s []byte) error {
	number, ok := l.awayAt(position)
	if !ok {
		return fmt.Errorf("%w: a fill of a short element", ErrMalformed)
	}
	return FillAway(l.V, l.Away, number, offset, s)
}

// Of a place: the position, and how much of that element is dumped.
func placeOf(position, offset int) engine.Place {
	return engine.Place{uint64(position), uint64(offset)}
}
func splitPlace(p engine.Place) (position, off int) { return int(p[0]), int(p[1]) }

// dumpList appends a delta with the elements from a place on.
func dumpList(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	l := ListOf(v, nil)
	position, offset := splitPlace(from)
	if offset > 0 || position < l.Len() && l.At(position).First.Len() > maxPiece {
		dst, offset = l.dumpLong(position, offset, dst)
		if offset == 0 {
			position++
		}
		return dst, placeOf(position, offset), position >= l.Len()
	}
	dst, position = l.dump(position, dst, atMost)
	return dst, placeOf(position, 0), position >= l.Len()
}

// dump appends the insertion of the elements from a position on, about atMost bytes of them, and
// returns where to go on: at an element that is too long if there is one.
func (l *List) dump(position int, dst []byte, atMost int) (delta []byte, next int) {
	count, begin := 0, len(dst)
	end := l.Walk(position, func(x Entry) bool {
		if count == maxDump || len(dst)-begin >= atMost || x.First.Len() > maxPiece {
			return false
		}
		count++
		dst = appendItem(dst, x.First)
		return true
	})
	if count == 0 {
		return dst[:begin], end
	}
	// The count is known only now, and comes first.
	var head [1 + 2*binary.MaxVarintLen64]byte
	h := binary.AppendUvarint(beginChange(head[:0], opInsert, position), uint64(count))
	dst = append(dst, h...)
	copy(dst[begin+len(h):], dst[begin:len(dst)-len(h)])
	copy(dst[begin:], h)
	return dst, end
}

func appendItem(dst []byte, i Item) []byte {
	var buf Decimal
	return appendText(dst, i.Text(&buf))
}

// dumpLong appends the next piece of a long element, in front of the first one a stub. It returns
// where to go on in the element, 0 if it is complete.
func (l *List) dumpLong(position, offset int, dst []byte) (delta []byte, next int) {
	s := l.At(position).First.raw()
	if offset == 0 {
		dst = binary.AppendUvarint(beginChange(dst, opStub, position), uint64(len(s)))
	}
	end := min(offset+maxPiece, len(s))
	dst = binary.AppendUvarint(beginChange(dst, opFill, position), uint64(offset))
	dst = appendText(dst, s[offset:end])
	if end == len(s) {
		end = 0
	}
	return dst, end
}

// listWithin appends what of a delta concerns the elements in front of a place: those that a
// receiver has in the middle of a snapshot, of which the last may lack bytes.
func listWithin(_ engine.Parts, d []byte, place engine.Place, dst []byte) (within []byte, next engine.Place) {
	have, offset := splitPlace(place) // elements that the receiver has whole, and bytes of the next one
	for len(d) > 0 {
		c, rest, err := nextChange(d)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		has := have // the elements that a change may name
		if offset > 0 {
			has++
		}
		whole := d[:len(d)-len(rest)]
		switch {
		case c.op == opInsert || c.op == opStub:
			// What is inserted at the receiver's end comes with a later chunk.
			if c.position < has {
				dst = append(dst, whole...)
				if have++; c.op == opInsert {
					have += c.n - 1
				}
			}
		case c.position >= has:
		case c.op == opRemove:
			n := min(c.n, has-c.position)
			dst = binary.AppendUvarint(beginChange(dst, opRemove, c.position), uint64(n))
			if c.position+n == has && offset > 0 {
				have, offset = have+1, 0
			}
			have -= n
		case c.op != opFill && c.position == have: // the element in pieces is another one now
			have, offset = have+1, 0
			dst = append(dst, whole...)
		default:
			dst = append(dst, whole...)
		}
		d = rest
	}
	return dst, placeOf(have, offset)
}
