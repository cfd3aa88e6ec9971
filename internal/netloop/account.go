package netloop

import (
	"errors"
	"slices"
)

// ErrNoMemory closes a connection when the budget has no memory left for its buffers.
var ErrNoMemory = errors.New("no memory for the connection's buffers")

// Budget grants the memory for buffers. Any loop may call its methods.
type Budget interface {
	// Charge takes n bytes and reports whether they were available. Handlers may be anywhere in
	// their work when it is called.
	Charge(n int64) bool
	// Refund returns n bytes.
	Refund(n int64)
}

// HeapBudget is a Budget that wants to know what of the memory is in the Go heap: there, bytes that are
// given back are garbage for a while.
type HeapBudget interface {
	Budget
	// ChargeHeap says that n more bytes will be in the Go heap. It takes missing bytes, as Charge does;
	// the rest of the n is charged already.
	ChargeHeap(n, missing int64) bool
	// RefundHeap says that n bytes fewer are in the Go heap. It returns free bytes, as Refund does; the
	// rest of the n stays charged.
	RefundHeap(n, free int64)
}

// Account counts what the buffers of some conns of one loop take from a Budget. It charges a buffer
// before the buffer is made. It takes bytes from the budget in chunks, because most buffers are
// small and short-lived: a request costs one addition and one comparison.
type Account struct {
	budget  Budget     // nil: no limit, the bytes are only counted
	heap    HeapBudget // budget, if it is one
	granted int64      // bytes taken from the budget, at least used
	floor   int64      // bytes of granted that the account never returns
	used    int64      // capacity of the conns' buffers, and other
	other   int64      // the sum of SetOther over all conns

	received, sent uint64 // bytes that the conns have read and written, see Traffic
}

// accountChunk is the least number of bytes that an account takes from its budget or returns to it
// at once.
const accountChunk = 128 << 10

// NewAccount returns an account of a budget that has permanently charged floor bytes for it. An eighth of them is
// reserved for small buffers of conns that are there: their short requests are answered even if long ones have
// all the rest. A nil budget has no limit. Like a Conn, an Account belongs to its loop.
func NewAccount(budget Budget, floor int64) *Account {
	heap, _ := budget.(HeapBudget)
	return &Account{budget: budget, heap: heap, granted: floor, floor: floor}
}

// Used returns the bytes that all conns of the account use.
func (a *Account) Used() int64 { return a.used }

// Traffic returns how many bytes the account's conns, closed ones included, have read and written.
func (a *Account) Traffic() (received, sent uint64) { return a.received, a.sent }

// Other returns the part of Used that SetOther reported.
func (a *Account) Other() int64 { return a.other }

func (a *Account) take(n int) bool {
	a.used += int64(n)
	if a.grants(a.missing(n)) {
		return true
	}
	a.used -= int64(n)
	return false
}

// missing returns how many bytes must be granted now that n more are used.
func (a *Account) missing(n int) int64 {
	if n > 1<<minClass {
		return a.used + a.reserved() - a.granted
	}
	return a.used - a.granted
}

// reserved returns how many bytes are for small buffers alone.
func (a *Account) reserved() int64 { return a.floor / 8 }

// leavesReserve reports whether there is more than what is reserved.
func (a *Account) leavesReserve() bool { return a.grants(a.used + a.reserved() - a.granted) }

// grants reports whether nothing is missing, or what is has been charged.
func (a *Account) grants(missing int64) bool {
	return missing <= 0 || a.budget == nil || a.draw(missing, a.budget.Charge)
}

// takeOther is take for bytes outside of buffers.
func (a *Account) takeOther(n int) bool {
	if a.heap == nil {
		if !a.take(n) {
			return false
		}
		a.other += int64(n)
		return true
	}
	a.used += int64(n)
	charge := func(missing int64) bool { return a.heap.ChargeHeap(int64(n), missing) }
	if missing := a.missing(n); missing <= 0 && charge(0) || missing > 0 && a.draw(missing, charge) {
		a.other += int64(n)
		return true
	}
	a.used -= int64(n)
	return false
}

// draw charges the bytes that are missing: a whole chunk or, if the budget has less, only these. It returns
// false if the budget does not have even those.
func (a *Account) draw(missing int64, charge func(int64) bool) bool {
	for _, want := range [...]int64{max(missing, accountChunk), missing} {
		if charge(want) {
			a.granted += want
			return true
		}
	}
	return false
}

// turnRoom is what the buffers of turnStep conns can take, for input and output, in bytes.
const turnRoom = turnStep * 2 << minClass

// hasRoom reports whether the account has memory for the buffers of turnStep conns, beside what is reserved.
func (a *Account) hasRoom() bool { return a.budget == nil || a.granted-a.used-a.reserved() >= turnRoom }

// drawAhead charges a chunk before it is needed, and reports whether there was one.
func (a *Account) drawAhead() bool {
	if !a.budget.Charge(accountChunk) {
		return false
	}
	a.granted += accountChunk
	return true
}

