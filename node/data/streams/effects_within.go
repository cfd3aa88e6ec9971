package streams

import "github.com/dunlin-cache/dunlin/node/engine"

// The place of a snapshot: what a receiver has. The first word says in which stage the snapshot is, the others
// what came last:
//
//	first      nothing: the meta came, and no entry
//	entries    ID, and how many bytes of that entry came: 0 if all did
//	groups     number
//	consumers  group, number
//	pending    group, ID
const (
	stageMeta = iota
	stageFirst
	stageEntries
	stageGroups
	stageConsumers
	stagePending
)

// place is an engine.Place.
type place struct {
	stage  int
	group  uint32
	number uint32 // of a consumer
	id     ID
	bytes  int // of the entry
}

func readPlace(p engine.Place) (x place) {
	switch x.stage = int(p[0]); x.stage {
	case stageEntries:
		x.id, x.bytes = ID{p[1], p[2]}, int(p[3])
	case stageGroups, stageConsumers:
		x.group, x.number = uint32(p[1]), uint32(p[2])
	case stagePending:
		x.group, x.id = uint32(p[1]), ID{p[2], p[3]}
	}
	return x
}

func (x *place) place() engine.Place {
	switch x.stage {
	case stageEntries:
		return engine.Place{uint64(x.stage), x.id.Ms, x.id.Seq, uint64(x.bytes)}
	case stageGroups, stageConsumers:
		return engine.Place{uint64(x.stage), uint64(x.group), uint64(x.number)}
	case stagePending:
		return engine.Place{uint64(x.stage), uint64(x.group), x.id.Ms, x.id.Seq}
	}
	return engine.Place{uint64(x.stage)}
}

// within appends the words of a delta that concern what a receiver has in the middle of a snapshot.
func within(_ engine.Parts, delta []byte, from engine.Place, dst []byte) (_ []byte, next engine.Place) {
	x := readPlace(from)
	var w word
	for len(delta) > 0 {
		rest, err := nextWord(&w, delta)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		if x.has(&w) {
			dst = append(dst, delta[:len(delta)-len(rest)]...)
		}
		delta = rest
	}
	return dst, x.place()
}

// has reports whether a word concerns what a receiver has. If the entry that it has in part goes, or comes
// anew, the snapshot goes on behind it.
func (x *place) has(w *word) bool {
	switch w.op {
	case opMeta:
		return x.stage > stageMeta
	case opAdd, opStub, opDelete, opTrim:
		return x.hasEntry(w)
	case opFill:
		return x.stage > stageEntries || x.stage == stageEntries && !x.id.less(w.id)
	case opGroup, opDestroy:
		return x.stage > stageGroups || x.stage == stageGroups && w.group <= x.group
	case opConsumer, opUnconsumer:
		return x.stage > stageConsumers ||
			x.stage == stageConsumers && (w.group < x.group || w.group == x.group && w.name <= x.number)
	case opPending, opAck:
		return x.stage == stagePending && (w.group < x.group || w.group == x.group && !x.id.less(w.id))
	}
	return x.stage >= stageGroups // opSweep
}

func (x *place) hasEntry(w *word) bool {
	if x.stage != stageEntries {
		return x.stage > stageEntries
	}
	if w.op == opTrim && x.id.less(w.id) {
		x.bytes = 0
		return true
	}
	if x.id.less(w.id) {
		return false
	}
	if w.id == x.id {
		x.bytes = 0
	}
	return true
}
