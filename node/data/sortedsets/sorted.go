package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// Read looks up the sorted set that a command reads. If the key holds another type, Read answers
// the error and ok is false. If there is no such key, the view is empty.
func Read(r *exec.Request, t engine.Txn, key []byte) (s View, ok bool) {
	item, found, ok := r.ReadOf(t, key, engine.TypeZSet)
	if !found || !ok {
		return s, ok
	}
	return viewOf(t, item), true
}

// Peek is the sorted set under a key that Read has found before, under the same hold or lock.
func Peek(t engine.Txn, key []byte) (s View) {
	if item, found := t.Peek(key); found && item.Type() == engine.TypeZSet {
		s = viewOf(t, item)
	}
	return s
}

func viewOf(t engine.Txn, item engine.Item) View {
	if v, ok := t.Parts(item); ok {
		return viewBig(openBig(v, nil))
	}
	return viewPacked(item.Value())
}

// sorted is a sorted set while a handler changes it.
type sorted struct {
	r        *exec.Request
	txn      engine.Txn
	key      []byte
	item     engine.Item
	found    bool
	expireAt int64
	View
}

// open looks up the sorted set that a command changes. If the key holds another type, open answers
// the error and ok is false.
func open(r *exec.Request, t engine.Txn, key []byte) (s sorted, ok bool) {
	s = sorted{r: r, txn: t, key: key}
	if s.item, s.found, ok = r.FindOf(t, key, engine.TypeZSet); !ok || !s.found {
		return s, ok
	}
	s.expireAt = s.item.ExpireAt()
	s.View = viewOf(t, s.item)
	return s, true
}

// store stores the changed packed value.
func (s *sorted) store(p *shape.Pack) error {
	if p.Len() == 0 {
		s.txn.Empty(s.key)
		return nil
	}
	return s.txn.Set(s.key, p.Bytes(), engine.TypeZSet, s.expireAt)
}

// edit opens the packed value to be changed.
func (s *sorted) edit() *shape.Pack {
	p := &s.r.Worker.Pack
	var old []byte
	if s.found {
		old = s.item.Value()
	}
	p.Open(&shape.PackedZSet, old, s.r.Now)
	return p
}

// shrink deletes a big set that has become empty, and packs one that has become small.
func (s *sorted) shrink() {
	s.big.tree.Verify()
	switch tree := &s.big.tree; {
	case tree.Len() == 0:
		s.txn.Empty(s.key)
	case tree.Small(&shape.PackedZSet):
		p := &s.r.Worker.Pack
		p.PackTree(&s.r.Worker.Work, &shape.PackedZSet, tree)
		_ = s.txn.Set(s.key, p.Bytes(), engine.TypeZSet, s.expireAt) // without memory it stays big
	}
}

// grow makes the set one with parts and gives it its members; then fill goes on. After an error it
// is as it was.
func (s *sorted) grow(fill func() error) error {
	worker := s.r.Worker
	old := append(worker.Body[:0], s.item.Value()...)
	defer worker.KeepBody(old)
	if !s.found {
		old = nil
	}
	s.txn.BeginUnit()
	defer s.txn.EndUnit()
	_, err := shape.Rebuild(s.txn, s.key, engine.TypeZSet, own, s.expireAt, old, func(v engine.Parts) error {
		s.big, s.isBig = openBig(v, nil), true
		if old != nil {
			if err := s.big.unpack(&worker.Work, old); err != nil {
				return err
			}
		}
		return fill()
	})
	if err != nil {
		worker.Work.Forget()
	}
	return err
}

// unpack gives an empty big set the members of a packed one, and notes them.
func (b *big) unpack(w *shape.Work, packed []byte) (err error) {
	p := shape.ReadPacked(&shape.PackedZSet, packed)
	p.Each(0, func(i int, member, _ shape.Item, _ int64) bool {
		var number shape.Decimal
		name, score := member.Text(&number), scoreOf(p.Rank(i))
		if _, err = b.tree.Insert(p.Rank(i), name, nil); err != nil {
			return false
		}
		b.note(w, name, score)
		return true
	})
	return err
}
