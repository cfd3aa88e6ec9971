package proxy

import (
	"fmt"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// open starts to connect a closed pipe unless it failed a moment ago. What wants to use it is held meanwhile.
func (p *pipe) open() {
	if p.state != pipeClosed || p.w.loop.Now() < p.retryAt || p.peer.gone {
		return
	}
	now := p.w.loop.Now()
	if !p.failing(now) {
		p.failingSince = now
	}
	p.state = pipeDialing
	p.silent = 0
	p.attempt++
	attempt := p.attempt
	opened := func(c *netloop.Conn) netloop.Handler {
		if p.attempt != attempt || p.state != pipeDialing {
			c.Close(nil)
			return abandoned{}
		}
		p.connected(c)
		return p
	}
	failed := func(err error) {
		if p.attempt == attempt {
			p.fail(fmt.Errorf("cannot connect: %w", err))
		}
	}
	if by := p.w.proxy.cfg.Dialer; by != nil {
		p.w.loop.DialBy(by, p.peer.member.Addr, dialTimeout, opened, failed)
	} else {
		p.w.loop.Dial(p.peer.member.Addr, dialTimeout, opened, failed)
	}
}

// outOfReach opens the pipe if it is closed, and tells since when its node cannot be reached: 0 if it is open.
func (p *pipe) outOfReach() time.Duration {
	if p.state == pipeOpen {
		return 0
	}
	p.open()
	return p.peer.failingSince()
}

// failing reports whether attempts to open the pipe go on in vain. When nobody has asked for a while, a new series begins.
func (p *pipe) failing(now time.Duration) bool {
	return p.failingSince != 0 && (p.state != pipeClosed || now-p.retryAt <= dialTimeout)
}

// probe has the pipe find out whether its node can be reached.
func (p *pipe) probe() {
	switch {
	case p.state == pipeClosed:
		p.open()
	case p.state == pipeOpen && p.inflight.len() == 0:
		p.send(request{}, resp.AppendRequest(nil, []byte("PING")), nil)
	}
}

// abandoned handles a connection that was given up while it was being made.
type abandoned struct{}

func (abandoned) OnData(_ *netloop.Conn, in []byte) int { return len(in) }
func (abandoned) OnClose(*netloop.Conn, error)          {}

// connected introduces this pipe. With a cluster secret the node first gives a nonce, so that a recorded greeting is of no use.
func (p *pipe) connected(c *netloop.Conn) {
	p.conn = c
	c.SetAccount(p.w.pending)
	if p.w.proxy.cfg.Secret != nil {
		p.state = pipeChallenged
		p.greet(member.AppendRequest(nil, member.VerbChallenge))
		return
	}
	p.introduce(nil)
}

// introduce sends DUNLIN PIPE. The generation grows with every connection of this worker, so that the node can throw away
// what it has not executed yet of an older one.
func (p *pipe) introduce(nonce []byte) {
	p.state = pipeOpening
	p.w.generation++
	description := member.Pipe{
		Boot: p.w.proxy.cfg.Boot, Loop: p.w.loop.Index(), Kind: p.lane.kind,
		Generation: p.w.generation, Version: p.lane.version,
	}
	if t := p.w.table; t != nil && t.Level > 0 {
		description.Level = ring.Level
	}
	p.greet(member.AppendPipe(nil, description, p.w.proxy.cfg.Secret, nonce))
}

// greet writes one of the few bytes before the pipe is open; a fresh socket always takes them.
func (p *pipe) greet(b []byte) {
	switch n, err := p.conn.TryWrite(b); {
	case err != nil:
		p.fail(fmt.Errorf("cannot greet node: %w", err))
	case n < len(b):
		p.fail(fmt.Errorf("cannot greet node: wrote %d of %d bytes", n, len(b)))
	}
}

// greeted handles the replies before the pipe is open.
func (p *pipe) greeted(reply []byte) {
	if p.state == pipeChallenged {
		if nonce, ok := resp.DecodeBulk(reply); ok && reply[0] == '$' {
			p.introduce(nonce)
			return
		}
	} else if string(reply) == "+OK\r\n" {
		p.opened()
		return
	}
	p.fail(fmt.Errorf("node refused the pipe: %q", reply))
}

func (p *pipe) opened() {
	p.state = pipeOpen
	p.backoff, p.retryAt, p.failingSince = 0, 0, 0
	p.heard = false
	p.w.stats.PipesOpened++
	p.w.retryHeld()
}
