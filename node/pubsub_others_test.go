package node

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/dunlin-cache/dunlin/internal/member"
)

// TestNodesAreAskedAtOnce: a node that cannot be reached keeps nobody from being asked, and is not waited for when a
// table gives what it had to others.
func TestNodesAreAskedAtOnce(t *testing.T) {
	var hangs atomic.Pointer[string] // the address that the third node does not reach
	asked := make(chan string, 16)
	nodes, table, _ := startLeveledTrio(t, func(c *Config) {
		c.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			if hung := hangs.Load(); hung != nil && *hung == addr && c.ID == "c" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return toldOfQuestions{conn, addr, asked}, err
		}
	})
	asks := nodes[2]
	asks.SetRelay(&fakeRelay{n: asks})
	addr := nodes[0].Addr()
	hangs.Store(&addr)
	c := dial(t, asks.Addr())
	c.send("PUBSUB NUMSUB none")
	eventually(t, "the second node is asked", func() bool { return len(asked) > 0 && <-asked == nodes[1].Addr() })
	install(t, tableWithout(table, 0), nodes[1], asks)
	c.wantNext("1) \"none\"\n2) (integer) 0")
}

// toldOfQuestions is a connection that tells when it asks a node.
type toldOfQuestions struct {
	net.Conn
	addr  string
	asked chan<- string
}

func (c toldOfQuestions) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("\r\n"+member.VerbEach+"\r\n")) {
		select {
		case c.asked <- c.addr:
		default:
		}
	}
	return c.Conn.Write(b)
}
