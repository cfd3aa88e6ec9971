package netloop

// Buffer is input that a handler has taken over, so that a long request need not be copied on its
// way. It counts in the account of the conn that it came from until it is released, and may outlive
// that conn.
type Buffer struct {
	loop    *Loop
	account *Account
	mem     []byte

	offered  *Conn // not nil: its OnData, in which the Buffer was taken, has not returned
	released bool  // before that
}

// TakeInput gives the memory behind view to the handler. Call it from inside OnData, with a part of
// OnData's input as view; view then stays unchanged until Release. The result is nil if the memory
// is not the conn's own, which it is for input beyond a megabyte; view must then be copied.
func (c *Conn) TakeInput(view []byte) *Buffer {
	if len(view) == 0 || !c.loop.pool.isLarge(c.in) {
		return nil
	}
	if from := addressOf(view) - addressOf(c.in); from >= uintptr(cap(c.in)) {
		return nil
	}
	b := &Buffer{loop: c.loop, account: c.account, mem: c.in, offered: c}
	c.taken = b
	c.in, c.inOff = nil, 0
	return b
}

// Release returns the memory. Call it on the loop of the conn that the Buffer came from. Nobody may
// use a view of it afterwards, but for the OnData in which it was taken, and in whose input the
// requests behind view may lie. Releasing a nil Buffer does nothing.
func (b *Buffer) Release() {
	switch {
	case b == nil || b.mem == nil:
	case b.offered != nil:
		b.released = true
	default:
		b.loop.giveBack(b.mem, b.account)
		b.mem = nil
	}
}

// doneOffering frees the input that the handler has taken, if it has released it already.
func (c *Conn) doneOffering() {
	b := c.taken
	if b == nil {
		return
	}
	c.taken, b.offered = nil, nil
	if b.released {
		b.Release()
	}
}

// leaver is a large buffer whose memory returns to the system step by step. Freeing half a gigabyte
// at once would keep the loop busy for fifty milliseconds.
type leaver struct {
	mem     []byte
	gone    int // bytes at its front that are freed
	account *Account
}

// leaveStep is how many bytes one iteration frees.
const leaveStep = 4 << 20

func (l *Loop) giveBack(b []byte, a *Account) {
	if cap(b) > leaveStep && l.pool.isLarge(b) {
		l.leaving = append(l.leaving, leaver{mem: b[:cap(b)], account: a})
		return
	}
	l.pool.put(b)
	a.give(cap(b))
}

// leaveSome frees the next step of the first leaving buffer. It returns false if there is none.
func (l *Loop) leaveSome() bool {
	if len(l.leaving) == 0 {
		return false
	}
	b := &l.leaving[0]
	step := min(leaveStep, len(b.mem)-b.gone)
	release(b.mem[b.gone : b.gone+step])
	b.gone += step
	b.account.give(step)
	if b.gone == len(b.mem) {
		l.pool.put(b.mem)
		n := copy(l.leaving, l.leaving[1:])
		l.leaving[n] = leaver{}
		l.leaving = l.leaving[:n]
	}
	return true
}
