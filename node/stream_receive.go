package node

import (
	"encoding/binary"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// copyTaker says what becomes of a sender's stream here.
type copyTaker interface {
	engine.Taker
	heard()                // from the sender, just now
	void()                 // the sender begins anew: what it feeds is no copy any more
	reopened()             // the sender goes on, and may not have heard what was refused
	takeRefused() []uint16 // what it feeds in vain, since the last call, or ever if reopened was called since
}

// streams are what this node knows of the streams that it gets.
type streams struct {
	mu     sync.Mutex
	from   map[string]*stream
	pruned time.Time
	// takers gives each sender its taker. Set before the first stream comes; nil takes nothing.
	takers func(source string) copyTaker
}

// stream is that of one sender, over all its connections.
type stream struct {
	node *Node

	mu         sync.Mutex // held while a batch is applied; connections of different loops may contend for it
	conn       *conn      // the one that may go on; nil: none
	taker      copyTaker
	generation uint64
	last       uint64               // batch applied
	values     map[uint16]*incoming // that are not whole yet, by partition
	ended      time.Time            // when conn was closed
}

// streamMemory is for how long a stream without a connection is remembered. Its sender gives it up earlier.
const streamMemory = 2 * awayLimit

// openStream: DUNLIN STREAM name generation
func openStream(r *request) {
	generation, err := strconv.ParseUint(string(r.Args[3]), 10, 64)
	if err != nil || generation == 0 {
		r.breakStream(errBadStream)
		return
	}
	s := r.node.streams.of(r.node, string(r.Args[2]), time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, r.conn.stream = r.conn, s
	if s.generation != generation {
		s.generation, s.last = generation, 0
		s.dropValues()
		s.taker.void()
	} else {
		s.taker.reopened()
	}
	s.taker.heard()
	r.ReplyInt(int64(s.last))
}

// of returns the stream of a sender.
func (all *streams) of(n *Node, name string, now time.Time) *stream {
	all.mu.Lock()
	defer all.mu.Unlock()
	if now.Sub(all.pruned) > streamMemory {
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

// drop gives up what is on its way in.
func (all *streams) drop() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range all.from {
		s.mu.Lock()
		s.dropValues()
		s.mu.Unlock()
	}
}

// over tells whether the stream will not be continued.
func (s *stream) over(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil || now.Sub(s.ended) < streamMemory {
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
		s.conn, s.ended = nil, time.Now()
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

// takeBatch takes the next batch of a stream, whose number and sending time are arguments 2 and 3, and answers how far it has come.
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
	switch {
	case s.conn != r.conn:
		r.breakStream(errNoStream)
		return
	case seq > s.last+1:
		r.breakStream(errStreamGap)
		return
	case seq == s.last+1:
		if !apply(s, r.Now-sent) {
			r.breakStream(errBadStream)
			return
		}
		s.last = seq
	}
	s.taker.heard()
	r.longEnough = true
	r.replyTaken(s.last, s.taker.takeRefused())
}

// breakStream answers an error after which nothing of the connection can be trusted.
func (r *request) breakStream(text string) {
	r.Fail(text)
	r.conn.Closing = true
}

// replyTaken answers a batch.
func (r *request) replyTaken(seq uint64, refused []uint16) {
	if len(refused) == 0 {
		r.ReplyInt(int64(seq))
		return
	}
	r.Out = resp.AppendArray(r.Out, 2)
	r.ReplyInt(int64(seq))
	r.Out = resp.AppendBulkHeader(r.Out, 2*len(refused))
	for _, p := range refused {
		r.Out = binary.LittleEndian.AppendUint16(r.Out, p)
	}
	r.Out = append(r.Out, "\r\n"...)
}

// Admits implements engine.Taker.
func (s *stream) Admits(p uint16) bool { return s.taker.Admits(p) }

// Marked implements engine.Taker. What was on its way before does not count any more.
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
