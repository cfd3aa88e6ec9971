package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// pollPeriod is how long a round waits for more changes after one that had some: a wake-up for
// every change would cost the loops more than the change.
const pollPeriod = time.Millisecond

// run is the goroutine: one connection after the other.
func (s *Sender) run() {
	defer s.end()
	for failures := 0; s.ctx.Err() == nil; failures++ {
		begun := s.cfg.Monotonic()
		err := s.talk()
		if s.ctx.Err() != nil {
			return
		}
		if s.cut > begun {
			failures = 0
		}
		if failures == 0 || failures == 50 {
			s.cfg.Log.Warn("stream is interrupted", "to", s.to.Name(), "error", err)
		}
		if s.cfg.Monotonic()-s.cut > replica.AwayLimit {
			s.void()
			s.cut = s.cfg.Monotonic()
		}
		s.pause(ownership.RetryPeriod)
	}
}

// pause waits for d, or until the sender ends.
func (s *Sender) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// talk opens a connection and sends until it breaks.
func (s *Sender) talk() error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	patience := time.AfterFunc(replica.StreamPatience, cancel)
	p, err := member.DialPeer(ctx, s.cfg.Dialer, s.to.Addr, s.cfg.Secret.First(), s.cfg.Boot)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := s.agree(p); err != nil {
		return err
	}
	patience.Stop()
	heard := make(chan error, 1)
	s.cfg.Go(func() {
		err := s.listen(p)
		heard <- err
		cancel()
		s.rouse()
	})
	defer func() { s.cut = s.cfg.Monotonic() }()
	err = s.send(ctx, p)
	cancel()
	p.Conn.Close()
	if cause := <-heard; cause != nil && s.ctx.Err() == nil {
		err = cause
	}
	return err
}

// agree learns how far the receiver has come, and begins a new generation if the stream cannot go
// on from there.
func (s *Sender) agree(p *member.Peer) error {
	for range 2 {
		reply, err := p.Call(member.VerbStream, s.cfg.Name, strconv.FormatUint(s.generation(), 10))
		if err != nil {
			return err
		}
		last, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(string(reply), ":")), 10, 64)
		if err != nil {
			return fmt.Errorf("node %s answers %q, want a number", p.Addr, reply)
		}
		if s.opened(last) {
			return nil
		}
	}
	return fmt.Errorf("node %s knows a generation that has just begun", p.Addr)
}

// opened goes on with the stream where the receiver is. If that is impossible, it begins a new
// generation and reports false.
func (s *Sender) opened(last uint64) bool {
	s.mu.Lock()
	resumed := s.machine.Opened(last)
	if resumed {
		s.window.Acknowledge(last)
		s.window.Resend(s.cfg.UnixMilli())
	}
	s.mu.Unlock()
	if !resumed {
		s.void()
	}
	return resumed
}

func (s *Sender) generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Generation()
}

// send makes batches and writes them until the connection breaks, or the sender ends.
func (s *Sender) send(ctx context.Context, p *member.Peer) error {
	timer := time.NewTimer(replica.Heartbeat)
	defer timer.Stop()
	for ctx.Err() == nil {
		begun := s.cfg.Monotonic()
		wait := s.round()
		if err := s.write(ctx, p); err != nil {
			return err
		}
		s.rested(begun)
		if wait == 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-s.kick:
		case <-timer.C:
		}
		s.asleep.Store(false)
		s.hungry.Store(false)
	}
	return replica.ErrClosed
}

// write writes what is not yet on this connection.
func (s *Sender) write(ctx context.Context, p *member.Peer) error {
	b := s.window.Unsent()
	if len(b) == 0 {
		return nil
	}
	_ = p.Conn.SetWriteDeadline(time.Now().Add(replica.StreamPatience))
	if ctx.Err() != nil { // or else its deadline, in the past, may be the one just overwritten
		return replica.ErrClosed
	}
	n, err := p.Conn.Write(b)
	s.window.Sent(n)
	if err != nil {
		return fmt.Errorf("cannot send to node %s: %w", p.Addr, err)
	}
	return nil
}

// listen takes acknowledgements until the connection breaks.
func (s *Sender) listen(p *member.Peer) error {
	var answer replica.Answer
	for {
		_ = p.Conn.SetReadDeadline(time.Now().Add(replica.StreamPatience))
		if s.ctx.Err() != nil {
			return replica.ErrClosed
		}
		if err := p.Fill(); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("cannot hear node %s: %w", p.Addr, err)
		}
		var acked uint64
		for {
			reply, err := p.Next()
			if err != nil {
				return err
			}
			if reply == nil {
				break
			}
			if err = answer.Parse(reply); err != nil {
				return fmt.Errorf("node %s answers %w", p.Addr, err)
			}
			acked = max(acked, answer.Seq)
			if answer.Strained {
				s.told.Store(int64(s.cfg.Monotonic()))
			}
			if len(answer.Refused) > 0 {
				s.refused(answer.Seq, answer.Refused)
			}
			if len(answer.Lacks) > 0 {
				s.asked(answer.Seq, answer.Lacks)
			}
		}
		if acked > 0 {
			s.acknowledged(acked)
		}
	}
}

// acknowledged notes that the receiver has applied all batches up to seq, and that refused has been
// called for what it does not take of them.
func (s *Sender) acknowledged(seq uint64) {
	s.mu.Lock()
	s.window.Acknowledge(seq)
	s.machine.Acknowledged(seq, nil, s.cfg.Monotonic())
	s.actLocked()
	s.mu.Unlock()
	if s.hungry.Load() && s.hungry.CompareAndSwap(true, false) {
		s.rouse()
	}
}

// refused notes partitions that the receiver does not take, in batches up to seq.
func (s *Sender) refused(seq uint64, partitions []uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Refused(seq, partitions, s.cfg.Monotonic())
	s.actLocked()
}
