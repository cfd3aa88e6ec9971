package node

import (
	"context"
	"slices"
)

// barrier is passed when all that was logged before it was raised is acknowledged, and what of it is refused was heard. Protected by
// the sender's mu.
type barrier struct {
	from uint64        // Collects from here on began after it
	seq  uint64        // the batch with the last of what it waits for; 0: not yet made
	word *fedPartition // is handed over then; or else
	done chan error    // room for one
}

// flush waits for all that was logged before it began to be acknowledged. Errors are ctx's, or that some of it never will be.
func (s *sender) flush(ctx context.Context) error {
	b := &barrier{done: make(chan error, 1)}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errSenderClosed
	}
	s.raiseLocked(b)
	s.mu.Unlock()
	select {
	case err := <-b.done:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.barriers = slices.DeleteFunc(s.barriers, func(o *barrier) bool { return o == b })
	return ctx.Err()
}

// flushHanded waits until all that is to be handed over has come, or was refused too often.
func (s *sender) flushHanded(ctx context.Context) error {
	for {
		s.mu.Lock()
		owed, relieved := s.owed, s.relieved
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return errSenderClosed
		case owed == 0:
			return nil
		}
		select {
		case <-relieved:
		case <-s.ctx.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// raiseLocked begins to wait.
func (s *sender) raiseLocked(b *barrier) {
	b.from = s.tick.Load() + 1
	s.barriers = append(s.barriers, b)
	s.rouse()
}

// noteBarriers finds the barriers for which all shards have been emptied.
func (s *sender) noteBarriers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.barriers) == 0 {
		return
	}
	oldest := slices.Min(s.empty)
	for i := len(s.barriers) - 1; i >= 0 && s.barriers[i].seq == 0; i-- {
		if oldest >= s.barriers[i].from {
			s.barriers[i].seq = s.window.seq
		}
	}
	s.passLocked()
}

// passLocked ends the barriers for which all is acknowledged, and its refusals are heard: the first ones.
func (s *sender) passLocked() {
	n := 0
	for n < len(s.barriers) && s.barriers[n].seq != 0 && s.barriers[n].seq <= s.window.heard {
		s.endBarrierLocked(s.barriers[n], nil)
		n++
	}
	s.barriers = slices.Delete(s.barriers, 0, n)
}

// breakLocked ends all barriers: something was lost on the way.
func (s *sender) breakLocked(err error) {
	for _, b := range s.barriers {
		s.endBarrierLocked(b, err)
	}
	s.barriers = nil
}

func (s *sender) endBarrierLocked(b *barrier, err error) {
	f := b.word
	switch {
	case f == nil:
		b.done <- err
	case s.closed || s.fed[f.number] != f: // it was refused, or is fed anew
	case err == nil:
		s.removeLocked(f.number)
	default:
		s.againLocked(f, f.anew())
	}
}
