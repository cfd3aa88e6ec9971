package stream

import (
	"context"

	"github.com/dunlin-cache/dunlin/node/replica"
	"github.com/dunlin-cache/dunlin/ring"
)

// Flush waits until the receiver has acknowledged everything that was logged before the call. It
// returns ctx's error, replica.ErrVoid if some of it is lost and sent anew, or replica.ErrClosed.
func (s *Sender) Flush(ctx context.Context) error {
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

// FlushHanded waits until everything that is to be handed over has arrived, or was refused too
// often. It returns ctx's error, or replica.ErrClosed.
func (s *Sender) FlushHanded(ctx context.Context) error {
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

// Copies returns the partitions of which the receiver has, or is about to have, everything.
func (s *Sender) Copies() (set ring.PartitionSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.EachWhole(set.Add)
	return set
}
