package streams

import (
	"bytes"
	"math"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// XREAD and XREADGROUP go over their keys twice, as Redis does: first all of them are checked, then each is served.
//
//	check k1, k2, k3   WRONGTYPE, NOGROUP, an ID that is none: nothing has happened
//	serve k1, k2, k3   entries ─▶ slice ─▶ segments (what does not fit into one run, or is yet to be made of pins)
//	answer             the number of keys that have something, and the segments
//
// XREAD reads what is long of one stream from a pin, without a lock. XREADGROUP goes on in runs,
// and holds the partition meanwhile: each entry is pending before it is answered.
//
// If no key has anything, the command waits (read_wait.go).

// xRead: XREAD [COUNT count] [BLOCK milliseconds] STREAMS key... id...
func xRead(r *exec.Request) { readStreams(r, false) }

// readRun is one run of an XREAD or XREADGROUP.
type readRun struct {
	r *exec.Request
	q readArgs
	slice
	reading
	looks  int           // steps of a scan for what is idle that are left
	partly bool          // what is pending was not looked at to its end
	huge   bool          // it was woken for an entry that takes more than one run
	given  int           // entries so far
	again  time.Duration // after so long there may be something to claim; 0: never
}

// reading is what a run leaves to the next one.
type reading struct {
	answered int // keys that have something
	made     exec.Segments
	delivery // of the key that comes next, of XREADGROUP
}

// End frees what was not answered.
func (x *reading) End() {
	x.made.End()
	x.part.End()
}

// readsAtOnce is how many keys are looked at in one run. A command that may wait has one run, so it
// names no more: with 256, of which each got a consumer, its lock took 1.3 ms.
const readsAtOnce = 64

// A command that has waited is served with so many entries, and about so many bytes, at most.
const wokenEntries, wokenBytes = 256, 64 << 10

// hugeStrings and hugeBytes are what no entry has that a command is served with under the lock of who has brought it.
const hugeStrings, hugeBytes = 4 << 10, 256 << 10

// isHuge reports whether an entry has very many strings, or bytes that are copied.
func (e *entry) isHuge() bool { return e.strings() > hugeStrings || len(e.coded) > hugeBytes }

func readStreams(r *exec.Request, grouped bool) {
	q, problem := parseRead(r.Args, grouped)
	if problem != "" {
		r.Fail(problem)
		return
	}
	if q.blocks && len(q.keys) > readsAtOnce {
		r.Fail(ErrReadAwaits)
		return
	}
	x := readRun{r: r, q: q, looks: scannedAtOnce}
	locks := r.LockKeys()
	defer locks.Release()
	if locks.AtOnce = readsAtOnce; q.blocks {
		locks.AtOnce = 2 * readsAtOnce // one run, whatever it counts beside the keys
	}
	if before, begun := locks.State.(*reading); begun {
		x.reading = *before
	}
	x.slice = newSlice(r)
	x.steps, x.slice.bytes = shortSteps, shortBytes
	x.run(&locks)
	r.Worker.KeepBody(x.Bytes)
}

// run checks and serves as many keys as one run may.
func (x *readRun) run(locks *exec.KeyLocks) {
	n := len(x.q.keys)
	var t engine.Txn
	for i := locks.First; i < 2*n; i++ {
		at, key, ok := locks.At(i)
		if !ok || i > locks.First && !x.mayGoOn() {
			if ok {
				locks.Hold()
			}
			x.stop(locks, i)
			return
		}
		t = at
		done := true
		switch {
		case i < n:
			ok = x.check(t, key, i)
		case x.q.grouped:
			ok, done = x.deliver(t, key, i-n)
		default:
			ok = x.read(t, key, i-n)
		}
		switch {
		case !ok:
			x.Drop()
			x.reading.End()
			return
		case !done:
			locks.Hold()
			x.stop(locks, i)
			return
		}
	}
	x.finish(locks, t)
}

// mayGoOn reports whether this run has done little enough for another key. A command that has
// waited, or is to wait, has one run, and what it does is bounded.
func (x *readRun) mayGoOn() bool {
	return x.r.Woken || x.q.blocks && x.answered == 0 || x.steps > shortSteps/2 && len(x.Bytes) < shortBytes/2
}

// stop has the command go on later from the i-th key.
func (x *readRun) stop(locks *exec.KeyLocks, i int) {
	if i > 0 {
		x.made.Text(x.r.Heap, &x.Text)
		state := x.reading
		locks.State = &state
	}
	locks.Stop(i, 0)
}

// finish answers, or waits.
func (x *readRun) finish(locks *exec.KeyLocks, t engine.Txn) {
	r := x.r
	switch {
	case x.answered == 0 && x.huge:
		r.Postponed = true
		return
	case x.answered == 0 && x.q.blocks:
		x.await(t)
		return
	case x.answered == 0:
		r.Out = resp.AppendNullArray(r.Out, r.Version())
		return
	}
	head := r.Worker.Number[:0]
	if r.Version() == resp.RESP2 {
		head = resp.AppendArray(head, x.answered)
	} else {
		head = resp.AppendMap(head, r.Version(), x.answered)
	}
	if x.made.Empty() {
		if r.Room(len(head)) {
			r.Out = append(r.Out, head...)
			r.ReplyText(&x.Text)
		} else {
			x.Drop()
		}
		return
	}
	x.made.Text(r.Heap, &x.Text)
	r.ReplySegments(bytes.Clone(head), &x.made)
}

// check looks whether the i-th key may be read. Otherwise it answers the error.
func (x *readRun) check(t engine.Txn, key []byte, i int) (ok bool) {
	r, id := x.r, x.q.ids[i]
	s, ok := read(r, t, key)
	if !ok {
		return false
	}
	if x.q.grouped {
		if _, found := s.groupOf(x.q.group); !found {
			r.Fail(noGroupToRead(key, x.q.group))
			return false
		}
	}
	problem := ""
	switch {
	case isAll(id, '$'):
		problem = x.q.notGrouped(ErrReadLast)
	case isAll(id, '+'):
		problem = x.q.notGrouped(ErrReadLatest)
	case isAll(id, '>'):
		problem = x.q.only(ErrReadNew)
	default:
		_, ok = idArg(r, id)
		return ok
	}
	if problem != "" {
		r.Fail(problem)
	}
	return problem == ""
}

// notGrouped returns a problem if the command is XREADGROUP.
func (q *readArgs) notGrouped(problem string) string {
	if q.grouped {
		return problem
	}
	return ""
}

// groupOf is group for a stream that may not be there.
func (s *stream) groupOf(name []byte) (g group, found bool) {
	if !s.found {
		return g, false
	}
	return s.group(name)
}

// behind returns the ID behind which the i-th key is read by XREAD. What $ and + mean depends on what the stream has.
func (q *readArgs) behind(v *view, i int) ID {
	switch arg := q.ids[i]; {
	case isAll(arg, '$') && v.found:
		return v.meta().last
	case isAll(arg, '+') && v.found && v.len() > 0:
		latest, _ := v.latest()
		latest, _ = latest.prev()
		return latest
	case isAll(arg, '$'), isAll(arg, '+'):
		return minID
	default:
		id, _ := parseID(arg, 0)
		return id
	}
}

// latest returns the ID of the last entry.
func (v *view) latest() (last ID, found bool) {
	if !v.found {
		return last, false
	}
	v.eachBack(maxID, func(id ID, _ entry) bool {
		last, found = id, true
		return false
	})
	return last, found
}

// read serves XREAD with the entries of a key.
func (x *readRun) read(t engine.Txn, key []byte, i int) (ok bool) {
	s, ok := open(x.r, t, key)
	if !ok {
		return false
	}
	behind := x.q.behind(&s.view, i)
	if latest, found := s.latest(); !found || !behind.less(latest) {
		return true
	}
	from, _ := behind.next()
	start, a := len(x.Bytes), rangeReply{rangeQuery: rangeQuery{from: from, to: maxID, count: x.q.count}}
	if x.r.Woken {
		if x.hasEnough(0) {
			return true
		}
		if a.count = x.woken(&s.view, from); a.count == 0 {
			x.huge = true
			return true
		}
		x.steps, x.slice.bytes = math.MaxInt, math.MaxInt
	}
	for a.rewind(); !a.next(&s.view, &x.slice); {
		v, big := s.parts()
		if big {
			x.Truncate(start)
			a.rewind()
			return x.pin(v, key, a)
		}
		x.steps, x.slice.bytes = shortSteps, len(x.Bytes)+shortBytes // a small one has little more
	}
	x.Insert(start, x.headOf(key, a.n))
	x.answered++
	x.given += a.n
	return true
}

// hasEnough reports whether a command that has waited gets no more, with some entries besides those of earlier keys.
func (x *readRun) hasEnough(entries int) bool {
	return x.given+entries >= wokenEntries || len(x.Bytes) >= wokenBytes
}

// woken returns how many of the next entries of a key a command that has waited is served with. 0: the first one is
// huge.
func (x *readRun) woken(v *view, from ID) (n int) {
	bytes, most := len(x.Bytes), min(x.q.count, wokenEntries-x.given)
	v.each(from, func(_ ID, e entry) bool {
		if e.isHuge() {
			return false
		}
		n++
		bytes += e.bytes() + e.strings()*exec.LineRoom/4
		return n < most && bytes < wokenBytes
	})
	return n
}

// pin has the entries of a key made from a pin.
func (x *readRun) pin(v engine.Parts, key []byte, a rangeReply) (ok bool) {
	r, version, name := x.r, x.r.Version(), bytes.Clone(key)
	if !x.made.Text(r.Heap, &x.Text) {
		r.Fail(exec.ErrOOM)
		return false
	}
	head := func() []byte { return appendReadHead(nil, version, name, a.n) }
	ok = x.made.Pinned(v, head, func(pin *engine.ValuePin, t *exec.Text) (done bool) {
		v, w := pinned(pin), slice{Text: *t, steps: sliceSteps, bytes: sliceBytes}
		done = a.next(&v, &w)
		*t = w.Text
		return done
	})
	if !ok {
		r.Fail(exec.ErrPinned)
	}
	x.answered++
	return ok
}

// headOf makes what stands in front of the entries of a key.
func (x *readRun) headOf(key []byte, n int) []byte {
	var room [64]byte
	return appendReadHead(room[:0], x.r.Version(), key, n)
}

func appendReadHead(dst []byte, version resp.Version, key []byte, n int) []byte {
	if version == resp.RESP2 {
		dst = resp.AppendArray(dst, 2)
	}
	return resp.AppendArray(resp.AppendBulk(dst, key), n)
}
