package sortedsets

import (
	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// step is a change of one member that has begun: its new score is in tree and table. The entry with
// the old score is still in the tree.
type step struct {
	member   []byte
	old, now float64
	there    bool // it had the old score
	inserted bool // the tree has a new entry
}

// put gives a member a score. The entry that the tree has with its old score stays. After an error
// the set is as it was.
func (b *big) put(w *shape.Work, member []byte, score float64) (inserted bool, err error) {
	if _, inserted, err = b.tree.Insert(rankOf(score), member, nil); err != nil {
		return false, err
	}
	var room [scoreRoom]byte
	element := [2][]byte{member, appendScore(room[:0], score)}
	if err = b.table.Reserve(w, element[:], false); err == nil {
		_, err = b.table.Set(member, element[1], 0)
	}
	if err != nil && inserted {
		b.cut(member, score)
	}
	return inserted, err
}

// cut removes the tree's entry of a member.
func (b *big) cut(member []byte, score float64) {
	if position, found := b.tree.Find(rankOf(score), member); found {
		b.tree.Delete(position)
	}
}

// finish ends steps: it removes entries with old scores, and adds to the delta what has changed.
func (b *big) finish(w *shape.Work, steps []step) {
	for i := range steps {
		s := &steps[i]
		b.note(w, s.member, s.now)
		if !s.there {
			continue
		}
		if now, ok := b.score(s.member); ok && now != s.old {
			b.cut(s.member, s.old)
		}
	}
}

// undo takes steps back. It needs no memory: entries with old scores are still there, and blocks of
// the table have not become shorter.
func (b *big) undo(steps []step) {
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		if s.inserted {
			b.cut(s.member, s.now)
		}
		if !s.there {
			b.table.Delete(s.member)
			continue
		}
		var room [scoreRoom]byte
		if _, err := b.table.Set(s.member, appendScore(room[:0], s.old), 0); err != nil {
			panic("BUG: an old score does not fit: " + err.Error())
		}
	}
}

// remove removes a member, and adds that to the delta.
func (b *big) remove(w *shape.Work, member []byte) bool {
	score, ok := b.score(member)
	if ok {
		b.cut(member, score)
		b.table.Delete(member)
		b.table.NoteDelete(w, member)
	}
	return ok
}

// removeSpan removes some members that stand behind one another, and adds that to the delta.
func (b *big) removeSpan(w *shape.Work, from, n int) {
	left := n
	b.tree.Walk(from, func(x shape.Entry) bool {
		var number shape.Decimal
		member := x.First.Text(&number)
		b.table.NoteDelete(w, member)
		b.table.Delete(member)
		left--
		return left > 0
	})
	for n > 0 {
		n -= b.tree.DeleteSome(from, n)
	}
}
