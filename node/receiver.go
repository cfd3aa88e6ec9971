package node

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/replica"
)

// copyTaker says what becomes of a sender's stream here.
type copyTaker interface {
	engine.Taker
	heard()                // from the sender, just now
	void()                 // the sender begins anew: what it feeds is no copy any more
	reopened()             // the sender goes on, and may not have heard what was refused
	takeRefused() []uint16 // what it feeds in vain, since the last call, or ever if reopened was called since
}

// streams are what this node knows of the streams that it receives.
type streams struct {
	mu     sync.Mutex
	from   map[string]*stream
	pruned time.Duration
	// takers gives each sender its taker. Set before the first stream arrives; nil takes nothing.
	takers func(source string) copyTaker
}

// stream is that of one sender, over all its connections.
type stream struct {
	node *Node

	mu      sync.Mutex // held while a batch is applied; connections of different loops may contend for it
	conn    *conn      // the one that may go on; nil: none
	taker   copyTaker
	inbound replica.Inbound
	values  map[uint16]*incoming // that are not whole yet, by partition
	ended   time.Duration        // when conn was closed, by the node's clock
}

// streamMemory is for how long a stream without a connection is remembered. Its sender gives it up
// earlier.
const streamMemory = 2 * replica.AwayLimit

// openStream: DUNLIN STREAM name generation
func openStream(r *request) {
	generation, err := strconv.ParseUint(string(r.Args[3]), 10, 64)
	if err != nil || generation == 0 {
		r.breakStream(errBadStream)
		return
	}
	s := r.node.streams.of(r.node, string(r.Args[2]))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, r.conn.stream = r.conn, s
	last, resumed := s.inbound.Open(generation)
	if resumed {
		s.taker.reopened()
	} else {
		s.dropValues()
		s.taker.void()
	}
	s.taker.heard()
	r.ReplyInt(int64(last))
}

// of returns the stream of a sender.
func (all *streams) of(n *Node, name string) *stream {
	now := n.monotonic()
	all.mu.Lock()
	defer all.mu.Unlock()
	if now-all.pruned > streamMemory {
		all.pruned = now
		for other, s := range all.from {
			if other != name && s.over(now) {
				delete(all.from, other)
			}
		}
	}
	s := all.from[name]
	if s == nil {
		s = &stream{node: n, taker: nobody{}}
		if all.takers != nil {
			s.taker = all.takers(name)
		}
		if all.from == nil {
			all.from = make(map[string]*stream)
		}
		all.from[name] = s
	}
	return s
}

// drop gives up the large values that are on their way in.
func (all *streams) drop() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.from {
		s.mu.Lock()
		s.dropValues()
		s.mu.Unlock()
	}
}

// over reports whether the stream will not go on.
func (s *stream) over(now time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || now-s.ended < streamMemory {
		return false
	}
	s.dropValues()
	return true
}

// closed is called when a connection of the stream is closed.
func (s *stream) closed(cn *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == cn {
		s.conn, s.ended = nil, s.node.monotonic()
	}
}

// takeEffects: DUNLIN EFFECTS seq milli payload. Effects of a newer node are refused by name.
func takeEffects(r *request) {
	effects := r.Args[4]
	malformed := engine.CheckEffects(effects)
	if unknown := (engine.UnknownEffect{}); errors.As(malformed, &unknown) {
		r.breakStream("ERR " + unknown.Error())
		return
	}
	r.takeBatch(func(s *stream, shift int64) bool {
		return malformed == nil && r.node.engine.Apply(effects, shift, r.Now, s) == nil
	})
}

// takeBatch takes a batch of a stream, whose number and sending time are arguments 2 and 3, and
// answers how far the stream has come.
func (r *request) takeBatch(apply func(s *stream, shift int64) bool) {
	s := r.conn.stream
	seq, err := strconv.ParseUint(string(r.Args[2]), 10, 64)
	sent, ok := resp.ParseInt(r.Args[3])
	switch {
	case s == nil:
		r.breakStream(errNoStream)
		return
	case err != nil || !ok:
		r.breakStream(errBadStream)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != r.conn {
		r.breakStream(errNoStream)
		return
	}
	switch s.inbound.Judge(seq) {
	case replica.Gap:
		r.breakStream(errStreamGap)
		return
	case replica.Next:
		if !apply(s, r.Now-sent) {
			r.breakStream(errBadStream)
			return
		}
		s.inbound.Applied()
	case replica.Repeated:
	}
	s.taker.heard()
	r.longEnough = true
	r.Out = replica.AppendAnswer(r.Out, s.inbound.Last(), s.taker.takeRefused())
}

// breakStream answers an error after which nothing of the connection can be trusted.
func (r *request) breakStream(text string) {
	r.Fail(text)
	r.conn.Closing = true
}

// Admits implements engine.Taker.
func (s *stream) Admits(p uint16) bool { return s.taker.Admits(p) }

// Marked implements engine.Taker. A value that was on its way before does not count any more.
func (s *stream) Marked(p uint16, m engine.Mark) {
	s.dropValue(p)
	s.taker.Marked(p, m)
}

// nobody takes nothing.
type nobody struct{}

func (nobody) Admits(uint16) bool         { return false }
func (nobody) Marked(uint16, engine.Mark) {}
func (nobody) heard()                     {}
func (nobody) void()                      {}
func (nobody) reopened()                  {}
func (nobody) takeRefused() []uint16      { return nil }
