package sets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// set is the value of a key, while a handler reads or changes it.
type set struct {
	r     *exec.Request
	txn   engine.Txn
	key   []byte
	item  engine.Item
	found bool
	big   bool // it has parts: table; otherwise its record has packed
	table shape.Table
	shape.Packed
}

// open looks up a set that the command changes. If the key holds another type, open answers the
// error and ok is false.
func open(r *exec.Request, t engine.Txn, key []byte) (s set, ok bool) {
	s = set{r: r, txn: t, key: key}
	s.item, s.found, ok = r.FindOf(t, key, engine.TypeSet)
	s.view()
	return s, ok
}

// read is open for a command that only reads: it also counts the hit or miss.
func read(r *exec.Request, t engine.Txn, key []byte) (s set, ok bool) {
	s = set{r: r, txn: t, key: key}
	s.item, s.found, ok = r.ReadOf(t, key, engine.TypeSet)
	if ok {
		s.view()
	}
	return s, ok
}

// setOf is the set that an item is.
func setOf(t engine.Txn, item engine.Item) (s set) {
	s = set{txn: t, item: item, found: true}
	s.view()
	return s
}

func (s *set) view() {
	if !s.found || s.item.Type() != engine.TypeSet {
		return
	}
	var v engine.Parts
	if v, s.big = s.txn.Parts(s.item); s.big {
		s.table = tableOf(v)
		return
	}
	s.Packed = shape.ReadPacked(&shape.PackedSet, s.item.Value())
}

// length is how many members the set has.
func (s *set) length() int {
	switch {
	case !s.found:
		return 0
	case s.big:
		return s.table.Len()
	}
	return s.Len()
}

// bytes is about how much memory the set takes.
func (s *set) bytes() int64 {
	if s.big {
		return s.table.V.Bytes()
	}
	return shape.MaxPacked
}

// has reports whether the set has a member.
func (s *set) has(member []byte) bool {
	switch {
	case !s.found:
		return false
	case s.big:
		return s.table.Has(member)
	}
	keys, at := [1][]byte{member}, [1]int{}
	s.Find(keys[:], at[:])
	return at[0] >= 0
}

func (s *set) expireAt() int64 {
	if s.found {
		return s.item.ExpireAt()
	}
	return 0
}

// add adds members. After an error nothing has changed.
func (s *set) add(members [][]byte) (added int, err error) {
	if s.big {
		return s.addBig(members)
	}
	var old []byte
	if s.found {
		old = s.item.Value()
	}
	p := &s.r.Worker.Pack
	p.Open(&shape.PackedSet, old, 0)
	for i := range members {
		isNew, ok := addPacked(p, members[i])
		if !ok {
			return s.grow(old, members)
		}
		if isNew {
			added++
		}
	}
	if added == 0 {
		return 0, nil
	}
	return added, s.store(p)
}

// addPacked adds a member. ok is false if it does not fit.
func addPacked(p *shape.Pack, member []byte) (added, ok bool) {
	keys, at := [1][]byte{member}, [1]int{}
	if p.Find(keys[:], at[:]); at[0] >= 0 {
		return false, true
	}
	return true, p.Insert(p.Len(), 0, member, nil)
}

// store stores the changed packed value, or deletes the key if that is empty.
func (s *set) store(p *shape.Pack) error {
	if p.Len() == 0 {
		s.txn.Delete(s.key)
		return nil
	}
	return s.txn.Set(s.key, p.Bytes(), engine.TypeSet, s.expireAt())
}

// addBig is add to a set with parts.
func (s *set) addBig(members [][]byte) (added int, err error) {
	t, w := &s.table, &s.r.Worker.Work
	added, err = s.addTable(members, true)
	switch {
	case err != nil:
	case added > 0:
		w.Note(t.V)
	default:
		w.Forget()
	}
	return added, err
}

// addTable adds members to the table, and to the delta in Worker.Work if that is wanted.
func (s *set) addTable(members [][]byte, note bool) (added int, err error) {
	t, w := &s.table, &s.r.Worker.Work
	if len(members) == 1 {
		if isNew, ok := t.TrySet(members[0], nil, 0); ok {
			if isNew && note {
				t.NoteSet(w, members[0], nil, 0)
			}
			return int(exec.BoolInt(isNew)), nil
		}
	}
	if err := t.Reserve(w, members, false); err != nil {
		return 0, err
	}
	for _, member := range members {
		isNew, err := t.Set(member, nil, 0)
		if err != nil {
			panic("BUG: no memory for what was reserved: " + err.Error())
		}
		if !isNew {
			continue
		}
		added++
		if note {
			t.NoteSet(w, member, nil, 0)
		}
	}
	return added, nil
}

// grow makes the set, whose packed value is a view of the engine, one with parts, and adds the
// members.
func (s *set) grow(packed []byte, members [][]byte) (added int, err error) {
	r := s.r
	w := &r.Worker.Work
	old := append(r.Worker.Body[:0], packed...)
	defer r.Worker.KeepBody(old)
	if packed == nil {
		old = nil
	}
	s.txn.BeginUnit()
	defer s.txn.EndUnit()
	_, err = shape.Rebuild(s.txn, s.key, engine.TypeSet, shape.TableOwn, s.expireAt(), old, func(v engine.Parts) error {
		s.table, s.big = tableOf(v), true
		if old != nil {
			p := shape.ReadPacked(&shape.PackedSet, old)
			if err := s.table.Unpack(w, &p); err != nil {
				return err
			}
		}
		added, err = s.addTable(members, false)
		return err
	})
	if err == nil {
		s.table.NoteAll(w)
	}
	return added, err
}

// remove removes members, and the key with the last of them.
func (s *set) remove(members [][]byte) (removed int, err error) {
	switch {
	case !s.found:
		return 0, nil
	case s.big:
		return s.removeBig(members), nil
	}
	p := &s.r.Worker.Pack
	p.Open(&shape.PackedSet, s.item.Value(), 0)
	var at [1]int
	for i := range members {
		if p.Find(members[i:i+1], at[:]); at[0] >= 0 {
			p.Delete(at[0])
			removed++
		}
	}
	if removed == 0 {
		return 0, nil
	}
	return removed, s.store(p)
}

func (s *set) removeBig(members [][]byte) (removed int) {
	t, w := &s.table, &s.r.Worker.Work
	for _, member := range members {
		if t.Delete(member) {
			removed++
			t.NoteDelete(w, member)
		}
	}
	s.removedBig(removed)
	return removed
}

// removedBig is called when members of a set with parts were removed, and noted.
func (s *set) removedBig(removed int) {
	t, w := &s.table, &s.r.Worker.Work
	if removed == 0 {
		w.Forget()
		return
	}
	w.Note(t.V)
	switch {
	case t.Len() == 0:
		s.txn.Delete(s.key)
	case t.Small(&shape.PackedSet):
		p := &s.r.Worker.Pack
		p.PackTable(w, &shape.PackedSet, t)
		_ = s.txn.Set(s.key, p.Bytes(), engine.TypeSet, s.expireAt()) // without memory it stays big
	}
}
