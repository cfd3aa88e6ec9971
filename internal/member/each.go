package member

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A proxy sends a command over all keys to every node, about the partitions that it believes the
// node to own. It asks another node, or asks again, about the partitions that the answer does not
// cover:
//
//	DUNLIN EACH {partitions} DBSIZE  ──▶  *2 {partitions covered} :1234

// AppendEach appends the question to one node.
func AppendEach(dst []byte, wanted *ring.PartitionSet, command ...[]byte) []byte {
	dst = AppendVerb(dst, VerbEach, 1+len(command))
	dst = resp.AppendBulk(dst, wanted[:])
	for _, word := range command {
		dst = resp.AppendBulk(dst, word)
	}
	return dst
}

// ParseEach reads the arguments of EACH: the partitions wanted and the command, which are views.
func ParseEach(args [][]byte) (wanted *ring.PartitionSet, command [][]byte, ok bool) {
	wanted, ok = ring.DecodePartitionSet(args[0])
	return wanted, args[1:], ok
}

// AppendCovered begins the answer; the command's reply follows.
func AppendCovered(dst []byte, covered *ring.PartitionSet) []byte {
	return resp.AppendBulk(resp.AppendArray(dst, 2), covered[:])
}

// ParseAnswer takes an answer apart. The results are views of it.
func ParseAnswer(answer []byte) (covered *ring.PartitionSet, reply []byte, ok bool) {
	bitmap, reply, ok := splitPair(answer)
	if !ok {
		return nil, nil, false
	}
	set, ok := resp.DecodeBulk(bitmap)
	if !ok {
		return nil, nil, false
	}
	covered, ok = ring.DecodePartitionSet(set)
	return covered, reply, ok
}

// Each asks a node a question that AppendEach has made. It calls room for the memory of the answer as that comes, and
// fails with ErrNoRoom when there is none. The results are the caller's.
func (p *Peer) Each(question []byte, room func(bytes int) bool) (covered *ring.PartitionSet, reply []byte, err error) {
	p.in, p.room = nil, room
	answer, err := p.exchange(question)
	p.room = nil
	if err != nil {
		return nil, nil, err
	}
	covered, reply, ok := ParseAnswer(answer)
	if p.in, p.used = nil, 0; !ok {
		return nil, nil, p.malformed()
	}
	return covered, reply, nil
}

// splitPair takes an array of two apart.
func splitPair(array []byte) (first, second []byte, ok bool) {
	n, header, ok := resp.DecodeArray(array)
	if !ok || n != 2 {
		return nil, nil, false
	}
	var scan resp.Scanner
	if scan.Scan(array[header:]) != resp.Done {
		return nil, nil, false
	}
	end := header + scan.Len()
	return array[header:end], array[end:], true
}

// Cursor is a place in the order of SCAN: a partition, and a position in the order of its index.
//
//	bit 52      40                                        0
//	  │ partition │ position (a prefix of the key's hash) │
//
// It stays below 2⁵³, so that clients may keep it in a float. Because the hash is seeded by the
// cluster and not by the node, a cursor stays valid when its partition moves. 0 is the beginning;
// in a client's reply it also means the end.
type Cursor uint64

const positionBits = 40

// MaxPosition is the last place within a partition.
const MaxPosition = 1<<positionBits - 1

// startOfScan is the cursor at the beginning of partition 0 as a place where a scan goes on: 0 would be
// the end. Members below ring.HoldLevel take it for the end of partition 0.
const startOfScan Cursor = 1 << (positionBits - 1)

// EndOfScan is the cursor behind every partition.
const EndOfScan Cursor = ring.Partitions << positionBits

// StopAt returns the cursor at which a scan that stops there goes on. It is never 0. position must be
// below 2³⁹.
func StopAt(partition int, position uint64) Cursor {
	if at := CursorAt(partition, position); at != 0 {
		return at
	}
	return startOfScan
}

// CursorAt returns the cursor at a position of a partition. position must be below 2⁴⁰.
func CursorAt(partition int, position uint64) Cursor {
	return Cursor(uint64(partition)<<positionBits | position)
}

// ParseCursor reads a client's cursor as Redis does, which leaves it to strtoul(3): nothing is 0, and
// a number below 2⁶⁴ may have a sign; minus takes it from 2⁶⁴. A cursor beyond all partitions is
// EndOfScan.
func ParseCursor(b []byte) (Cursor, bool) {
	if len(b) == 0 {
		return 0, true
	}
	negative := b[0] == '-'
	if negative || b[0] == '+' {
		b = b[1:]
	}
	n, ok := parseUint(b)
	if negative {
		n = -n
	}
	return min(Cursor(n), EndOfScan), ok
}

// Partition returns the partition that the cursor lies in, Partitions for EndOfScan.
func (c Cursor) Partition() int { return int(c >> positionBits) }

// Position returns the place within the partition.
func (c Cursor) Position() uint64 {
	if c == startOfScan {
		return 0
	}
	return uint64(c) & (1<<positionBits - 1)
}

// Append appends the cursor as clients see it.
func (c Cursor) Append(dst []byte) []byte { return strconv.AppendUint(dst, uint64(c), 10) }

// noStop is the stop of a node that has walked all the partitions that it was asked about.
const noStop = -1

// AppendStop begins the reply to EACH SCAN: where the node has stopped, EndOfScan if nowhere. The
// array of keys follows.
func AppendStop(dst []byte, stop Cursor) []byte {
	at := int64(stop)
	if stop == EndOfScan {
		at = noStop
	}
	return resp.AppendInt(resp.AppendArray(dst, 2), at)
}

// ParseStop reads what AppendStop began: keys are the encoded elements, a view.
func ParseStop(reply []byte) (stop Cursor, keys []byte, ok bool) {
	first, rest, ok := splitPair(reply)
	if !ok {
		return 0, nil, false
	}
	at, ok1 := resp.DecodeInt(first)
	_, header, ok2 := resp.DecodeArray(rest)
	if !ok1 || !ok2 {
		return 0, nil, false
	}
	if at < 0 {
		return EndOfScan, rest[header:], true
	}
	return min(Cursor(at), EndOfScan), rest[header:], true
}
