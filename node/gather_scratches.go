package node

import (
	"sync"
	"time"
)

// scratches keeps scratches that no command uses now, with what is charged for them: to make one,
// and to give its memory back, takes longer than most commands that need it. Those that were not
// needed for a while go, and with them the goroutine that looks after that.
type scratches struct {
	node *Node

	mu      sync.Mutex
	idle    []*scratch // the last one was used last
	unused  int        // how many were idle all the time since watch has looked
	watched bool       // by a goroutine, until there is none
}

const (
	// scratchesKept is how many idle ones there are at most.
	scratchesKept = 4
	// scratchIdle is how often watch looks: they go within twice that.
	scratchIdle = 250 * time.Millisecond
)

// take returns an idle scratch; nil if there is none.
func (s *scratches) take() *scratch {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle) - 1
	if n < 0 {
		return nil
	}
	last := s.idle[n]
	s.idle[n] = nil
	s.idle, s.unused = s.idle[:n], min(s.unused, n)
	return last
}

// give keeps an empty scratch for the next one who takes it, or frees it. A job calls it.
func (s *scratches) give(x *scratch) {
	if !s.keep(x) {
		x.free()
	}
}

func (s *scratches) keep(x *scratch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == scratchesKept || s.node.ctx.Err() != nil {
		return false
	}
	s.idle = append(s.idle, x)
	if !s.watched {
		s.watched = true
		s.node.goJob(s.watch)
	}
	return true
}

// watch frees those that nobody has taken for a while, until there are no more.
func (s *scratches) watch() {
	for more := true; more; {
		s.node.pause(scratchIdle)
		var old []*scratch
		old, more = s.takeUnused()
		for _, x := range old {
			x.free()
		}
	}
}

// takeUnused returns those that were idle all the time since its last call, and whether there are
// others. When the node closes it returns all.
func (s *scratches) takeUnused() (unused []*scratch, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.unused
	if s.node.ctx.Err() != nil {
		n = len(s.idle)
	}
	unused = append(unused, s.idle[:n]...)
	rest := copy(s.idle, s.idle[n:])
	clear(s.idle[rest:])
	s.idle, s.unused = s.idle[:rest], rest
	s.watched = rest > 0
	return unused, s.watched
}
