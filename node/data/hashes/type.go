package hashes

import (
	"encoding/binary"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// hashType is the type of hashes.
var hashType = exec.Type{
	ID:          engine.TypeHash,
	Name:        "hash",
	Encoding:    encoding,
	Footprint:   engine.Txn.Footprint,
	Restores:    func(byte) bool { return false },
	MaxEffect:   shape.MaxPacked,
	CheckRecord: checkRecord,
	Form:        engine.Form{Apply: apply, Dump: dump, Expire: expire},
	Level:       ring.CollectionsLevel,
}

// encoding returns what Redis would call such a value.
func encoding(item engine.Item) string {
	if item.HasParts() {
		return "hashtable"
	}
	return "listpack"
}

// A packed hash has no fields that expire: one that has any is a value with parts, whose base the
// engine shifts between the clocks of nodes.
func checkRecord(value []byte) error {
	if err := shape.CheckPacked(&shape.PackedHash, value); err != nil {
		return err
	}
	if shape.ReadPacked(&shape.PackedHash, value).Timed() {
		return shape.ErrMalformed
	}
	return nil
}

// The planes and the own bytes of a hash with parts.
//
//	table's own bytes │ cursor │ soonest
//	      24              8        8        of the walk that removes what has expired
const (
	blocks = iota
	away

	walkCursor  = shape.TableOwn
	walkSoonest = walkCursor + 8
	ownSize     = walkSoonest + 8
)

// tableOf is the table of a hash with parts.
func tableOf(v engine.Parts, now int64) shape.Table {
	return shape.Table{V: v, Blocks: blocks, Away: away, Items: 2, Now: now}
}

func apply(v engine.Parts, delta []byte) error {
	t := tableOf(v, 0)
	soonest, err := t.Apply(delta)
	noteDue(v, soonest)
	return err
}

func dump(v engine.Parts, from uint64, dst []byte, atMost int) (delta []byte, next uint64, done bool) {
	t := tableOf(v, 0)
	return t.Dump(from, dst, atMost)
}

// noteDue notes that a field expires at a time, if that is not 0.
func noteDue(v engine.Parts, at int64) {
	if due := v.Due(); at != 0 && (due == 0 || at < due) {
		v.SetDue(at)
	}
}

// expireBlocks is from how many blocks the fields that have expired are removed under one lock.
const expireBlocks = 64

// expire removes fields that have expired, and goes on where the last call ended. When all blocks were
// visited, the hash is due when the next field expires.
func expire(v engine.Parts) {
	var w shape.Work
	expireSome(v, v.Now(), &w)
}

// expireSome is expire. It reports whether the hash is gone.
func expireSome(v engine.Parts, now int64, w *shape.Work) (gone bool) {
	t := tableOf(v, now)
	before := t.Len()
	own := v.Own()
	cursor, soonest := binary.LittleEndian.Uint64(own[walkCursor:]), int64(binary.LittleEndian.Uint64(own[walkSoonest:]))
	next, first := t.Expire(cursor, expireBlocks, func(e shape.Element) {
		var field shape.Decimal
		t.NoteDelete(w, e.Key.Text(&field))
	})
	if soonest == 0 || first != 0 && first < soonest {
		soonest = first
	}
	if t.Len() < before {
		w.Note(v)
	}
	if t.Len() == 0 {
		v.Delete()
		return true
	}
	if next == 0 {
		v.SetDue(soonest)
		soonest = 0
	}
	own = v.Own()
	binary.LittleEndian.PutUint64(own[walkCursor:], next)
	binary.LittleEndian.PutUint64(own[walkSoonest:], uint64(soonest))
	return false
}
