package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// pace is how fast the long commands of a loop go on beside other commands. A command of more than
// freeChunks chunks is long. All of them together have one chunk on its way, and rest behind it restFactor
// times as long as it took: nodes work on a chunk for as long as on hundreds of other commands, so a few
// clients that send long ones would take the nodes from everybody else. A busy node takes longer, and gets
// more rest.
type pace struct {
	flying  *fan          // the latest chunk of a long command, until it has its replies
	sent    time.Duration // when it was
	until   time.Duration // when the next chunk may be sent
	resting []*chunked    // commands that wait for that
	end     *netloop.Timer
}

const (
	freeChunks = 8
	restFactor = 5
	// restLimit bounds a rest: a chunk that waited for a failover says nothing about how busy nodes are.
	restLimit = 100 * time.Millisecond
	// flightLimit is how long the others wait for a chunk that does not come back: its client may have
	// gone, or its node.
	flightLimit = 250 * time.Millisecond
)

// isLong reports whether the command is one that rests.
func (c *chunked) isLong() bool { return c.cuts >= freeChunks }

// mustRest reports whether the next chunk has to wait, because other commands come.
func (c *chunked) mustRest() bool {
	w := c.s.w
	return c.isLong() && w.hasOthers() && w.loop.Clock() < w.pace.until
}

// rest has the command go on when it may. It must rest.
func (c *chunked) rest() {
	c.rests = true
	p := &c.s.w.pace
	if p.resting = append(p.resting, c); p.end == nil {
		c.s.w.endRests()
	}
}

// longChunkSent notes that a chunk of a long command was sent.
func (w *worker) longChunkSent(f *fan) {
	p, now := &w.pace, w.loop.Clock()
	p.flying, p.sent, p.until = f, now, now+flightLimit
}

// chunkCame begins the rest behind a chunk, if it is the latest one of a long command.
func (w *worker) chunkCame(f *fan) {
	p, now := &w.pace, w.loop.Clock()
	if p.flying != f {
		return
	}
	p.flying, p.until = nil, now+min(restFactor*(now-p.sent), restLimit)
	w.endRests()
}

// endRests lets the commands go on that rest, now or when they may.
func (w *worker) endRests() {
	p := &w.pace
	if p.end != nil {
		p.end.Stop()
		p.end = nil
	}
	switch left := p.until - w.loop.Clock(); {
	case len(p.resting) == 0:
	case left > 0:
		p.end = w.loop.After(left, w.endRests)
	default:
		all := p.resting
		p.resting = nil
		for _, c := range all {
			c.rests = false
			c.goOn()
		}
	}
}
