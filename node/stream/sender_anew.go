package stream

import (
	"bytes"
	"slices"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// A receiver may lack a value with parts that the sender goes on to change: it has evicted its copy,
// or had no memory for it. It asks for the key in its answers, if it has memory now. The sender has
// the value logged anew, in the chunks of a snapshot, when no snapshot is to be taken. A hand-over
// does not wait for it: then the next owner lacks the key, as if it had not asked.

// ask is a key that the receiver lacks, by its answer to the batches up to seq.
type ask struct {
	seq     uint64
	section uint16
	key     []byte
}

// maxAsks is how many keys may wait until the sender's goroutine looks at them. Others are asked for
// again.
const maxAsks = 256

// settleBatches is about how many batches it takes until what is logged now is sent. If they are more, a
// value is sent twice; if they are less, the receiver asks again.
const settleBatches = 8

// asked notes the keys that the receiver lacks.
func (s *Sender) asked(seq uint64, lacks []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(lacks) > 0 && len(s.asks) < maxAsks {
		var section uint16
		var key []byte
		section, key, lacks = replica.NextLack(lacks)
		s.asks = append(s.asks, ask{seq, section, bytes.Clone(key)})
	}
	s.rouse()
}

// takeAsks returns what was asked for, as far as the receiver still lacks it.
func (s *Sender) takeAsks() []ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	asks := slices.DeleteFunc(s.asks, func(a ask) bool { return !s.machine.Lacked(a.seq, engine.PartitionOf(a.section)) })
	s.asks = nil
	return asks
}

// sendAnew has a piece of a value logged that the receiver lacks, and reports whether there was one.
func (s *Sender) sendAnew() bool {
	under := len(s.anew)
	for _, a := range s.takeAsks() {
		p := engine.PartitionOf(a.section)
		if a.seq <= s.sent[p] || slices.Contains(s.anew[:under], p) {
			continue // changes that were ahead of the value have made the receiver ask again
		}
		if s.cfg.Engine.SendAnew(a.section, s.feed, a.key, s.cfg.UnixMilli()) && !slices.Contains(s.anew[under:], p) {
			s.anew = append(s.anew, p)
		}
	}
	if len(s.anew) == 0 || s.paused() || !s.roomForSnapshot() {
		return false
	}
	p := s.anew[0]
	_, done, further := s.logPiece(p, engine.WalkEnd)
	if done {
		s.anew = s.anew[1:]
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sent == nil {
			s.sent = make(map[uint16]uint64)
		}
		s.sent[p] = s.machine.Made() + settleBatches
	}
	return further
}
