package proxy

import (
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/proxy/order"
	"github.com/dunlin-cache/dunlin/ring"
)

// dial connects the pipe and introduces it to its node.
func (p *pipe) dial() {
	attempt := p.Attempt()
	opened := func(c *netloop.Conn) netloop.Handler {
		generation, ok := p.w.order.Connected(p.Pipe, attempt)
		if !ok {
			c.Close(nil)
			return abandoned{}
		}
		p.connected(c, generation)
		return p
	}
	failed := func(err error) {
		if p.Attempt() == attempt {
			p.fail(fmt.Errorf("cannot connect: %w", err))
		}
	}
	if by := p.w.proxy.cfg.Dialer; by != nil {
		p.w.loop.DialBy(by, p.Node.Member.Addr, order.DialTimeout, opened, failed)
	} else {
		p.w.loop.Dial(p.Node.Member.Addr, order.DialTimeout, opened, failed)
	}
}

// abandoned handles a connection that was given up before it was open.
type abandoned struct{}

func (abandoned) OnData(_ *netloop.Conn, in []byte) int { return len(in) }
func (abandoned) OnClose(*netloop.Conn, error)          {}

// connected introduces this pipe to its node. With a cluster secret it first asks the node for a
// nonce, so that a recorded greeting cannot be replayed.
func (p *pipe) connected(c *netloop.Conn, generation uint64) {
	p.conn, p.generation = c, generation
	c.SetAccount(p.w.pending)
	if p.challenge = p.w.proxy.cfg.Secret.First() != nil; p.challenge {
		p.greet(member.AppendRequest(nil, member.VerbChallenge))
		return
	}
	p.introduce(nil)
}

// introduce sends DUNLIN PIPE.
func (p *pipe) introduce(nonce []byte) {
	p.challenge = false
	description := member.Pipe{
		Boot: p.w.proxy.cfg.Boot, Loop: p.w.loop.Index(), Kind: p.Lane.Kind,
		Generation: p.generation, Version: p.Lane.Version, NoTouch: p.Lane.NoTouch,
		Tracks: p.Lane.Tracks,
	}
	if p.w.order.Level() > 0 {
		description.Level = ring.Level
	}
	p.greet(member.AppendPipe(nil, description, p.w.proxy.cfg.Secret.First(), nonce))
}

// greet writes a greeting. A new socket always has room for its few bytes.
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
	if p.challenge {
		if nonce, ok := resp.DecodeBulk(reply); ok && reply[0] == '$' {
			p.introduce(nonce)
			return
		}
	} else if later, ok := member.ParseWelcome(reply); ok {
		p.AnswersLater = later
		p.heard, p.tells = false, p.Lane.Tracks || p.Lane.Kind == member.Listening
		p.w.stats.PipesOpened++
		p.w.order.Opened(p.Pipe, p.w.loop.Now())
		if p.Lane.Kind == member.Listening {
			p.w.listening.lookAtAll()
		}
		p.w.act()
		return
	}
	p.fail(fmt.Errorf("node refused the pipe: %q", reply))
}
