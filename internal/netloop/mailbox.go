package netloop

import (
	"sync"
	"sync/atomic"
)

// mailbox holds the functions that other goroutines want run on a loop, and wakes the
// loop when it sleeps.
//
// No wakeup is lost: post stores pending and then looks at asleep; the loop stores
// asleep and then looks at pending. Typed atomics are sequentially consistent, so one
// of the two sees the other. While the loop is awake, posting costs no system call.
type mailbox struct {
	mu     sync.Mutex
	funcs  []func() // in order of posting
	closed bool     // nothing is accepted any more, and waker is closed

	pending atomic.Bool // funcs is not empty
	asleep  atomic.Bool // the loop waits for events, or is about to: it must be woken
	waker   waker
}

// post queues f and reports whether it will be run. It wakes the loop under the lock, because close
// must not give the descriptor back to the system between our decision to write to it and the
// write.
func (m *mailbox) post(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.funcs = append(m.funcs, f)
	m.pending.Store(true)
	if m.asleep.Load() && m.asleep.CompareAndSwap(true, false) {
		m.waker.wake()
	}
	return true
}

// fallAsleep announces that the loop is going to wait. False: something came in, do not
// wait.
func (m *mailbox) fallAsleep() bool {
	m.asleep.Store(true)
	return !m.pending.Load()
}

func (m *mailbox) wakeUp() {
	m.asleep.Store(false)
}

// take returns the queued functions and leaves the empty slice spare in their place.
func (m *mailbox) take(spare []func()) []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	funcs := m.funcs
	m.funcs = spare[:0]
	m.pending.Store(false)
	return funcs
}

// close refuses further functions, and returns those that were not yet run.
func (m *mailbox) close() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.waker.close()
	return m.funcs
}
