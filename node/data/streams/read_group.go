package streams

import (
	"math"

	"github.com/dunlin-cache/dunlin/internal/keyevent"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// xReadGroup: XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK]
// STREAMS key... id...
func xReadGroup(r *exec.Request) { readStreams(r, true) }

// delivery is what a consumer gets of one stream. It may take several runs:
//
//	CLAIM     what is pending in the group and idle for long enough, in the order of the times of delivery
//	>         the entries behind the last ID of the group
//	an ID     what is pending for the consumer behind that
//
// Each run makes the text of some entries, and then notes that they are delivered, before any of it is sent.
type delivery struct {
	begun   bool
	left    int  // of COUNT
	history bool // the command has an ID
	from    ID   // of the pending entry with which the history goes on
	idle    idleScan

	n    int           // entries in part
	part exec.Gathered // what earlier runs have made
	open opened        // the last of them, if it is not made to its end
	due  []due         // of one run; the next one has its memory
}

// opened is an entry of which some strings are made.
type opened struct {
	id          ID
	at          spot // the zero spot: there is no such entry
	idle, count int64
}

// deliverer is one run of a delivery.
type deliverer struct {
	*delivery
	x     *readRun
	s     *stream
	g     *group
	k     consumer
	start int  // where its text begins in the slice
	news  int  // where that of its own entries begins, behind the rest of one that an earlier run has noted
	whole bool // the delivery ends with this run
}

// due is an entry of which there is text, and which is to be noted.
type due struct {
	p   pending
	how how
	end int // of the text
}

type how uint8

const (
	fresh   how = iota // it is delivered for the first time
	claimed            // it was pending
	again              // it was pending for the consumer
	missing            // it was pending for the consumer, and does not exist any more
)

// deliver serves XREADGROUP with the entries of the i-th key. done is false if it has to go on in another run.
func (x *readRun) deliver(t engine.Txn, key []byte, i int) (ok, done bool) {
	r := x.r
	s, ok := open(r, t, key)
	if !ok {
		return false, true
	}
	g, found := s.groupOf(x.q.group)
	switch {
	case !found && x.begun:
		r.Fail(exec.ErrGone)
		return false, true
	case !found:
		r.Fail(noGroupToRead(key, x.q.group))
		return false, true
	}
	x.steps -= deliverSteps
	if r.Leaves(t, engine.TypeStream, x.q.group, key) {
		return true, true
	}
	d := deliverer{delivery: &x.delivery, x: x, s: &s, g: &g, start: len(x.Bytes), news: len(x.Bytes), whole: true}
	d.begin(i)
	begun, err := len(r.Out), d.findConsumer()
	if err == nil && d.look() {
		if err = d.make(); err == nil {
			if ok = d.hasRoom(); ok {
				err = d.note()
			}
		}
	}
	if closed := s.close(); err == nil {
		err = closed
	}
	if err != nil {
		r.Undo(begun)
		r.ReplyValueError(err)
	}
	if !ok || err != nil {
		return false, true
	}
	d.keep()
	return true, d.whole
}

// begin begins the delivery, unless an earlier run has.
func (d *deliverer) begin(i int) {
	x := d.x
	if !d.begun {
		id, isID := parseID(x.q.ids[i], 0)
		d.history = isID && id != maxID // the greatest one counts as >, as in Redis
		d.from, _ = id.next()
		d.begun, d.left = true, x.q.count
	}
	d.due = d.due[:0]
	x.more = 0
	if x.q.minIdle != noIdle && !d.history {
		x.more = 2
	}
	if x.r.Woken {
		x.steps, x.slice.bytes = math.MaxInt, math.MaxInt
	}
}

// findConsumer finds the consumer, or makes it.
func (d *deliverer) findConsumer() (err error) {
	r, found := d.x.r, false
	if d.k, found = d.s.consumer(d.g, d.x.q.consumer); found {
		d.k.seen = r.Now
		return nil
	}
	d.x.steps -= deliverSteps
	if d.k, err = d.s.createConsumer(d.g, d.x.q.consumer, r.Now); err == nil {
		r.Notify(keyevent.Stream, "xgroup-createconsumer", d.s.key)
	}
	return err
}

// look finds out what is claimed. It reports false if this run has done enough.
func (d *deliverer) look() bool {
	x := d.x
	if d.history || x.q.minIdle == noIdle || d.idle.done {
		return true
	}
	if !d.idle.scan(&d.s.view, d.g, x.r.Now, x.q.minIdle, x.q.count, &x.looks) {
		if d.whole = x.r.Woken; !d.whole {
			return false
		}
		x.partly = true
	}
	x.note(&d.idle, x.q.minIdle)
	return true
}

// make makes the text of the next entries.
func (d *deliverer) make() (err error) {
	if d.open.at != (spot{}) {
		e, found := d.s.entry(d.open.id)
		if !found {
			return errGone
		}
		if d.whole = d.add(&e); !d.whole {
			return nil
		}
		d.news = len(d.x.Bytes)
	}
	switch {
	case d.history:
		d.makeHistory()
	case d.makeClaims():
		d.makeFresh()
	}
	return nil
}

// add makes the text of the entry that is open, and reports whether it is made to its end.
func (d *deliverer) add(e *entry) (whole bool) {
	x := d.x
	if whole = x.entry(d.open.id, e, &d.open.at); whole && x.more > 0 {
		x.int(d.open.idle)
		x.int(d.open.count)
	}
	return whole
}

// deliver makes the text of another entry. It reports whether the run goes on.
func (d *deliverer) deliver(e *entry, p pending, h how) (goesOn bool) {
	d.open = opened{id: p.id}
	if h == claimed {
		d.open.idle, d.open.count = max(d.x.r.Now-p.delivered, 0), int64(p.count)
	}
	d.whole = d.add(e)
	p.delivered = d.x.r.Now
	p.count++
	d.noted(p, h)
	return d.whole
}

func (d *deliverer) noted(p pending, h how) {
	d.left--
	d.due = append(d.due, due{p, h, len(d.x.Bytes)})
}

// hasEnough reports whether the run goes no further. A command that has waited has no other run.
func (d *deliverer) hasEnough() bool {
	x := d.x
	if x.r.Woken {
		return x.hasEnough(len(d.due))
	}
	d.whole = len(d.due) < deliveredAtOnce && !x.full()
	return !d.whole
}

// makeFresh makes the text of the entries behind the last ID of the group.
func (d *deliverer) makeFresh() {
	from, more := d.g.last.next()
	if !more {
		return
	}
	d.s.each(from, func(id ID, e entry) bool {
		return d.left > 0 && !d.hasEnough() && !d.isTooMuch(&e) && d.deliver(&e, pending{id: id}, fresh)
	})
}

// isTooMuch reports whether an entry takes more than the one run of a command that has waited.
func (d *deliverer) isTooMuch(e *entry) bool {
	too := d.x.r.Woken && e.isHuge()
	d.x.huge = d.x.huge || too
	return too
}

// makeHistory makes the text of what is pending for the consumer.
func (d *deliverer) makeHistory() {
	d.s.eachPending(d.g, &d.k, d.from, func(p pending) bool {
		if d.left == 0 || d.hasEnough() {
			return false
		}
		e, found := d.s.entry(p.id)
		next, more := p.id.next()
		if d.from = next; !more {
			d.left = 1 // this one
		}
		if found {
			return d.deliver(&e, p, again)
		}
		d.x.goneEntry(p.id, d.x.r.Version())
		d.noted(p, missing)
		return true
	})
}

// makeClaims makes the text of what is claimed, and reports whether the run goes on.
func (d *deliverer) makeClaims() bool {
	for c := &d.idle; c.next < len(c.found) && d.left > 0; {
		if d.hasEnough() {
			return false
		}
		id := c.found[c.next].id
		c.next++
		p, was := d.s.pending(d.g, id)
		e, there := d.s.entry(id)
		if was && there && (d.isTooMuch(&e) || !d.deliver(&e, p, claimed)) {
			return false
		}
	}
	return true
}

// hasRoom reports whether there is room for the text of the run, before anything is noted. Otherwise it answers the
// error, if nothing was delivered yet, or the delivery ends without it.
func (d *deliverer) hasRoom() bool {
	x := d.x
	r, size := x.r, len(x.Bytes)+len(d.s.key)+2*exec.LineRoom
	if d.whole && d.part.Empty() && x.made.Empty() {
		return r.Room(size)
	}
	piece, err := r.Heap.StageReply(min(size, engine.ReplyPiece))
	if err == nil {
		piece.Discard()
		return true
	}
	if d.n == 0 && x.answered == 0 {
		r.Fail(exec.ErrOOM)
		return false
	}
	if len(d.due) > 0 { // otherwise it is the rest of an entry, which is noted
		d.cut(0)
	}
	return true
}

// cut ends the delivery in front of an entry of this run, since there is no memory.
func (d *deliverer) cut(i int) {
	end := d.news
	if i > 0 {
		end = d.due[i-1].end
	}
	d.x.Truncate(end)
	d.due, d.whole, d.open = d.due[:i], true, opened{}
}

// note notes what was delivered. After an error nothing was.
func (d *deliverer) note() (err error) {
	if len(d.due) > 0 {
		d.x.steps -= deliverSteps
	}
	news, active := false, false
	var figures info
	length := d.s.len()
	for i := range d.due {
		u := &d.due[i]
		if u.how != missing && !(u.how == fresh && d.x.q.noAck) {
			if err = d.s.setPending(d.g, &d.k, u.p); err != nil {
				d.cut(i)
				break
			}
			active = active || u.how != again
		}
		if u.how == fresh {
			if !news {
				news, figures = true, d.s.info()
			}
			d.g.pass(u.p.id, figures, length)
		}
	}
	if d.n += len(d.due); d.n > 0 || d.x.answered > 0 {
		err = nil // what there is of them is answered
	}
	if news {
		err = d.s.setGroup(d.g)
	}
	if active {
		d.k.active = d.x.r.Now
	}
	if err == nil {
		err = d.s.setConsumer(d.g, &d.k)
	}
	return err
}

// pass notes that the group was given an entry behind its last ID, and that it has read one more, as far as that is
// known.
func (g *group) pass(id ID, figures info, length int) {
	if g.read != readUnknown && !g.last.less(figures.first) && !figures.deletedFrom(length, g.last) {
		g.read++
	} else if figures.added > 0 {
		g.read = figures.readUpTo(length, id)
	}
	g.last = id
}

// keep puts the text of the run where it belongs.
func (d *deliverer) keep() {
	x := d.x
	heap := x.r.Heap
	switch {
	case !d.whole:
		rest := x.Split(d.start)
		x.made.Text(heap, &x.Text)
		d.part.AppendText(heap, &rest)
		return
	case !d.part.Empty():
		d.part.AppendText(heap, &x.Text) // of which all is of this key
		x.made.Gathered(heap, x.headOf(d.s.key, d.n), &d.part)
		x.answered++
	case d.n > 0 || d.history:
		x.Insert(d.start, x.headOf(d.s.key, d.n))
		x.answered++
	}
	x.given += d.n
	x.delivery = delivery{due: d.due}
}
