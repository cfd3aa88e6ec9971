package proxy

const (
	minSlots  = 16
	maxEarly  = 64 << 20 // with more early replies than this, one more closes the session
	keepEarly = 64 << 10 // an empty early buffer larger than this is given back
)

// The replies of a session: each has a slot from the moment its command is issued, and is delivered in its turn.

// slot is the place of one command's reply.
type slot struct {
	off, size uint32 // in early
	ready     bool
	muted     bool // the client does not want it
}

// issue gives the command at hand its number.
func (s *client) issue() {
	if int(s.tail-s.head) == len(s.slots) {
		s.growSlots()
	}
	s.slots[s.tail&uint64(len(s.slots)-1)] = slot{muted: s.muting}
	s.tail++
}

func (s *client) growSlots() {
	slots := make([]slot, max(minSlots, 2*len(s.slots)))
	for n := s.head; n < s.tail; n++ {
		slots[n&uint64(len(slots)-1)] = s.slots[n&uint64(len(s.slots)-1)]
	}
	s.slots = slots
}

// answer gives the command at hand a reply at once; it is delivered in its turn. reply is copied.
func (s *client) answer(reply []byte) {
	s.issue()
	s.reply(s.tail-1, reply)
}

// deliver is the reply of one outstanding request that is a whole command.
func (s *client) deliver(seq uint64, reply []byte) {
	s.remote--
	s.reply(seq, reply)
}

// reply delivers the reply to command seq, or keeps it until its turn. reply is copied.
func (s *client) reply(seq uint64, reply []byte) {
	if s.mutes {
		if s.closed {
			return
		}
		if s.isMuted(seq) {
			reply = nil
		}
	}
	s.replied(seq)
	s.replySize = max(len(reply), s.replySize-s.replySize/8)
	s.state.LastMilli = s.w.loop.UnixMilli()
	if seq == s.head {
		out, ok := s.conn.Grow(s.conn.Out(), len(reply))
		if !ok {
			return // no memory for it: the session is closed
		}
		out = append(out, reply...)
		s.head++
		if s.head < s.tail {
			out = s.appendReady(out)
		}
		s.conn.SetOut(out)
		if len(s.fetches) > 0 {
			s.fetchNext()
		}
	} else {
		s.storeEarly(seq, reply)
	}
	s.progress()
}

// progress does what becomes possible when a reply has come or a held request is gone.
func (s *client) progress() {
	if s.stalled && s.mayContinue() {
		s.resume()
	}
	if (s.closing || s.ended && !s.stalled && !s.behind) && s.head == s.tail {
		s.conn.CloseAfterFlush()
	}
}

// appendReady appends the early replies whose turn has come.
func (s *client) appendReady(out []byte) []byte {
	for s.head < s.tail {
		sl := &s.slots[s.head&uint64(len(s.slots)-1)]
		if !sl.ready {
			break
		}
		var ok bool
		if out, ok = s.conn.Grow(out, int(sl.size)); !ok {
			return out // no memory for it: the session is closed
		}
		out = append(out, s.early[sl.off:sl.off+sl.size]...)
		s.earlyLive -= int(sl.size)
		s.head++
	}
	if s.earlyLive == 0 {
		s.early = s.early[:0]
		if cap(s.early) > keepEarly {
			s.early = nil
			s.chargeOther()
		}
	}
	return out
}

// gatherFor is gather for a command's part. False: the session is closed.
func (s *client) gatherFor(seq uint64, n int) bool {
	if n > 0 && seq != s.head && s.earlyLive+s.gathered > maxEarly {
		s.conn.Close(errTooEarly)
		return false
	}
	return s.gather(n)
}

func (s *client) storeEarly(seq uint64, reply []byte) {
	if s.earlyLive+s.gathered > maxEarly {
		s.conn.Close(errTooEarly)
		return
	}
	if len(s.early)+len(reply) > cap(s.early) && s.earlyLive < len(s.early)/2 {
		s.compactEarly()
	}
	sl := &s.slots[seq&uint64(len(s.slots)-1)]
	*sl = slot{off: uint32(len(s.early)), size: uint32(len(reply)), ready: true}
	s.early = append(s.early, reply...)
	s.earlyLive += len(reply)
	s.chargeOther()
}

// compactEarly moves the early replies together when most of the buffer was delivered.
func (s *client) compactEarly() {
	fresh := make([]byte, 0, cap(s.early))
	for n := s.head; n < s.tail; n++ {
		if sl := &s.slots[n&uint64(len(s.slots)-1)]; sl.ready {
			at := uint32(len(fresh))
			fresh = append(fresh, s.early[sl.off:sl.off+sl.size]...)
			sl.off = at
		}
	}
	s.early = fresh
}
