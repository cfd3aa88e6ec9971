package streams

import "github.com/dunlin-cache/dunlin/internal/resp"

// fullInfo is the reply to XINFO STREAM FULL. It goes through these parts, those from partGroup on for each
// group, and the last two for each of its consumers.
type fullInfo struct {
	version resp.Version
	count   int // of entries and pending entries; 0: all
	fullPlace
}

// fullPlace is where it goes on.
type fullPlace struct {
	info     info // of the stream
	length   int  //
	part     int
	left     int // entries of the present part
	at       ID  // where it goes on among them
	within   spot
	group    []byte // the present group, or that before the next one
	consumer []byte // of that group
}

const (
	partFigures = iota
	partEntries
	partGroup
	partGroupPending
	partConsumer
	partConsumerPending
	partEnd
)

func (a *fullInfo) rewind() { a.fullPlace = fullPlace{} }

func (a *fullInfo) next(v *view, w *slice) (done bool) {
	for a.part != partEnd {
		if w.full() || !a.some(v, w) {
			return false
		}
	}
	return true
}

func (a *fullInfo) appendHead(dst []byte) []byte { return dst }

// begin begins a part of n entries, or count of them if those are fewer.
func (a *fullInfo) begin(w *slice, part, n int) {
	if a.count > 0 {
		n = min(n, a.count)
	}
	a.part, a.left, a.at = part, n, minID
	w.array(n)
}

// some appends what comes next of the present part. It reports false if the slice is full.
func (a *fullInfo) some(v *view, w *slice) (goesOn bool) {
	switch a.part {
	case partFigures:
		w.Bytes = resp.AppendMap(w.Bytes, a.version, 9)
		a.info, a.length = v.info(), v.len()
		w.figures(v, a.info)
		w.word("entries")
		a.begin(w, partEntries, a.length)
	case partEntries:
		if !a.entries(v, w) {
			return false
		}
		w.word("groups")
		w.array(v.groups())
		a.part = partGroup
	case partGroup:
		a.nextGroup(v, w)
	default:
		w.steps -= lookupSteps
		g, _ := v.group(a.group)
		return a.someOfGroup(v, w, &g)
	}
	return true
}

// someOfGroup is some for the parts of a group behind its figures.
func (a *fullInfo) someOfGroup(v *view, w *slice, g *group) (goesOn bool) {
	switch a.part {
	case partGroupPending:
		if !a.pending(v, w, g, nil) {
			return false
		}
		w.word("consumers")
		w.array(g.consumers)
		a.part, a.consumer = partConsumer, nil
	case partConsumer:
		a.nextConsumer(v, w, g)
	case partConsumerPending:
		w.steps -= lookupSteps
		c, _ := v.consumer(g, a.consumer)
		if !a.pending(v, w, g, &c) {
			return false
		}
		a.part = partConsumer
	}
	return true
}

func (a *fullInfo) entries(v *view, w *slice) (whole bool) {
	whole = true
	v.each(a.at, func(id ID, e entry) bool {
		if a.left == 0 {
			return false
		}
		if a.at = id; w.full() || !w.entry(id, &e, &a.within) {
			whole = false
			return false
		}
		a.left--
		return true
	})
	return whole
}

func (a *fullInfo) nextGroup(v *view, w *slice) {
	a.part = partEnd
	v.eachGroup(a.group, func(g *group) bool {
		w.steps -= groupSteps
		a.group = behindName(a.group, g.name)
		w.Bytes = resp.AppendMap(w.Bytes, a.version, 7)
		w.word("name")
		w.bulk(g.name)
		w.progress(a.info, a.length, g, a.version)
		w.word("pel-count")
		w.int(int64(g.pending))
		w.word("pending")
		a.begin(w, partGroupPending, g.pending)
		return false
	})
}

func (a *fullInfo) nextConsumer(v *view, w *slice, g *group) {
	a.part = partGroup
	v.eachConsumer(g, a.consumer, func(c *consumer) bool {
		w.steps -= groupSteps
		a.consumer = behindName(a.consumer, c.name)
		w.Bytes = resp.AppendMap(w.Bytes, a.version, 5)
		w.word("name")
		w.bulk(c.name)
		w.word("seen-time")
		w.int(c.seen)
		w.word("active-time")
		w.int(c.active)
		w.word("pel-count")
		w.int(int64(c.pending))
		w.word("pending")
		a.begin(w, partConsumerPending, c.pending)
		return false
	})
}

// pending appends what is pending in a group or, if c is not nil, for a consumer.
func (a *fullInfo) pending(v *view, w *slice, g *group, c *consumer) (whole bool) {
	whole = true
	names := namer{v: v, g: g}
	v.eachPending(g, c, a.at, func(p pending) bool {
		if a.left == 0 {
			return false
		}
		if a.at = p.id; w.full() {
			whole = false
			return false
		}
		w.steps -= pendingSteps
		a.left--
		if c == nil {
			w.array(4)
			w.id(p.id)
			w.bulk(names.of(p.consumer))
		} else {
			w.array(3)
			w.id(p.id)
		}
		w.int(p.delivered)
		w.int(int64(p.count))
		return true
	})
	return whole
}
