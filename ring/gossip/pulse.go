package gossip

import (
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/internal/beat"
)

// A process that stood still (SIGSTOP, a frozen or suspended machine) does not notice by itself,
// and what it knew of the others is outdated when it resumes: they may have declared it dead and
// chosen another coordinator. So a goroutine beats, and code that is about to act on what it has
// gathered checks whether a beat was missed meanwhile.

const (
	beatInterval = 400 * time.Millisecond
	// standstill is the shortest pause between two beats that counts as one. The others need longer
	// to declare a member dead.
	standstill = time.Second
)

// pulse counts the standstills of this process.
type pulse struct {
	clock func() time.Duration // goes on while the machine is suspended: boottime.Now
	last  atomic.Int64         // of the beats, in nanoseconds by clock
	ended atomic.Uint64
}

// begin has the time since now count.
func (p *pulse) begin(clock func() time.Duration) {
	p.clock = clock
	p.last.Store(int64(clock()))
}

func (p *pulse) run(done <-chan struct{}) {
	timer := time.NewTimer(beat.Until(beatInterval))
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
		}
		p.ended.Store(p.standstills())
		p.last.Store(int64(p.clock()))
		timer.Reset(beat.Until(beatInterval))
	}
}

// standstills returns the number of standstills so far, including one that has just ended.
func (p *pulse) standstills() uint64 {
	n := p.ended.Load()
	if p.clock()-time.Duration(p.last.Load()) > standstill {
		n++
	}
	return n
}
