package streams

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// A group that was destroyed leaves its consumers and what was pending. These keys of the ordered map go in
// slices: the stream is due, and each call of expire removes some.

// sweepLeaves is how many leaves of the ordered map one call frees at most: about 0.05 ms. sweepKeys is how
// many keys they have, at most about.
const (
	sweepLeaves = 16
	sweepKeys   = 4096
)

// gone is a group that was destroyed and has keys, 0 if there is none.
func (b *big) gone() uint32 { return binary.LittleEndian.Uint32(b.own()[ownGone:]) }

// expire removes some keys of a group that was destroyed.
func expire(v engine.Parts) {
	b := big{v: v}
	group := b.gone()
	if group == 0 {
		v.SetDue(0)
		return
	}
	var note [32]byte
	for _, kind := range sweptKinds {
		if n := b.sweepKind(kind, group, sweepKeys, sweepLeaves); n > 0 {
			b.noteSweep(appendSweep(note[:0], group, kind, n))
			return
		}
	}
	b.sweepAll(group)
	b.noteSweep(appendSweep(note[:0], group, keyGroup, 1))
}

func (b *big) noteSweep(delta []byte) {
	if b.v.Fed() {
		b.v.NoteUnseen(delta)
	}
}

// sweptKinds are the kinds of keys that a group leaves.
var sweptKinds = [...]byte{keyOf, keyConsumer, keyPending, keyOwed}

// sweepKind removes up to so many keys of a kind that a group has left, from so many leaves at most. It
// returns how many.
func (b *big) sweepKind(kind byte, group uint32, keys, leaves int) (removed int) {
	m := b.keys()
	var first mapKey
	var last nameKey // no key of the group is above it, and none of the next group is not: a name may be empty
	for i := copy(last[:], first.of(kind, group)); i < len(last); i++ {
		last[i] = 0xff
	}
	removed, _ = m.DeleteRange(first.of(kind, group), last[:], keys, leaves)
	return removed
}

// sweepAll removes what is left of a group that is gone, and takes it off the list of those.
func (b *big) sweepAll(group uint32) {
	for _, kind := range sweptKinds {
		for b.sweepKind(kind, group, sweepKeys, sweepLeaves) > 0 {
		}
	}
	m := b.keys()
	var key mapKey
	of := key.of(keyGroup, group)
	next := b.groupRecord(group).next()
	m.Delete(of)
	at := b.gone()
	if at == group {
		binary.LittleEndian.PutUint32(b.v.Own()[ownGone:], next)
	}
	for at != group && at != 0 {
		r := b.groupRecord(at)
		if at = r.next(); at == group {
			r.setNext(next)
		}
	}
	if b.gone() == 0 {
		b.v.SetDue(0)
	}
}
