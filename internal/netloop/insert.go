package netloop

// A reply may be too large to be copied into an output buffer. Its place in the output is
// then kept by an insert: bytes that lie with their owner, and are sent from there.
//
//	out      ...$600000 CRLF │ CRLF +OK CRLF ...
//	inserts                  └ 600000 bytes, at 12 of out

// Releaser is who has the bytes of an insert.
type Releaser interface {
	// Release is called once, on the conn's loop: the bytes are sent, or never will be.
	Release()
}

// insert is output that lies elsewhere.
type insert struct {
	at    int    // it comes before out[at:]
	rest  []byte // what is unsent of it
	owner Releaser
}

const (
	// maxTurn is how much of its inserts a conn sends in one iteration at most: some
	// 60 µs. With others that do the same it is less, so that all of them together
	// hold up the loop for turnShare, as long as that is minTurn for each.
	maxTurn   = 128 << 10
	turnShare = 256 << 10
	minTurn   = 16 << 10
)

// turn is the share of n conns that move much through the loop, at the same time.
func turn(n int) int { return min(max(turnShare/n, minTurn), maxTurn) }

// Insert has b sent before what comes at position at of the output buffer and behind what
// is inserted already: at is not below the position of any of that. b must not change
// until owner is told to release it. Unlike copied output, it does not count towards
// Config.HardOut. Not for Flushers.
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
	c.inserts = append(c.inserts, insert{at, b, owner})
	c.inserted += len(b)
	c.MarkDirty()
}

// flushInserts sends what there is up to the end of the last insert, as much as is this
// conn's turn. It reports whether nothing of that is left.
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
			left -= n
		}
		if len(next.rest) == 0 {
			c.dropInsert()
		}
		switch {
		case err != nil || c.blocked > 0:
			return false
		case left == 0 && len(c.inserts) > 0:
			c.MarkDirty() // in the next iteration
			return false
		}
	}
	return true
}

// dropInsert lets go of the first insert.
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
