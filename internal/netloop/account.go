package netloop

import "errors"

// ErrNoMemory closes a connection whose buffers the budget has nothing left for.
var ErrNoMemory = errors.New("no memory for the connection's buffers")

// Budget is what has the memory that buffers are made of. Its methods are called from any
// loop.
type Budget interface {
	// Charge takes n bytes; false: there are none. It may be called in the middle of
	// whatever a handler does.
	Charge(n int64) bool
	// Refund gives n bytes back.
	Refund(n int64)
}

// Account is what the buffers of some conns of one loop take out of a Budget. A buffer is
// charged before it is made. Bytes are taken from the budget in chunks, because most
// buffers are small and short-lived: a request costs an addition and a comparison.
type Account struct {
	budget  Budget // nil: there is no limit, the bytes are only counted
	granted int64  // bytes taken from the budget, at least held
	floor   int64  // bytes of granted that are the account's for good
	held    int64  // capacity of the conns' buffers, and other
	other   int64  // what SetOther said for all conns

	received, sent uint64 // bytes that the conns have read and written, see Traffic
}

// accountChunk is how much at least an account takes from its budget and gives back.
const accountChunk = 128 << 10

// NewAccount makes an account of a budget that has charged floor bytes for it already, for
// good. A nil budget has no limit. Like a Conn, an Account is its loop's.
func NewAccount(budget Budget, floor int64) *Account {
	return &Account{budget: budget, granted: floor, floor: floor}
}

// Held is what all conns of the account take.
func (a *Account) Held() int64 { return a.held }

// Traffic is how many bytes the account's conns, closed ones too, have read and written.
func (a *Account) Traffic() (received, sent uint64) { return a.received, a.sent }

// Other is the part of Held that SetOther said.
func (a *Account) Other() int64 { return a.other }

func (a *Account) take(n int) bool {
	a.held += int64(n)
	return a.held <= a.granted || a.draw(int64(n))
}

// draw takes what is held and not granted from the budget: a chunk, or just that if the
// budget has less. n bytes are not held after all if it has not even that.
func (a *Account) draw(n int64) bool {
	if a.budget == nil {
		return true
	}
	missing := a.held - a.granted
	for _, want := range []int64{max(missing, accountChunk), missing} {
		if a.budget.Charge(want) {
			a.granted += want
			return true
		}
	}
	a.held -= n
	return false
}

// give returns n bytes. A chunk is kept for what comes next.
func (a *Account) give(n int) {
	a.held -= int64(n)
	if a.budget == nil {
		return
	}
	if spare := a.granted - max(a.floor, a.held+accountChunk); spare >= accountChunk {
		a.granted -= spare
		a.budget.Refund(spare)
	}
}

// SetAccount has the conn's buffers charged to a from now on; without it they are only
// counted. It must be called before the conn has any.
func (c *Conn) SetAccount(a *Account) {
	if c.in != nil || c.out != nil || c.other != 0 {
		panic("BUG: a conn with buffers changes its account")
	}
	c.account = a
	if c.wrapped > 0 {
		c.SetOther(0)
	}
}

// SetOther has n bytes that the handler keeps for the conn outside of these buffers count
// in its account from now on, instead of as many as was said before. False: there is no
// memory for them, and the conn is closed.
func (c *Conn) SetOther(n int) bool {
	n += c.wrapped
	switch {
	case c.closed:
		return false
	case n < c.other:
		c.account.give(c.other - n)
	case n > c.other && !c.charge(n-c.other):
		c.closeStarved()
		return false
	}
	c.account.other += int64(n - c.other)
	c.other = n
	return true
}

// charge takes n bytes. It does not wait for what is leaving anyway.
func (c *Conn) charge(n int) bool {
	for !c.account.take(n) {
		if !c.loop.leaveSome() {
			return false
		}
	}
	return true
}

// lend returns a buffer with room for n bytes, which can perhaps be extended to reach; nil
// if there is no memory for it.
func (c *Conn) lend(n, reach int) []byte {
	class := classOf(max(n, reach))
	size := bufferSize(n, class)
	if !c.charge(size) {
		return nil
	}
	b := c.loop.pool.get(n, class)
	if b == nil {
		c.account.give(size)
	}
	return b
}

// extend returns b with room for n bytes; nil if that cannot be had in its place.
func (c *Conn) extend(b []byte, n int) []byte {
	if !c.loop.pool.owns(b) {
		return nil
	}
	_, class := c.loop.pool.place(b)
	more := bufferSize(n, class) - cap(b)
	if n > 1<<class || !c.charge(more) {
		return nil
	}
	return c.loop.pool.extend(b, n)
}

// grownSize is how large a buffer is made that must have room for need bytes and may come
// to have reach. Doubling keeps copying linear. A large one is extended step by step, so
// that the budget makes room for a step only at a time.
func grownSize(need, reach int) int {
	if reach <= 1<<maxKeptClass {
		return max(need, reach)
	}
	return max(need, min(reach, need+growStep))
}

// growStep is about what one read adds.
const growStep = scratchSize

// replace returns a buffer with room for n bytes, which can perhaps be extended to reach,
// and with what b has from its byte from on at to. b is given back. If there is no memory
// for it, nil is returned and b left alone.
func (c *Conn) replace(b []byte, from, to, n, reach int) []byte {
	l := c.loop
	class := classOf(max(n, reach))
	more := bufferSize(n, class)
	moved := l.pool.isLarge(b) && class > maxKeptClass
	if moved {
		more -= cap(b) // its memory goes over, and is never there twice
	}
	if more > 0 && !c.charge(more) {
		return nil
	}
	fresh := l.pool.get(n, class)
	if fresh == nil {
		c.account.give(max(more, 0))
		return nil
	}
	fresh = fresh[:to+len(b)-from]
	if !moved {
		copy(fresh[to:], b[from:])
		if l.pool.owns(b) {
			c.giveBack(b)
		}
		return fresh
	}
	l.pool.move(fresh[to:], b, from)
	l.pool.put(b)
	c.account.give(max(-more, 0))
	return fresh
}

func (c *Conn) giveBack(b []byte) {
	if b != nil {
		c.loop.giveBack(b, c.account)
	}
}

// settleAccount gives everything back when the conn is closed.
func (c *Conn) settleAccount() {
	c.dropInput()
	c.dropOutput()
	c.account.give(c.other)
	c.account.other -= int64(c.other)
	c.other = 0
}

// Starver is a Handler with something to say to a peer whose input cannot be kept for want
// of memory. The last words are sent behind what output there is, and the conn closes
// with ErrNoMemory. Without memory for them they are lost.
type Starver interface {
	OnStarve(c *Conn) (lastWords []byte)
}

// starve ends the conn because its input cannot be kept.
func (c *Conn) starve() {
	if c.closed || c.finishing {
		return
	}
	c.loop.stats.Starved++
	c.dropInput()
	if c.out == nil {
		c.out = c.lend(0, 0)
	}
	if words := c.lastWords(); len(words) <= cap(c.out)-len(c.out) {
		c.out = append(c.out, words...)
	}
	c.finish(ErrNoMemory)
}

func (c *Conn) lastWords() []byte {
	h, ok := c.handler.(Starver)
	if !ok {
		return nil
	}
	defer c.loop.recoverConn(c)
	return h.OnStarve(c)
}
