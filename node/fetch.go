package node

import (
	"context"
	"fmt"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// FetchTable reads the table of the node whose data port is addr (DUNLIN TABLE), which it
// reaches by dial; nil is plain TCP. secret is what InternalSecret returns. The table is nil if the node has none
// yet. A member's gossip fetches newer tables with this.
func FetchTable(ctx context.Context, dial Dialer, addr string, secret []byte) (*ring.Table, error) {
	p, err := dialPeer(ctx, dial, addr, secret, 0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	reply, err := p.call("TABLE")
	if err != nil {
		return nil, fmt.Errorf("cannot fetch table from %s: %w", addr, err)
	}
	encoded, ok := resp.DecodeBulk(reply)
	if !ok {
		return nil, nil // the null
	}
	t, err := ring.DecodeTable(encoded)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch table from %s: %w", addr, err)
	}
	return t, nil
}
