package netloop

import (
	"sync"
	"sync/atomic"
)

// mailbox queues the functions that other goroutines want to run on a loop, and wakes a sleeping
// loop.
//
// No wakeup is lost: post stores pending and then reads asleep; the loop stores asleep and then
// reads pending. Typed atomics are sequentially consistent, so one of the two sees the other's
// store. While the loop is awake, posting costs no system call.
type mailbox struct {
	mu     sync.Mutex
	funcs  []func() // in order of posting
	closed bool     // nothing more is accepted, and waker is closed

	pending atomic.Bool // funcs is not empty
	asleep  atomic.Bool // the loop waits for events or is about to: wake it
	waker   waker
}

// post queues f and reports whether f will run. It wakes the loop under the lock. Otherwise close
// could return the descriptor to the system between post's decision to write to it and the write.
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

// fallAsleep announces that the loop is about to wait. It returns false if functions are pending:
// the loop must not wait then.
func (m *mailbox) fallAsleep() bool {
	m.asleep.Store(true)
	return !m.pending.Load()
}

func (m *mailbox) wakeUp() {
	m.asleep.Store(false)
}

// take returns the queued functions and makes the empty slice spare the queue.
func (m *mailbox) take(spare []func()) []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	funcs := m.funcs
	m.funcs = spare[:0]
	m.pending.Store(false)
	return funcs
}

// close refuses further functions and returns those that have not run.
func (m *mailbox) close() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.waker.close()
	return m.funcs
}
