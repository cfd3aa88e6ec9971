package proxy

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/netloop"
)

// pace is how fast work of a loop goes on for which nodes take as long as for hundreds of other commands. All of it
// together has one piece on its way, and rests behind it restFactor times as long as it took: a few clients that ask
// for such work would take the nodes from everybody else. A busy node takes longer, and gets more rest. A loop has
// two paces:
//
//   - that of long commands, of more than freeChunks chunks, while other commands come. A piece is a chunk.
//   - that of commands over the whole cluster that only look, while the proxy's loops are strained. A piece is all of
//     a command.
type pace struct {
	loop    *netloop.Loop
	flying  any           // the latest piece, until it has its replies
	sent    time.Duration // when it was
	until   time.Duration // when the next piece may be sent
	resting []func()      // go on then
	end     *netloop.Timer
}

const (
	freeChunks = 8
	restFactor = 5
	// restLimit bounds a rest: a piece that waited for a failover says nothing about how busy nodes are.
	restLimit = 100 * time.Millisecond
	// flightLimit is how long the others wait for a piece that does not come back: its client may have
	// gone, or its node.
	flightLimit = 250 * time.Millisecond
)

// isLong reports whether the command is one that rests.
func (c *chunked) isLong() bool { return c.cuts >= freeChunks }

// mustRest reports whether the next chunk has to wait, because other commands come.
func (c *chunked) mustRest() bool {
	w := c.s.w
	return c.isLong() && w.hasOthers() && w.pace.mustRest()
}

// rest has the command go on when it may. It must rest.
func (c *chunked) rest() {
	c.rests = true
	c.s.w.pace.rest(func() {
		c.rests = false
		c.goOn()
	})
}

// mustRest reports whether the next piece has to wait, if others want to use the nodes.
func (p *pace) mustRest() bool { return p.loop.Clock() < p.until }

// rest calls goOn when the next piece may be sent.
func (p *pace) rest(goOn func()) {
	if p.resting = append(p.resting, goOn); p.end == nil {
		p.endRests()
	}
}

// begin notes that a piece was sent.
func (p *pace) begin(piece any) {
	now := p.loop.Clock()
	p.flying, p.sent, p.until = piece, now, now+flightLimit
}

// came begins the rest behind a piece, if it is the latest one.
func (p *pace) came(piece any) {
	now := p.loop.Clock()
	if p.flying != piece {
		return
	}
	p.flying, p.until = nil, now+min(restFactor*(now-p.sent), restLimit)
	p.endRests()
}

// endRests has those go on that rest, now or when they may.
func (p *pace) endRests() {
	if p.end != nil {
		p.end.Stop()
		p.end = nil
	}
	switch left := p.until - p.loop.Clock(); {
	case len(p.resting) == 0:
	case left > 0:
		p.end = p.loop.After(left, p.endRests)
	default:
		all := p.resting
		p.resting = nil
		for _, goOn := range all {
			goOn()
		}
	}
}
