package node

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// InternalSecret returns what members prove to know on a node's data port: the
// cluster's secret, or a key derived from the clients' password if there is only
// that, or nil, and then everybody is believed. Node and proxy must derive it
// alike. secret is not copied.
func InternalSecret(secret []byte, pass string) []byte {
	if secret != nil || pass == "" {
		return secret
	}
	sum := sha256.Sum256([]byte("dunlin internal secret\x00" + pass))
	return sum[:]
}

// proof is the HMAC-SHA256 by which a member shows that it knows the secret: over
// the node's nonce and what it says of itself, so that neither can be used again.
func proof(secret, nonce []byte, fields ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(nonce)
	for _, f := range fields {
		h.Write([]byte{'|'})
		h.Write(f)
	}
	return h.Sum(nil)
}

// maxPeerReply bounds what a member's reply may take: the largest is a table.
const maxPeerReply = 8 << 20

// peer is a short-lived connection to another node, used by one goroutine that
// may block. (What must be fast goes over the loops.)
type peer struct {
	addr string
	conn net.Conn
	in   []byte // received, and not yet used
	stop func() bool
}

// Dialer connects to the data port of a node.
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// dialPeer connects by dial, plain TCP if that is nil, and authenticates. Everything done
// with the peer ends with ctx.
func dialPeer(ctx context.Context, dial Dialer, addr string, secret []byte, boot int64) (*peer, error) {
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
	}
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to node %s: %w", addr, err)
	}
	p := &peer{addr: addr, conn: c}
	p.stop = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	if err := p.authenticate(secret, boot); err != nil {
		p.close()
		return nil, fmt.Errorf("cannot authenticate at node %s: %w", addr, err)
	}
	return p, nil
}

func (p *peer) close() {
	p.stop()
	p.conn.Close()
}

// authenticate says that this is a member; with a secret it proves that.
func (p *peer) authenticate(secret []byte, boot int64) error {
	name := strconv.AppendInt(nil, boot, 10)
	if secret == nil {
		_, err := p.call("PEER", string(name), "")
		return err
	}
	reply, err := p.call("CHALLENGE")
	if err != nil {
		return err
	}
	nonce, ok := resp.DecodeBulk(reply)
	if !ok {
		return fmt.Errorf("challenge is %q, want a bulk string", reply)
	}
	_, err = p.call("PEER", string(name), string(proof(secret, nonce, name)))
	return err
}

// take hands a table over and returns the epoch that the node obeys then, and the node's name.
func (p *peer) take(table []byte) (epoch uint64, name string, err error) {
	reply, err := p.call("TAKE", string(table))
	if err != nil {
		return 0, "", err
	}
	text, _ := resp.DecodeBulk(reply)
	fields := strings.Fields(string(text))
	if len(fields) != 3 || fields[0] != "OK" {
		return 0, "", fmt.Errorf("reply is %q, want OK, an epoch and a name", reply)
	}
	epoch, err = strconv.ParseUint(fields[1], 10, 64)
	return epoch, fields[2], err
}

// call sends DUNLIN with the arguments and returns the whole reply, which is
// valid until the next call. An error reply is returned as error.
func (p *peer) call(args ...string) ([]byte, error) {
	request := [][]byte{[]byte("DUNLIN")}
	for _, a := range args {
		request = append(request, []byte(a))
	}
	if _, err := p.conn.Write(resp.AppendRequest(nil, request...)); err != nil {
		return nil, err
	}
	p.in = p.in[:0]
	var scanner resp.Scanner
	piece := make([]byte, 16<<10)
	for {
		switch scanner.Scan(p.in) {
		case resp.Done:
			reply := p.in[:scanner.Len()]
			if resp.IsError(reply) {
				return nil, fmt.Errorf("node %s answers %q", p.addr, strings.TrimSpace(string(reply[1:])))
			}
			return reply, nil
		case resp.Malformed:
			return nil, fmt.Errorf("node %s answers what is no reply", p.addr)
		}
		if len(p.in) > maxPeerReply {
			return nil, fmt.Errorf("node %s answers more than %d bytes", p.addr, maxPeerReply)
		}
		n, err := p.conn.Read(piece)
		if err != nil {
			return nil, err
		}
		p.in = append(p.in, piece[:n]...)
	}
}
