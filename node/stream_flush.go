package node

import (
	"context"
	"slices"
)

// flush waits for all that was logged before it began to be acknowledged. Errors are ctx's, or that some of it never will be.
func (s *sender) flush(ctx context.Context) error {
	return s.await(ctx, &flushing{done: make(chan error, 1)})
}

// flushHanded is flush that waits for what is to be handed over, too: also for what the receiver refuses yet.
func (s *sender) flushHanded(ctx context.Context) error {
	return s.await(ctx, &flushing{done: make(chan error, 1), handed: true})
}

func (s *sender) await(ctx context.Context, f *flushing) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errSenderClosed
	}
	s.flushes = append(s.flushes, f)
	s.mu.Unlock()
	s.rouse()
	select {
	case err := <-f.done:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushes = slices.DeleteFunc(s.flushes, func(o *flushing) bool { return o == f })
	return ctx.Err()
}

// flushing is a wait for all that is logged. Protected by the sender's mu.
type flushing struct {
	from uint64 // Collects from here on began after it; 0: no round has seen it yet
	seq  uint64 // the batch with the last of what it waits for; 0: not yet made
	hand uint64 // the last of the sender's hands before it
	done chan error

	handed bool // it waits for what is to be handed over
}

// beginFlushes has Collects from now on count for the flushes.
func (s *sender) beginFlushes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flushes {
		if f.from == 0 {
			f.from, f.hand = s.tick+1, s.hands
		}
	}
}

// noteFlushes finds the flushes for which all shards have been emptied.
func (s *sender) noteFlushes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.flushes) == 0 {
		return
	}
	oldest := slices.Min(s.empty)
	for _, f := range s.flushes {
		if f.seq == 0 && f.from != 0 && oldest >= f.from {
			f.seq = s.window.seq
		}
	}
	s.endFlushesLocked()
}

// endFlushesLocked ends those for which all is acknowledged.
func (s *sender) endFlushesLocked() {
	s.flushes = slices.DeleteFunc(s.flushes, func(f *flushing) bool {
		if f.handed && s.owed > 0 {
			f.from, f.seq = 0, 0 // what counts is a round after the last of what is owed
			return false
		}
		done := f.seq != 0 && f.seq <= s.window.acked
		if done {
			s.handed = slices.DeleteFunc(s.handed, func(h *fedPartition) bool { return h.hand <= f.hand })
			f.done <- nil
		}
		return done
	})
}

func (s *sender) failFlushesLocked(err error) {
	for _, f := range s.flushes {
		f.done <- err
	}
	s.flushes = nil
}
