package hashes

import (
	"encoding/binary"
	"sync"

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
	Collection:  &collection,
	MaxEffect:   shape.MaxPacked + 1, // with the flags
	CheckRecord: checkRecord,
	Field:       fieldValue,
	Form:        engine.Form{Apply: apply, Dump: dump, Expire: expire},
	Level:       ring.CollectionsLevel,
}

// encoding returns what Redis would call a hash with these fields. It may have another one for a
// hash that was larger before.
func encoding(t engine.Txn, item engine.Item, limits exec.Encodings) string {
	longest, name := 0, "listpack"
	if v, big := t.Parts(item); big {
		table := tableOf(v, 0)
		if table.Expiring() > 0 {
			name = "listpackex"
		}
		if table.Len() > limits.HashEntries {
			return "hashtable"
		}
		for number, looked := 0, 0; number < v.Len(blocks) && looked < exec.EncodingLook; number++ {
			table.Each(number, func(e shape.Element) {
				longest = max(longest, e.Key.Len(), e.Value.Len())
				looked++
			})
		}
	} else {
		p := shape.ReadPacked(&shape.PackedHash, item.Value())
		if p.Len() > limits.HashEntries {
			return "hashtable"
		}
		p.Each(0, func(_ int, field, value shape.Item, _ int64) bool {
			longest = max(longest, field.Len(), value.Len())
			return true
		})
	}
	if longest > limits.HashValue {
		return "hashtable"
	}
	return name
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

func dump(v engine.Parts, from engine.Place, dst []byte, atMost int) (delta []byte, next engine.Place, done bool) {
	t := tableOf(v, 0)
	return t.Dump(from, dst, atMost)
}

// noteDue notes that a field expires at a time, if that is not 0.
func noteDue(v engine.Parts, at int64) {
	if at == 0 {
		return
	}
	if due := v.Due(); due == 0 || at < due {
		v.SetDue(at)
	}
	if own := walkOf(v); own.cursor() != 0 { // it may have passed the field
		own.set(own.cursor(), earlier(own.soonest(), at))
	}
}

func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// walk is the walk over a table that removes what has expired: where it goes on, and when the first
// field expires that it has passed.
type walk []byte

func walkOf(v engine.Parts) walk { return walk(v.Own()[walkCursor:ownSize]) }

func (w walk) cursor() uint64 { return binary.LittleEndian.Uint64(w) }
func (w walk) soonest() int64 { return int64(binary.LittleEndian.Uint64(w[walkSoonest-walkCursor:])) }

func (w walk) set(cursor uint64, soonest int64) {
	binary.LittleEndian.PutUint64(w, cursor)
	binary.LittleEndian.PutUint64(w[walkSoonest-walkCursor:], uint64(soonest))
}

// expireBlocks is from how many blocks the fields that have expired are removed at a time.
const expireBlocks = 32

// works are for expire, which belongs to no loop.
var works = sync.Pool{New: func() any { return new(shape.Work) }}

// expire removes fields that have expired, and goes on where the last call ended. When all blocks
// were visited, the hash is due when the next field expires.
func expire(v engine.Parts) {
	w := works.Get().(*shape.Work)
	defer works.Put(w)
	t := tableOf(v, v.Now())
	before, state := t.Len(), walkOf(v)
	next, first := t.Expire(state.cursor(), expireBlocks, func(e shape.Element) {
		var field shape.Decimal
		t.NoteDelete(w, e.Key.Text(&field))
	})
	if t.Len() < before {
		w.Note(v)
		v.AnnounceExpired(t.Len() == 0)
	}
	if t.Len() == 0 {
		v.SetDue(0)
		v.Delete()
		return
	}
	state = walkOf(v)
	soonest := earlier(state.soonest(), first)
	if next == 0 {
		v.SetDue(soonest)
		soonest = 0
	}
	state.set(next, soonest)
}
