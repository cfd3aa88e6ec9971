package node

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// lenders keeps connections to nodes that lend values to commands of this one, or publish for them: a few for each,
// while they are used now and then.
type lenders struct {
	node *Node

	mu     sync.Mutex
	closed bool
	idle   map[string][]*lender // by address; the last one was used last
}

// lender is a connection to a node that lends, used by one goroutine.
type lender struct {
	*member.Peer
	cancel context.CancelFunc // ends the context of the Peer
	timer  *time.Timer        // while it is idle
}

const (
	// idleLenders is how many idle connections to one node are kept at most, and lenderIdle is for how long.
	idleLenders = loansAtOnce
	lenderIdle  = 30 * time.Second
)

// borrow asks the node at an address for a value, see member.Peer.Lend. It gives up when ctx ends.
func (l *lenders) borrow(
	ctx context.Context, addr string, database uint8, key []byte, versioned bool, begin func(n int) (io.Writer, error),
) (lent member.Lent, err error) {
	err = l.ask(ctx, addr, func(p *member.Peer) (err error) {
		lent, err = p.Lend(database, key, versioned, begin)
		return err
	})
	return lent, err
}

// cede has the node at an address delete a key that it has lent with that version.
func (l *lenders) cede(ctx context.Context, addr string, database uint8, key, version []byte) (ceded bool, err error) {
	err = l.ask(ctx, addr, func(p *member.Peer) (err error) {
		ceded, err = p.Cede(database, key, version)
		return err
	})
	return ceded, err
}

// ask calls f with a connection to the node, which is kept if it is in step behind f.
func (l *lenders) ask(ctx context.Context, addr string, f func(p *member.Peer) error) error {
	p := l.take(addr)
	if p == nil {
		var err error
		if p, err = l.dial(ctx, addr); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, p.cancel)
	err := f(p.Peer)
	if inStep := stop() && (err == nil || isRefusal(err)); inStep {
		l.give(p)
	} else {
		p.close()
	}
	return err
}

func (l *lenders) dial(ctx context.Context, addr string) (*lender, error) {
	cfg := &l.node.cfg
	own, cancel := context.WithCancel(l.node.ctx)
	stop := context.AfterFunc(ctx, cancel)
	p, err := member.DialPeer(own, cfg.Dialer, addr, cfg.Secret.First(), cfg.Boot)
	switch {
	case err != nil:
		cancel()
		return nil, err
	case !stop():
		p.Close()
		return nil, ctx.Err()
	}
	return &lender{Peer: p, cancel: cancel}, nil
}

func (p *lender) close() {
	p.Close()
	p.cancel()
}

// take returns an idle connection to the node; nil if there is none.
func (l *lenders) take(addr string) *lender {
	l.mu.Lock()
	defer l.mu.Unlock()
	for idle := l.idle[addr]; len(idle) > 0; idle = l.idle[addr] {
		p := idle[len(idle)-1]
		l.dropLocked(addr, len(idle)-1)
		if p.timer.Stop() {
			return p
		}
	}
	return nil
}

// give keeps a connection for the next one who asks, or closes it.
func (l *lenders) give(p *lender) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.idle[p.Addr]) == idleLenders {
		p.close()
		return
	}
	if l.idle == nil {
		l.idle = make(map[string][]*lender)
	}
	p.timer = time.AfterFunc(lenderIdle, func() { l.expire(p) })
	l.idle[p.Addr] = append(l.idle[p.Addr], p)
}

// expire closes a connection that was idle for long. Its timer has fired, so nobody takes it any more.
func (l *lenders) expire(p *lender) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.idle[p.Addr] {
		if other == p {
			l.dropLocked(p.Addr, i)
			break
		}
	}
	p.close()
}

// dropLocked takes the i-th idle connection of a node from the list.
func (l *lenders) dropLocked(addr string, i int) {
	idle := l.idle[addr]
	copy(idle[i:], idle[i+1:])
	idle[len(idle)-1] = nil
	if l.idle[addr] = idle[:len(idle)-1]; len(idle) == 1 {
		delete(l.idle, addr)
	}
}

// close closes all idle connections. No other is kept from now on.
func (l *lenders) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, idle := range l.idle {
		for _, p := range idle {
			if p.timer.Stop() {
				p.close()
			}
		}
	}
	l.idle = nil
}
