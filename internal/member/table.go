package member

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// FetchTable reads the table of the node whose data port is addr, which it reaches by dial; nil is
// plain TCP. secret is what this process proves to know, nil for nothing. The table is nil if the node has none yet.
func FetchTable(ctx context.Context, dial Dialer, addr string, secret []byte) (*ring.Table, error) {
	return FetchTableOf(ctx, dial, addr, "", secret)
}

// FetchTableOf is FetchTable, but the table must be that of the node of that name, and of the same boot. Empty: of
// whoever listens there.
func FetchTableOf(ctx context.Context, dial Dialer, addr, name string, secret []byte) (*ring.Table, error) {
	var args []string
	if name != "" {
		args = append(args, name)
	}
	reply, err := ask(ctx, dial, addr, secret, VerbTable, args...)
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

// FetchReport reads which copies the node whose data port is addr has in sync. The report's Node is
// for the caller to fill in: it knows whom it asked.
func FetchReport(ctx context.Context, dial Dialer, addr string, secret []byte) (*ring.Report, error) {
	reply, err := ask(ctx, dial, addr, secret, VerbReport)
	if err != nil {
		return nil, err
	}
	report, err := parseReport(addr, reply)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch report from %s: %w", addr, err)
	}
	return report, nil
}

// ask asks a node one question.
func ask(ctx context.Context, dial Dialer, addr string, secret []byte, verb string, args ...string) (reply []byte, err error) {
	p, err := DialPeer(ctx, dial, addr, secret, 0)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if reply, err = p.Call(verb, args...); err != nil {
		return nil, fmt.Errorf("cannot ask %s of %s: %w", strings.ToLower(verb), addr, err)
	}
	return reply, nil
}

// AppendReport appends the reply to REPORT: "*3 :epoch $issuer $partitions".
func AppendReport(dst []byte, r *ring.Report) []byte {
	dst = resp.AppendInt(resp.AppendArray(dst, 3), int64(r.Version.Epoch))
	dst = resp.AppendBulkString(dst, r.Version.Issuer)
	return resp.AppendBulk(dst, r.Synced[:])
}

// parseReport reads what AppendReport wrote.
func parseReport(addr string, reply []byte) (*ring.Report, error) {
	var fields [3][]byte
	n, header, ok := resp.DecodeArray(reply)
	for rest, i := reply[header:], 0; ok && n == len(fields) && i < n; i++ {
		var scan resp.Scanner
		ok = scan.Scan(rest) == resp.Done
		fields[i], rest = rest[:scan.Len()], rest[scan.Len():]
	}
	epoch, ok1 := resp.DecodeInt(fields[0])
	issuer, ok2 := resp.DecodeBulk(fields[1])
	synced, ok3 := resp.DecodeBulk(fields[2])
	if !ok || !ok1 || !ok2 || !ok3 || epoch < 0 {
		return nil, fmt.Errorf("malformed reply %.80q", reply)
	}
	return ring.DecodeReport(addr, ring.Version{Epoch: uint64(epoch), Issuer: string(issuer)}, synced)
}

// Taken is the acknowledgement of TAKE.
type Taken struct {
	Epoch uint64 // that the node obeys now
	Name  string // of the node
	// Held has the partitions that the table takes from the node, but that it still holds. It is
	// empty if the table's level is below ring.HoldLevel.
	Held ring.PartitionSet
}

// AppendTaken appends the acknowledgement of TAKE: "+OK epoch name", and if something is held
// "*2 +OK epoch name $partitions".
func AppendTaken(dst []byte, t *Taken) []byte {
	if !t.Held.Empty() {
		dst = resp.AppendArray(dst, 2)
	}
	dst = resp.AppendSimple(dst, "OK "+strconv.FormatUint(t.Epoch, 10)+" "+t.Name)
	if !t.Held.Empty() {
		dst = resp.AppendBulk(dst, t.Held[:])
	}
	return dst
}

// parseTaken reads what AppendTaken wrote.
func parseTaken(reply []byte) (t Taken, err error) {
	text, ok := reply, true
	if n, header, isArray := resp.DecodeArray(reply); isArray {
		var scan resp.Scanner
		if ok = n == 2 && scan.Scan(reply[header:]) == resp.Done; ok {
			var held *ring.PartitionSet
			text = reply[header : header+scan.Len()]
			set, _ := resp.DecodeBulk(reply[header+scan.Len():])
			if held, ok = ring.DecodePartitionSet(set); ok {
				t.Held = *held
			}
		}
	}
	text, _ = resp.DecodeBulk(text)
	fields := strings.Fields(string(text))
	if !ok || len(fields) != 3 || fields[0] != "OK" {
		return Taken{}, fmt.Errorf("reply is %.80q, want OK, an epoch and a name, and what is held", reply)
	}
	t.Name = fields[2]
	t.Epoch, err = strconv.ParseUint(fields[1], 10, 64)
	return t, err
}

// Take hands an encoded table over, and returns how the node acknowledges it.
func (p *Peer) Take(table []byte) (Taken, error) {
	reply, err := p.Call(VerbTake, string(table))
	if err != nil {
		return Taken{}, err
	}
	return parseTaken(reply)
}
