package proxy

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/internal/session"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// watching is a WATCH in flight. One of many keys goes in pieces, one in each turn of the loop, as
// if the client had sent a WATCH for each: nobody can tell that the versions are not of one moment.
type watching struct {
	longRequest
	slot    uint16 // of all keys
	at      uint8  // their database
	left    int    // keys that are not sent
	keyed   bool   // one was sent: slot means something
	flying  int    // pieces without a reply
	failed  []byte // the first error
	refused bool   // it names no keys of one slot: nothing is watched

	watched []session.Encoded // by the pieces that have their replies
	size    int               // of what they keep, charged to the session
}

// watchPiece is a part of a WATCH, of at most maxKeys keys.
type watchPiece struct {
	w    *watching
	keys int
	raw  []byte // the request to the node, charged to the session until the reply has come
}

// watch starts WATCH. It reports false if the command must wait.
func (s *client) watch(args [][]byte, raw []byte) bool {
	if s.watching {
		return false
	}
	if text := s.state.RefuseWatch(args[1:]); text != "" {
		s.answer(resp.AppendError(s.w.scratch[:0], text))
		return true
	}
	w := &watching{left: len(args) - 1, at: s.state.Database}
	var ok bool
	if w.longRequest, ok = s.newLongRequest(command.ByID(command.Watch), args, raw); !ok {
		return true
	}
	s.w.stats.Commands[command.Watch]++
	s.watching = true
	s.issue()
	s.long = w
	if w.left <= maxKeys {
		w.turn()
	}
	w.goOn()
	return true
}

func (w *watching) goOn() {
	s := w.s
	if w.queued || s.long != w || s.waitsFor != nil || w.flying == maxFlying || !s.enterLane(w.lane()) {
		return
	}
	w.queued = true
	s.w.turns.take(s.w.loop, w)
}

func (w *watching) lane() order.Lane { return w.s.laneFor(min(len(w.raw), order.HugeRequest), false) }

// turn sends the next piece, if it can be sent now.
func (w *watching) turn() {
	s := w.s
	if w.queued = false; s.long != w || !s.enterLane(w.lane()) {
		return
	}
	keys, end := w.cut()
	if w.refused {
		w.fail(s.crossSlot())
		return
	}
	size := headerRoom + end - w.next
	if size > order.HugeRequest && !s.enterLane(s.laneFor(size, false)) {
		return
	}
	if owner := s.w.order.Owner(ring.Partition(w.slot)); owner != nil && owner.Pipe(s.Lane()).IsFull(size) {
		s.waitFor(owner.Pipe(s.Lane()))
		return
	}
	if !s.Keep(size) {
		w.fail(errNotParked)
		return
	}
	p := &watchPiece{w: w, keys: keys}
	p.raw = append(member.AppendVerb(make([]byte, 0, size), member.VerbWatch, keys), w.raw[w.next:end]...)
	r := order.Request{Session: &s.Session, Part: p, Seq: w.seq, Origin: s.origin(ring.Partition(w.slot))}
	if !s.submit(r, p.raw) {
		panic("BUG: a pipe that was not full takes no WATCH")
	}
	w.flying++
	w.next = end
	if w.left -= keys; w.left == 0 {
		w.end()
	}
	s.w.act()
	w.goOn()
	s.progress()
}

// cut finds the keys of the next piece, and where they end.
func (w *watching) cut() (keys, end int) {
	s := w.s
	end = w.next
	for range min(w.left, maxKeys) {
		key, next := resp.DecodeArgument(w.raw, end)
		if keys > 0 && next-w.next > chunkBytes {
			break
		}
		slot := s.slotOf(key)
		if w.keyed && slot != w.slot {
			w.refused = true
			break
		}
		w.slot, w.keyed = slot, true
		keys, end = keys+1, next
	}
	return keys, end
}

// fail sends no more.
func (w *watching) fail(reply []byte) {
	if w.failed == nil {
		w.failed = bytes.Clone(reply)
	}
	w.end()
	w.finish()
}

func (w *watching) take([]byte) order.Body { return nil } // what it submits is made for that

func (w *watching) end() {
	w.s.long, w.left = nil, 0
	w.drop()
}

// Done receives the versions of the keys of a piece.
func (p *watchPiece) Done(_ int32, reply []byte) {
	w, s := p.w, p.w.s
	if s.isClosed() {
		return
	}
	e, ok := session.Encoded{Slot: w.slot, Keys: p.keys}, false
	if size := len(p.raw) + len(reply); s.Keep(size) {
		e.Text, ok = p.encode(reply)
		w.size += size
	} else {
		reply = errNotParked
	}
	if !ok {
		// The client may have sent EXEC already, which must not be executed as if nothing were
		// watched. So without versions a key gets one that no key ever has.
		_, at := resp.DecodeArgument(p.raw, bytes.IndexByte(p.raw, '\n')+1)
		_, at = resp.DecodeArgument(p.raw, at)
		key, _ := resp.DecodeArgument(p.raw, at)
		e.Keys, e.Text = 1, member.AppendWatched(nil, 0, key, nil)
		if !resp.IsError(reply) {
			reply = errMerge
		}
		if w.failed == nil {
			w.failed = bytes.Clone(reply)
		}
	}
	s.Keep(-cap(p.raw))
	p.raw = nil
	w.watched = append(w.watched, e)
	w.flying--
	w.finish()
	w.goOn()
	s.progress()
}

// finish answers WATCH when all pieces have their replies.
func (w *watching) finish() {
	s := w.s
	if w.flying > 0 || w.left > 0 {
		return
	}
	s.kept -= w.size
	for _, e := range w.watched {
		if !w.refused {
			s.state.WatchEncoded(e)
		}
	}
	w.watched = nil
	s.watching = false
	s.chargeOther()
	reply := w.failed
	if reply == nil {
		reply = []byte("+OK\r\n")
	}
	s.reply(w.seq, reply)
}

// encode returns the keys with their versions, as EXEC takes them. It reports false if reply is not
// an array of one version for each key.
func (p *watchPiece) encode(reply []byte) (text []byte, ok bool) {
	at := bytes.IndexByte(p.raw, '\n') + 1
	for range 2 { // the verb
		_, at = resp.DecodeArgument(p.raw, at)
	}
	n, header, ok := resp.DecodeArray(reply)
	if !ok || n != p.keys {
		return nil, false
	}
	rest := reply[header:]
	size := len(p.raw) - at + len(rest)
	if p.w.at > 0 {
		size += n * (member.DatabaseRoom + 1) // a longer version may have a longer header
	}
	text = make([]byte, 0, size)
	var scan resp.Scanner
	for range n {
		if scan.Scan(rest) != resp.Done {
			return nil, false
		}
		version, ok := resp.DecodeBulk(rest[:scan.Len()])
		if !ok {
			return nil, false
		}
		rest = rest[scan.Len():]
		var key []byte
		key, at = resp.DecodeArgument(p.raw, at)
		text = member.AppendWatched(text, p.w.at, key, version)
	}
	return text, true
}
