package netloop

// A reply may be too large to be copied into an output buffer. An insert then marks its place in
// the output: the bytes stay with their owner, and are sent from there.
//
//	out      ...$600000 CRLF │ CRLF +OK CRLF ...
//	inserts                  └ 600000 bytes, at 12 of out

// Releaser owns the bytes of an insert.
type Releaser interface {
	// Release is called once, on the conn's loop, when the bytes are sent or never will be.
	Release()
}

// insert is output that lies outside of the conn's buffer.
type insert struct {
	at    int    // precedes out[at:]
	rest  []byte // its unsent bytes
	owner Releaser
	// start and end are where the reply lies in out of which this is the only insert. end 0: it is
	// not known.
	start, end int
}

const (
	// maxTurn is the most that a conn sends of its inserts in one iteration, in bytes: some 60 µs.
	// If several conns send inserts, each sends less, so that together they delay the loop for
	// turnShare, unless each would then get less than minTurn.
	maxTurn   = 128 << 10
	turnShare = 256 << 10
	minTurn   = 16 << 10
)

// turn returns the bytes that each of n conns may move in one iteration when all of them move much.
func turn(n int) int { return min(max(turnShare/n, minTurn), maxTurn) }

// Insert sends b before the byte at position at of the output buffer, and behind everything
// inserted before. at must not be below the position of an earlier insert. b must not change until
// Release of its owner is called. Unlike copied output, b does not count towards Config.HardOut.
// Flushers must not insert.
func (c *Conn) Insert(at int, b []byte, owner Releaser) {
	if c.flusher != nil {
		panic("BUG: a Flusher inserts output")
	}
	if c.closed || len(b) == 0 {
		owner.Release()
		return
	}
	if len(c.inserts) == 0 {
		c.loop.inserting++
	}
	c.inserts = append(c.inserts, insert{at: at, rest: b, owner: owner})
	c.inserted += len(b)
	c.MarkDirty()
}

// IsReply notes that the insert made last is all of a reply but for what stands in the output
// buffer from start to end. See GiveUpReplies.
func (c *Conn) IsReply(start, end int) {
	if n := len(c.inserts); n > 0 {
		c.inserts[n-1].start, c.inserts[n-1].end = start, end
	}
}

// GiveUpReplies sends line instead of each reply with an insert, if nothing of these replies was
// sent. Otherwise it does nothing and reports false.
func (c *Conn) GiveUpReplies(line string) bool {
	if c.closed {
		return false
	}
	for i := range c.inserts {
		if in := &c.inserts[i]; in.end == 0 || in.start < c.outOff {
			return false
		}
	}
	if len(c.inserts) == 0 {
		return true
	}
	first := c.inserts[0].start
	rest, from := make([]byte, 0, len(c.out)-first+len(c.inserts)*len(line)), first
	for len(c.inserts) > 0 {
		in := &c.inserts[0]
		rest = append(append(rest, c.out[from:in.start]...), line...)
		from = in.end
		c.dropInsert()
	}
	rest = append(rest, c.out[from:]...)
	if out, ok := c.Grow(c.out[:first], len(rest)); ok {
		c.SetOut(append(out, rest...))
	}
	return true
}

// Inserts returns how many bytes of inserts are unsent, and how many were ever sent.
func (c *Conn) Inserts() (unsent int, sent int64) { return c.inserted, c.accepted }

// flushInserts sends the output up to the end of the last insert, as far as this conn's turn
// allows. It reports whether all of that is sent.
func (c *Conn) flushInserts() (done bool) {
	for left := turn(c.loop.inserting); len(c.inserts) > 0; {
		next := &c.inserts[0]
		var n int
		var err error
		if c.outOff < next.at {
			n, err = c.TryWrite(c.out[c.outOff:next.at])
			c.outOff += n
		} else {
			n, err = c.TryWrite(next.rest[:min(left, len(next.rest))])
			next.rest = next.rest[n:]
			c.inserted -= n
			c.accepted += int64(n)
			left -= n
		}
		if len(next.rest) == 0 {
			c.dropInsert()
		}
		switch {
		case err != nil || c.blocked > 0:
			return false
		case left == 0 && len(c.inserts) > 0:
			c.MarkDirty() // continue in the next iteration
			return false
		}
	}
	return true
}

// dropInsert removes the first insert and releases it.
func (c *Conn) dropInsert() {
	first := c.inserts[0]
	c.inserted -= len(first.rest)
	n := copy(c.inserts, c.inserts[1:])
	c.inserts[n] = insert{}
	c.inserts = c.inserts[:n]
	if n == 0 {
		c.loop.inserting--
	}
	first.owner.Release()
}
