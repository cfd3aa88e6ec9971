package node

import (
	"context"

	"github.com/dunlin-cache/dunlin/node/replica"
)

// flush waits until everything that was logged before the call is acknowledged. It returns ctx's
// error, or that some of it never will be.
func (s *sender) flush(ctx context.Context) error {
	s.mu.Lock()
	if s.machine.IsClosed() {
		s.mu.Unlock()
		return replica.ErrClosed
	}
	barrier, done := s.machine.Raise(), make(chan error, 1)
	s.flushes[barrier] = done
	s.actLocked()
	s.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Lower(barrier)
	delete(s.flushes, barrier)
	return ctx.Err()
}

// flushHanded waits until everything that is to be handed over has arrived, or was refused too
// often.
func (s *sender) flushHanded(ctx context.Context) error {
	for {
		s.mu.Lock()
		owed := s.machine.Owed()
		if s.relieved == nil {
			s.relieved = make(chan struct{})
		}
		relieved := s.relieved
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return replica.ErrClosed
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