// give returns n bytes. It keeps one chunk for the next buffers.
func (a *Account) give(n int) {
	a.used -= int64(n)
	if a.budget == nil {
		return
	}
	if spare := a.granted - max(a.floor, a.used+a.reserved()+accountChunk); spare >= accountChunk {
		a.granted -= spare
		a.budget.Refund(spare)
	}
}

// giveOther is give for bytes outside of buffers. Of the Go heap it keeps no chunk.
func (a *Account) giveOther(n int) {
	a.other -= int64(n)
	if a.heap == nil {
		a.give(n)
		return
	}
	a.used -= int64(n)
	free := max(0, min(int64(n), a.granted-max(a.floor, a.used+a.reserved())))
	a.granted -= free
	a.heap.RefundHeap(int64(n), free)
}

// SetAccount charges what the conn has, and will have, to a. Without an account of its own, a conn uses
// its loop's, which has no limit. SetAccount returns false if there is no memory for it, and closes the
// conn.
func (c *Conn) SetAccount(a *Account) bool {
	if c.TrySetAccount(a) {
		return true
	}
	if !c.closed {
		c.closeStarved()
	}
	return false
}

// TrySetAccount is SetAccount that changes nothing if there is no memory: the conn stays open.
func (c *Conn) TrySetAccount(a *Account) bool {
	if c.closed || a == c.account {
		return !c.closed
	}
	if !slices.Contains(c.loop.accounts, a) {
		c.loop.accounts = append(c.loop.accounts, a)
	}
	before, buffers, other := c.account, cap(c.in)+cap(c.out), c.other
	c.account, c.other = a, 0
	charged := a.leavesReserve() && c.charge(buffers)
	if !charged || !c.TrySetOther(max(other-c.wrapped, 0)) {
		if charged {
			a.give(buffers)
		}
		c.account, c.other = before, other
		return false
	}
	before.give(buffers)
	before.giveOther(other)
	return true
}

// SetOther sets how many bytes the handler keeps for the conn outside of these buffers; they
// replace the number of the call before and count in the conn's account. It returns false if there
// is no memory for them, and closes the conn.
func (c *Conn) SetOther(n int) bool {
	if c.TrySetOther(n) {
		return true
	}
	if !c.closed {
		c.closeStarved()
	}
	return false
}

// TrySetOther is SetOther that changes nothing if there is no memory: the conn stays open.
func (c *Conn) TrySetOther(n int) bool {
	n += c.wrapped
	switch {
	case c.closed:
		return false
	case n < c.other:
		c.account.giveOther(c.other - n)
	case n > c.other:
		for !c.account.takeOther(n - c.other) {
			if !c.loop.leaveSome() {
				return false
			}
		}
	}
	c.other = n
	return true
}

// charge takes n bytes from the account, and reports whether they were available. It does not wait
// for buffers that are being returned anyway.
func (c *Conn) charge(n int) bool {
	for !c.account.take(n) {
		if !c.loop.leaveSome() {
			return false
		}
	}
	return true
}

// lend returns an empty buffer with room for n bytes, which can perhaps be extended up to reach, or
// nil if there is no memory for it.
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

// extend returns b with room for n bytes, or nil if b cannot be extended in place.
func (c *Conn) extend(b []byte, n int) []byte {
	if !c.loop.pool.owns(b) {
		return nil
	}
	_, class := c.loop.pool.place(b)
	more := bufferSize(n, class) - cap(b)
	if n > 1<<class || !c.charge(more) {
		return nil
	}
	longer := c.loop.pool.extend(b, n)
	if longer == nil {
		c.account.give(more)
	}
	return longer
}

// grownSize returns the size of a buffer that must have room for need bytes and may grow to reach.
// Doubling keeps copying linear. A large buffer grows step by step, so that the budget has to make
// room for one step at a time.
func grownSize(need, reach int) int {
	if reach <= 1<<maxKeptClass {
		return max(need, reach)
	}
	return max(need, min(reach, need+growStep))
}

// growStep is about as much as one read adds.
const growStep = scratchSize

// replace returns a buffer with room for n bytes, which can perhaps be extended up to reach, and
// with the bytes b[from:] at offset to. It returns b to the pool. If there is no memory for the new
// buffer, replace returns nil and leaves b alone.
func (c *Conn) replace(b []byte, from, to, n, reach int) []byte {
	l := c.loop
	class := classOf(max(n, reach))
	more := bufferSize(n, class)
	moved := l.pool.isLarge(b) && class > maxKeptClass
	if moved {
		more -= cap(b) // b's memory moves, and never exists twice
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

// settleAccount returns all bytes of a conn when it is closed.
func (c *Conn) settleAccount() {
	c.dropInput()
	c.dropOutput()
	c.account.giveOther(c.other)
	c.other = 0
}

// Starver is a Handler with something to say to a peer whose input cannot be kept for lack of
// memory. Its last words follow the output that is there, and then the conn closes with
// ErrNoMemory. Without memory for the words they are lost.
type Starver interface {
	OnStarve(c *Conn) (lastWords []byte)
}

// starve ends the conn because there is no memory for its input.
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
