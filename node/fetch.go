package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// FetchTable reads the table of the node whose data port is addr (DUNLIN TABLE), which it
// reaches by dial; nil is plain TCP. secret is what InternalSecret returns. The table is nil if the node has none
// yet. A member's gossip fetches newer tables with this.
func FetchTable(ctx context.Context, dial Dialer, addr string, secret []byte) (*ring.Table, error) {
	reply, err := fetch(ctx, dial, addr, secret, "TABLE")
	if err != nil {
		return nil, err
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

// FetchReport reads which copies the node whose data port is addr has in sync (DUNLIN REPORT). The report's Node is for the
// caller to fill in: it knows whom it asked.
func FetchReport(ctx context.Context, dial Dialer, addr string, secret []byte) (*ring.Report, error) {
	reply, err := fetch(ctx, dial, addr, secret, "REPORT")
	if err != nil {
		return nil, err
	}
	report, err := decodeReport(addr, reply)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch report from %s: %w", addr, err)
	}
	return report, nil
}

// fetch asks a node one question.
func fetch(ctx context.Context, dial Dialer, addr string, secret []byte, what string) (reply []byte, err error) {
	p, err := dialPeer(ctx, dial, addr, secret, 0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if reply, err = p.call(what); err != nil {
		return nil, fmt.Errorf("cannot fetch %s from %s: %w", strings.ToLower(what), addr, err)
	}
	return reply, nil
}

// decodeReport reads "*3 :epoch $issuer $bitmap".
func decodeReport(addr string, reply []byte) (*ring.Report, error) {
	var fields [3][]byte
	n, header, ok := resp.DecodeArray(reply)
	for rest, i := reply[header:], 0; ok && n == len(fields) && i < n; i++ {
		var scan resp.Scanner
		ok = scan.Scan(rest) == resp.Done
		fields[i], rest = rest[:scan.Len()], rest[scan.Len():]
	}
	epoch, ok1 := resp.DecodeInt(fields[0])
	issuer, ok2 := resp.DecodeBulk(fields[1])
	bitmap, ok3 := resp.DecodeBulk(fields[2])
	if !ok || !ok1 || !ok2 || !ok3 || epoch < 0 {
		return nil, fmt.Errorf("malformed reply %.80q", reply)
	}
	return ring.DecodeReport(addr, ring.Version{Epoch: uint64(epoch), Issuer: string(issuer)}, bitmap)
}
