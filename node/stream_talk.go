package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

const (
	// heartbeat is how often the receiver hears something.
	heartbeat = 100 * time.Millisecond
	// streamPatience is for how long it may say nothing.
	streamPatience = 2 * time.Second
	// awayLimit is after how long without a connection the stream is not kept for its resumption any more.
	awayLimit = 10 * time.Second
	// pollPeriod is how long a round waits for more changes after one that had some: a wake-up for every change would cost the
	// loops more than the change.
	pollPeriod = time.Millisecond
)

// talk opens a connection and sends until it breaks.
func (s *sender) talk() error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	patience := time.AfterFunc(streamPatience, cancel)
	p, err := member.DialPeer(ctx, s.node.cfg.Dialer, s.to.Addr, s.node.secret, s.node.cfg.Boot)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := s.agree(p); err != nil {
		return err
	}
	patience.Stop()
	heard := make(chan error, 1)
	s.node.goJob(func() {
		err := s.listen(p)
		heard <- err
		cancel()
		s.rouse()
	})
	defer func() { s.cut = time.Now() }()
	err = s.send(ctx, p)
	cancel()
	p.Conn.Close()
	if cause := <-heard; cause != nil && s.ctx.Err() == nil {
		err = cause
	}
	return err
}

// agree learns how far the receiver has come, and begins a new generation if the stream cannot be continued from there. What it
// has refused on the way it says again with its answer to the next batch: nothing counts as come before that.
func (s *sender) agree(p *member.Peer) error {
	for range 2 {
		reply, err := p.Call(member.VerbStream, s.node.name(), strconv.FormatUint(s.generation, 10))
		if err != nil {
			return err
		}
		last, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(string(reply), ":")), 10, 64)
		if err != nil {
			return fmt.Errorf("node %s answers %q, want a number", p.Addr, reply)
		}
		s.mu.Lock()
		w := &s.window
		resumed := w.acked <= last && last <= w.seq
		if resumed {
			w.acknowledge(last)
			w.again(s.node.cfg.Group.UnixMilli())
		} else {
			s.voidLocked()
		}
		s.mu.Unlock()
		if resumed {
			return nil
		}
	}
	return fmt.Errorf("node %s knows a generation that has just begun", p.Addr)
}

// send makes batches and writes them until the connection breaks, or the sender ends.
func (s *sender) send(ctx context.Context, p *member.Peer) error {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := s.round()
		if err := s.write(ctx, p); err != nil {
			return err
		}
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
	return errSenderClosed
}

// write writes what is not yet on this connection.
func (s *sender) write(ctx context.Context, p *member.Peer) error {
	w := &s.window
	b := w.unsent()
	if len(b) == 0 {
		return nil
	}
	_ = p.Conn.SetWriteDeadline(time.Now().Add(streamPatience))
	if ctx.Err() != nil { // or else its deadline, in the past, may be the one just overwritten
		return errSenderClosed
	}
	n, err := p.Conn.Write(b)
	w.sent += int64(n)
	if err != nil {
		return fmt.Errorf("cannot send to node %s: %w", p.Addr, err)
	}
	return nil
}

// listen takes acknowledgements until the connection breaks.
func (s *sender) listen(p *member.Peer) error {
	var in []byte
	var scanner resp.Scanner
	piece := make([]byte, 4<<10)
	for {
		_ = p.Conn.SetReadDeadline(time.Now().Add(streamPatience))
		if s.ctx.Err() != nil {
			return errSenderClosed
		}
		n, err := p.Conn.Read(piece)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("cannot hear node %s: %w", p.Addr, err)
		}
		in = append(in, piece[:n]...)
		var acked uint64
		used := 0
		for used < len(in) {
			outcome := scanner.Scan(in[used:])
			if outcome == resp.NeedMore {
				break
			}
			if outcome == resp.Malformed {
				return fmt.Errorf("node %s answers what is no reply", p.Addr)
			}
			reply := in[used : used+scanner.Len()]
			used += scanner.Len()
			seq, refused, err := parseAck(reply)
			if err != nil {
				return fmt.Errorf("node %s answers %w", p.Addr, err)
			}
			acked = max(acked, seq)
			if len(refused) > 0 {
				s.setRefused(seq, refused)
			}
		}
		in = in[:copy(in, in[used:])]
		if acked > 0 {
			s.acknowledged(acked)
		}
		if len(in) > member.MaxReply {
			return fmt.Errorf("node %s answers more than %d bytes", p.Addr, member.MaxReply)
		}
	}
}

// parseAck reads the answer to a batch: :seq, or *2 :seq and the partitions that are refused.
func parseAck(reply []byte) (seq uint64, refused []byte, err error) {
	line := reply
	if resp.IsError(reply) {
		return 0, nil, fmt.Errorf("%q", strings.TrimSpace(string(reply[1:])))
	}
	if list, ok := strings.CutPrefix(string(reply), "*2\r\n"); ok {
		number, bulk, _ := strings.Cut(list, "\r\n")
		if refused, ok = resp.DecodeBulk([]byte(bulk)); !ok || len(refused)%2 != 0 {
			return 0, nil, fmt.Errorf("%q, want a number and partitions", reply)
		}
		line = []byte(number)
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(string(line)), ":")
	if ok {
		seq, err = strconv.ParseUint(number, 10, 64)
	}
	if !ok || err != nil {
		return 0, nil, fmt.Errorf("%q, want a number", reply)
	}
	return seq, refused, nil
}

// acknowledged notes that the receiver has all up to seq.
func (s *sender) acknowledged(seq uint64) {
	s.mu.Lock()
	s.window.acknowledge(seq)
	s.window.heard = s.window.acked
	s.passLocked()
	s.mu.Unlock()
	if s.hungry.Load() && s.hungry.CompareAndSwap(true, false) {
		s.rouse()
	}
}

// setRefused notes partitions that the receiver does not take, in batches up to seq. They are sent anew in a moment: most likely
// the receiver has not yet got the table by which it should.
func (s *sender) setRefused(seq uint64, partitions []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; len(partitions) >= 2; partitions = partitions[2:] {
		p := binary.LittleEndian.Uint16(partitions)
		f := s.fed[p]
		if f == nil || f.begun >= seq || f.state == feedWaiting {
			continue // it is about an earlier feed
		}
		s.resyncs.Add(1)
		s.endLocked(f.number, noMark)
		s.denyLocked(f.anew())
	}
}

// denyLocked has a partition that is not fed any more tried again in a moment; but not for ever, if it is to be handed over: who
// refuses what it is to own cannot be helped.
func (s *sender) denyLocked(f *fedPartition) {
	if f.tries++; f.seal != 0 && f.tries > maxHandTries {
		return
	}
	if f.tries > maxPlaceTries {
		f.place = 0
	}
	f.notBefore = time.Now().Add(deniedPeriod)
	s.putLocked(f)
	s.refused = append(s.refused, f)
	s.rouse()
}
