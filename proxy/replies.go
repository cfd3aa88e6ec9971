package proxy

const (
	minTurns  = 16
	maxEarly  = 64 << 20 // a session that has more bytes of early replies is closed by the next one
	keepEarly = 64 << 10 // an empty early buffer larger than this is given back
)

// Each reply of a session has a turn, from the moment its command is issued. Replies are delivered
// in the order of their turns.

// turn is the place of one command's reply among the replies of its session.
type turn struct {
	off, size uint32 // in early
	ready     bool
	muted     bool // the client has switched the reply off
}

// issue gives the current command its number, and its reply a turn.
func (s *client) issue() {
	if int(s.tail-s.head) == len(s.turns) {
		s.growTurns()
	}
	s.turns[s.tail&uint64(len(s.turns)-1)] = turn{muted: s.muting}
	s.tail++
}

func (s *client) growTurns() {
	turns := make([]turn, max(minTurns, 2*len(s.turns)))
	for n := s.head; n < s.tail; n++ {
		turns[n&uint64(len(turns)-1)] = s.turns[n&uint64(len(s.turns)-1)]
	}
	s.turns = turns
}

// answer issues the current command and gives it a reply, which is delivered in its turn. reply is
// copied.
func (s *client) answer(reply []byte) {
	s.issue()
	s.reply(s.tail-1, reply)
}

// reply delivers the reply to command seq, or keeps it until its turn. reply is copied.
func (s *client) reply(seq uint64, reply []byte) {
	if s.mutes {
		if s.isClosed() || s.hasLeft(seq) {
			s.giveBack(seq, reply)
			return
		}
		if c := s.claims; c != nil && c.seq == seq {
			var goesOn bool
			if reply, goesOn = c.popped(reply); goesOn {
				return
			}
		}
		if s.selecting && s.selection.seq == seq {
			s.selected(isExecuted(reply))
		}
		reply = s.unblocked(seq, reply)
		if s.isMuted(seq) {
			reply = nil
		}
	}
	s.replied(seq)
	s.replySize = max(len(reply), s.replySize-s.replySize/8)
	s.state.LastUsed = s.w.loop.Now()
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
	if s.topics != nil {
		s.pushHeld()
	}
	if s.tracker != nil {
		s.tellBehind()
	}
	if s.redirected != nil {
		s.showRedirected()
	}
	s.progress()
}

// passed ends the turn of the oldest command, whose reply is in the output piece by piece.
func (s *client) passed() {
	s.state.LastUsed = s.w.loop.Now()
	s.head++
	s.conn.SetOut(s.appendReady(s.conn.Out()))
	s.fetchNext()
	if s.topics != nil {
		s.pushHeld()
	}
	if s.tracker != nil {
		s.tellBehind()
	}
	if s.redirected != nil {
		s.showRedirected()
	}
	s.progress()
}

// progress resumes or closes the session, if a reply or the end of a parked request now allows it.
func (s *client) progress() {
	if s.input == stalled && s.mayContinue() {
		s.resume()
	}
	if s.long != nil {
		s.long.goOn()
	}
	if s.head == s.tail && (s.phase == closing || s.phase == ended && s.input == flowing) {
		s.conn.CloseAfterFlush()
	}
}

// appendReady appends the early replies whose turn has come.
func (s *client) appendReady(out []byte) []byte {
	for s.head < s.tail {
		t := &s.turns[s.head&uint64(len(s.turns)-1)]
		if !t.ready {
			break
		}
		var ok bool
		if out, ok = s.conn.Grow(out, int(t.size)); !ok {
			return out // no memory for it: the session is closed
		}
		out = append(out, s.early[t.off:t.off+t.size]...)
		s.earlyLive -= int(t.size)
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

// gatherFor is gather for a reply to a part of command seq. It reports false if the session is
// closed.
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
	t := &s.turns[seq&uint64(len(s.turns)-1)]
	*t = turn{off: uint32(len(s.early)), size: uint32(len(reply)), ready: true}
	s.early = append(s.early, reply...)
	s.earlyLive += len(reply)
	s.chargeOther()
}

// compactEarly moves the early replies together when most of the buffer was delivered.
func (s *client) compactEarly() {
	fresh := make([]byte, 0, cap(s.early))
	for n := s.head; n < s.tail; n++ {
		if t := &s.turns[n&uint64(len(s.turns)-1)]; t.ready {
			at := uint32(len(fresh))
			fresh = append(fresh, s.early[t.off:t.off+t.size]...)
			t.off = at
		}
	}
	s.early = fresh
}
