package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// MaxReply bounds a member's reply, in bytes. The largest reply is a settings document.
const MaxReply = ring.MaxSettingsBytes + 64<<10

// Peer is a connection to a node, used by one goroutine that may block. What must be fast goes over
// the loops instead.
type Peer struct {
	Addr string   // of the node
	Conn net.Conn // its deadline is in the past once the context of DialPeer has ended

	in      []byte // received; in[:used] was returned by Next
	used    int
	scanner resp.Scanner // of in[used:]
	stop    func() bool
	room    func(bytes int) bool // not nil: takes the memory for what is received
}

// ErrNoRoom says that there is no memory for a reply.
var ErrNoRoom = errors.New("there is no memory for the reply of a node")

// Dialer connects to the data port of a node.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// DialPeer connects by dial, plain TCP if that is nil, and authenticates. boot is that of the
// member that asks, 0 if it does not matter. Everything done with the peer ends with ctx. The
// caller must Close the peer.
func DialPeer(ctx context.Context, dial Dialer, addr string, secret []byte, boot int64) (*Peer, error) {
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to node %s: %w", addr, err)
	}
	p := &Peer{Addr: addr, Conn: c}
	p.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	if err := p.authenticate(secret, boot); err != nil {
		p.Close()
		return nil, fmt.Errorf("cannot authenticate at node %s: %w", addr, err)
	}
	return p, nil
}

// Close closes the connection.
func (p *Peer) Close() {
	p.stop()
	p.Conn.Close()
}

// authenticate says that this is a member; with a secret it proves that.
func (p *Peer) authenticate(secret []byte, boot int64) error {
	var nonce []byte
	if secret != nil {
		reply, err := p.Call(VerbChallenge)
		if err != nil {
			return err
		}
		var ok bool
		if nonce, ok = resp.DecodeBulk(reply); !ok {
			return fmt.Errorf("challenge is %q, want a bulk string", reply)
		}
	}
	_, err := p.exchange(AppendPeer(nil, boot, secret, nonce))
	return err
}

// Call sends a request and returns the whole reply, which is valid until the next call. An error
// reply is returned as an error.
func (p *Peer) Call(verb string, args ...string) ([]byte, error) {
	request := AppendVerb(nil, verb, len(args))
	for _, a := range args {
		request = resp.AppendBulkString(request, a)
	}
	return p.exchange(request)
}

// Refusal is the error that a node has answered with.
type Refusal struct{ Addr, Text string }

func (r *Refusal) Error() string { return fmt.Sprintf("node %s answers %q", r.Addr, r.Text) }

// exchange writes a request and returns its reply.
func (p *Peer) exchange(request []byte) ([]byte, error) {
	if _, err := p.Conn.Write(request); err != nil {
		return nil, err
	}
	p.in, p.used, p.scanner = p.in[:0], 0, resp.Scanner{}
	return p.receive()
}

// receive returns the next reply, which is valid until the next call.
func (p *Peer) receive() ([]byte, error) {
	for {
		reply, err := p.Next()
		switch {
		case err != nil:
			return nil, err
		case resp.IsError(reply):
			return nil, &Refusal{Addr: p.Addr, Text: strings.TrimSpace(string(reply[1:]))}
		case reply != nil:
			return reply, nil
		}
		if err := p.Fill(); err != nil {
			return nil, err
		}
	}
}

// Next returns the next of the replies that Fill has read, or nil if none of them is left whole. The
// result is valid until the next call of Fill.
func (p *Peer) Next() (reply []byte, err error) {
	switch p.scanner.Scan(p.in[p.used:]) {
	case resp.Done:
		reply = p.in[p.used : p.used+p.scanner.Len()]
		p.used += len(reply)
		return reply, nil
	case resp.Malformed:
		return nil, p.malformed()
	}
	if len(p.in)-p.used > MaxReply {
		return nil, fmt.Errorf("node %s sent a reply of more than %d bytes", p.Addr, MaxReply)
	}
	return nil, nil
}

// fillRoom is the least room for one read, in bytes.
const fillRoom = 4 << 10

// Fill reads what the node has sent, and waits until it has sent something.
func (p *Peer) Fill() error {
	p.in, p.used = p.in[:copy(p.in, p.in[p.used:])], 0
	if p.room == nil {
		p.in = slices.Grow(p.in, fillRoom)
	} else if cap(p.in)-len(p.in) < fillRoom {
		more := max(cap(p.in), fillRoom)
		if !p.room(more) {
			return ErrNoRoom
		}
		p.in = append(make([]byte, 0, cap(p.in)+more), p.in...) // Grow takes up to a quarter more than it is asked for
	}
	n, err := p.Conn.Read(p.in[len(p.in):cap(p.in)])
	p.in = p.in[:len(p.in)+n]
	return err
}
