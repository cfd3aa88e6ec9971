package sortedsets

import (
	"bytes"
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
)

// set gives a member a score; there: it stands at a spot. After an error the set is as it was.
func (b *big) set(member []byte, old shape.Spot, there bool, score float64) error {
	if there {
		return b.tree.Move(old, rankOf(score), member)
	}
	_, err := b.tree.Insert(rankOf(score), member, nil)
	return err
}

// step is a change of one member that has begun: the tree has its new score. The entry with the old
// score is still there.
type step struct {
	member   []byte
	ending   uint64 // of the member's name: few others have it
	old, now float64
	there    bool // it had the old score
	inserted bool // the tree has a new entry
}

// steps are the changes of one run of a command, in their order. All of them are made or none. A
// member may have several.
type steps []step

// last is the last step of a member, nil if it has none.
func (all steps) last(member []byte, ending uint64) *step {
	for i := len(all) - 1; i >= 0; i-- {
		if s := &all[i]; s.ending == ending && bytes.Equal(s.member, member) {
			return s
		}
	}
	return nil
}

// scoreIn is the score of a member as the steps so far have left it.
func (b *big) scoreIn(all steps, member []byte) (score float64, ok bool) {
	if s := all.last(member, endingOf(member)); s != nil {
		return s.now, true
	}
	return b.score(member)
}

func endingOf(member []byte) (ending uint64) {
	if n := len(member); n >= 8 {
		return binary.LittleEndian.Uint64(member[n-8:])
	}
	for _, c := range member {
		ending = ending<<8 | uint64(c)
	}
	return ending
}

// finish ends steps: it removes entries with old scores, and adds to the delta what has changed.
func (b *big) finish(w *shape.Work, all steps) {
	for i := range all {
		s := &all[i]
		b.note(w, s.member, s.now)
		if s.there && s.old != all.last(s.member, s.ending).now {
			b.tree.Cut(rankOf(s.old), s.member)
		}
	}
}

// undo takes steps back. Entries with old scores are still there, so it needs no memory.
func (b *big) undo(all steps) {
	for i := len(all) - 1; i >= 0; i-- {
		if s := &all[i]; s.inserted {
			b.tree.Cut(rankOf(s.now), s.member)
		}
	}
}

// remove removes a member, and adds that to the delta.
func (b *big) remove(w *shape.Work, member []byte) bool {
	s, ok := b.tree.Lookup(member)
	if ok {
		b.tree.CutAt(s)
		w.NoteDelete(b.v, member)
	}
	return ok
}

// removeSome removes up to n members that stand behind one another, in so many steps (see
// shape.Tree.DeleteRange), and adds that to the delta. It returns how many it has removed.
func (b *big) removeSome(w *shape.Work, from, n, steps int) (removed int) {
	if !b.v.Fed() {
		return b.tree.DeleteRange(from, n, steps, nil)
	}
	return b.tree.DeleteRange(from, n, steps, func(x shape.Entry) {
		var number shape.Decimal
		w.NoteDelete(b.v, x.First.Text(&number))
	})
}
