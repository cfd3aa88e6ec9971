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

// watching is a WATCH in flight.
type watching struct {
	s    *client
	seq  uint64
	slot uint16 // of all keys
	keys int
	raw  []byte // the request to the node, charged to the session until the reply has come
}

// watch starts WATCH. It reports false if the command must wait.
func (s *client) watch(args [][]byte) bool {
	if s.watching {
		return false
	}
	if text := s.state.RefuseWatch(args[1:]); text != "" {
		s.answer(resp.AppendError(s.w.scratch[:0], text))
		return true
	}
	slot, same := s.slotOf(command.ByID(command.Watch), args)
	if !same {
		s.answer(errCrossSlot)
		return true
	}
	size := headerRoom
	for _, key := range args[1:] {
		size += bulkRoom + len(key)
	}
	lane := s.laneFor(size, false)
	if !s.enterLane(lane) {
		return false
	}
	if owner := s.w.order.Owner(ring.Partition(slot)); owner != nil && owner.Pipe(lane).IsFull(size) {
		s.waitFor(owner.Pipe(lane)) // before the request is made
		return false
	}
	if !s.Keep(size) {
		s.answer(errNotParked)
		return true
	}
	raw := member.AppendRequest(make([]byte, 0, size), member.VerbWatch, args[1:]...)
	w := &watching{s: s, seq: s.tail, slot: slot, keys: len(args) - 1, raw: raw}
	r := order.Request{Session: &s.Session, Part: w, Seq: s.tail, Origin: order.Origin{Partition: ring.Partition(slot)}}
	if !s.submit(r, raw) {
		s.Keep(-size)
		return false
	}
	s.w.stats.Commands[command.Watch]++
	s.watching = true
	s.issue()
	s.w.act()
	return true
}

// Done receives the versions of the keys.
func (w *watching) Done(_ int32, reply []byte) {
	s := w.s
	s.watching = false
	s.Keep(-cap(w.raw))
	watched, ok := w.watched(reply)
	// The client may have sent EXEC already, which must not be executed as if nothing were watched. So
	// without versions the keys get one that no key ever has.
	s.state.WatchOwn(watched)
	switch {
	case ok:
		s.chargeOther()
		reply = []byte("+OK\r\n")
	case !resp.IsError(reply):
		reply = errMerge
	}
	s.reply(w.seq, reply)
}

// watched returns the keys with their versions. It reports false, and leaves out all versions, if reply is
// not an array of one for each key. There may be 60,000 of them, so they lie in two pieces.
func (w *watching) watched(reply []byte) (all []session.Watched, ok bool) {
	all = make([]session.Watched, w.keys)
	at := bytes.IndexByte(w.raw, '\n') + 1
	for range 2 { // the verb
		_, at = resp.DecodeArgument(w.raw, at)
	}
	for i := range all {
		all[i].Slot = w.slot
		all[i].Key, at = resp.DecodeArgument(w.raw, at)
	}
	reply = bytes.Clone(reply)
	n, header, ok := resp.DecodeArray(reply)
	rest := reply[header:]
	var scan resp.Scanner
	for i := 0; ok && n == w.keys && i < n; i++ {
		if ok = scan.Scan(rest) == resp.Done; ok {
			all[i].Version, ok = resp.DecodeBulk(rest[:scan.Len()])
			rest = rest[scan.Len():]
		}
	}
	if ok = ok && n == w.keys; !ok {
		for i := range all {
			all[i].Version = nil
		}
	}
	return all, ok
}
