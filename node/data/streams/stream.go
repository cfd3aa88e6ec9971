package streams

import (
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// view reads a stream: as it is, or as it was when its value was pinned. What it hands out are views of
// the value, valid until the next change.
type view struct {
	big
	small small
	isBig bool
	found bool
}

// info is what XINFO and XSETID know of a stream.
type info struct {
	first      ID     // of the first entry that is there; 0-0 if there is none
	last       ID     // the greatest ID that the stream has ever had
	maxDeleted ID     // the greatest one that was deleted
	added      uint64 // entries that were ever added
}

// viewOf is the stream in an item found with t.
func viewOf(t engine.Txn, item engine.Item) (v view) {
	v.found = true
	if v.big.v, v.isBig = t.Parts(item); !v.isBig {
		v.small = readSmall(item.Value())
	}
	return v
}

// viewSmall is the stream in the value of a record.
func viewSmall(value []byte) view { return view{found: true, small: readSmall(value)} }

// viewParts is the stream in a value with parts.
func viewParts(v engine.Parts) view { return view{found: true, isBig: true, big: big{v: v}} }

// pinned is the stream as it was when its value was pinned, to be read after pin.Lock. Blocks that were
// passed are not to be read again from the same pin.
func pinned(pin *engine.ValuePin) view { return view{found: true, isBig: true, big: big{pin: pin}} }

// parts is the value that a long reply pins (exec.IsLong, exec.ReplyPinnedText); ok is false for a small
// stream, which is never that long.
func (v *view) parts() (parts engine.Parts, ok bool) { return v.big.v, v.isBig }

// len returns how many entries the stream has.
func (v *view) len() int {
	if v.isBig {
		return v.big.len()
	}
	return v.small.len()
}

func (v *view) meta() meta {
	if v.isBig {
		return v.big.meta()
	}
	return v.small.meta
}

func (v *view) info() (i info) {
	m := v.meta()
	i = info{last: m.last, maxDeleted: m.maxDeleted, added: m.added}
	v.each(minID, func(id ID, _ entry) bool {
		i.first = id
		return false
	})
	return i
}

// each calls f for the entries from the first one on that is not below an ID, until f returns false.
func (v *view) each(from ID, f func(id ID, e entry) bool) {
	switch {
	case v.isBig:
		v.big.each(from, f)
	case v.small.blk != nil:
		v.eachIn(v.small.blk, from, f)
	}
}

// eachBack calls f for the entries from the last one on that is not above an ID, in descending order,
// until f returns false.
func (v *view) eachBack(from ID, f func(id ID, e entry) bool) {
	switch {
	case v.isBig:
		v.big.eachBack(from, f)
	case v.small.blk != nil:
		v.eachBackIn(v.small.blk, from, f)
	}
}

// has reports whether there is an entry with an ID.
func (v *view) has(id ID) bool {
	if v.isBig {
		_, _, found := v.find(id)
		return found
	}
	if v.small.blk == nil {
		return false
	}
	_, found := v.small.blk.find(id)
	return found
}

// entry returns the entry with an ID.
func (v *view) entry(id ID) (e entry, found bool) {
	v.each(id, func(at ID, x entry) bool {
		e, found = x, at == id
		return false
	})
	return e, found
}

// groups returns how many groups the stream has.
func (v *view) groups() int {
	if !v.isBig {
		return 0
	}
	return v.big.groups()
}

// group returns the group with a name.
func (v *view) group(name []byte) (g group, found bool) {
	if !v.isBig {
		return g, false
	}
	return v.big.group(name)
}

// eachGroup calls f for the groups in the order of their names, those behind after, until f returns false.
// nil: from the first one on.
func (v *view) eachGroup(after []byte, f func(g *group) bool) {
	if v.isBig {
		v.big.eachGroup(after, f)
	}
}

// stream is the value of a key while a handler uses it, under one lock. Its view reads what the changes so
// far have left. A handler that has changed a stream calls close before it unlocks.
type stream struct {
	view
	r   *exec.Request
	txn engine.Txn
	key []byte

	expireAt int64
	staged   *staging // not nil: has the payload of a long entry
	noting   noting   // what is left of it
	goesOn   bool     // it is to be added in another run
	changed  bool
	renewed  bool // its meta has changed
	shrinks  bool // an entry or a group was removed
	unit     bool // the changes form a unit
	tooLong  bool // to be noted
}

// open looks up a stream that the command changes. If the key holds another type, open answers the error and
// ok is false.
func open(r *exec.Request, t engine.Txn, key []byte) (s stream, ok bool) {
	item, found, ok := r.FindOf(t, key, engine.TypeStream)
	return streamOf(r, t, key, item, found && ok), ok
}

// read is open for a command that reads: it also counts the hit or miss.
func read(r *exec.Request, t engine.Txn, key []byte) (s stream, ok bool) {
	item, found, ok := r.ReadOf(t, key, engine.TypeStream)
	return streamOf(r, t, key, item, found && ok), ok
}

func streamOf(r *exec.Request, t engine.Txn, key []byte, item engine.Item, found bool) (s stream) {
	s.r, s.txn, s.key = r, t, key
	if found {
		s.view, s.expireAt = viewOf(t, item), item.ExpireAt()
	}
	return s
}
