package member

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// The codes of what a node sends in place of a reply. A proxy acts on them and never passes them
// on. Only clients that connect to a node directly see -MOVED and -CLUSTERDOWN, as in Redis
// Cluster.
const (
	codeMoved       = "MOVED"       // slot host:port: another node owns the partition
	codeWait        = "DUNLINWAIT"  // epoch: this node will know more soon
	codeClusterDown = "CLUSTERDOWN" // the node has no table yet
	codeLarge       = "DUNLINLARGE" // ticket size: executed, and the proxy fetches the reply
	codeLater       = "DUNLINLATER" // token: begun, and a push brings the reply
)

// NotServed is the text of the error of a node that has no table yet, as Redis Cluster words it.
const NotServed = codeClusterDown + " Hash slot not served"

// Instead says what an error reply of a node stands for.
type Instead uint8

const (
	// Reply is an ordinary error: the command's own.
	Reply Instead = iota
	// Moved: not executed, another node owns the partition. See ParseMoved.
	Moved
	// Wait: not executed, the node will know more soon. See WaitEpoch.
	Wait
	// LargeReply: executed, and the proxy fetches the reply. See ParseTicket.
	LargeReply
	// Later: begun, and a push brings the reply. See ParseLater.
	Later
)

// Classify returns what a reply stands for. Of an error it reads only the code.
func Classify(reply []byte) Instead {
	if len(reply) == 0 || reply[0] != '-' {
		return Reply
	}
	code, _, _ := bytes.Cut(reply[1:], []byte{' '})
	switch string(bytes.TrimRight(code, "\r\n")) {
	case codeMoved:
		return Moved
	case codeWait, codeClusterDown:
		return Wait
	case codeLarge:
		return LargeReply
	case codeLater:
		return Later
	}
	return Reply
}

// Refused reports whether the node has not executed the command and never will.
func (i Instead) Refused() bool { return i == Moved || i == Wait }

// AppendMoved appends the redirection that proxies follow.
func AppendMoved(dst []byte, slot uint16, addr string) []byte {
	dst = append(dst, "-"+codeMoved+" "...)
	dst = strconv.AppendUint(dst, uint64(slot), 10)
	dst = append(dst, ' ')
	dst = append(dst, addr...)
	return append(dst, "\r\n"...)
}

// AppendClientMoved appends the redirection that clients of Redis Cluster follow. As in Redis, no
// brackets surround an IPv6 address: clients take what is before the last colon for the host.
func AppendClientMoved(dst []byte, slot uint16, addr string) []byte {
	start := len(dst)
	dst = AppendMoved(dst, slot, addr)
	if !strings.HasPrefix(addr, "[") {
		return dst
	}
	kept := dst[:start]
	for _, b := range dst[start:] {
		if b != '[' && b != ']' {
			kept = append(kept, b)
		}
	}
	return kept
}

// ParseMoved reads what AppendMoved wrote. addr is empty if the redirection is malformed.
func ParseMoved(reply []byte) (partition uint16, addr string) {
	fields := bytes.Fields(reply)
	if len(fields) != 3 {
		return 0, ""
	}
	slot, err := strconv.ParseUint(string(fields[1]), 10, 16)
	if err != nil || slot >= ring.Slots {
		return 0, ""
	}
	return ring.Partition(uint16(slot)), string(fields[2])
}

// AppendWait appends the refusal of a node that will know more soon. epoch is that of its table;
// the proxy repeats it in RETRY.
func AppendWait(dst []byte, epoch uint64) []byte {
	dst = append(dst, "-"+codeWait+" "...)
	dst = strconv.AppendUint(dst, epoch, 10)
	return append(dst, "\r\n"...)
}

// WaitEpoch reads the epoch in what AppendWait wrote, 0 if there is none.
func WaitEpoch(reply []byte) uint64 {
	fields := bytes.Fields(reply)
	if len(fields) != 2 || string(fields[0]) != "-"+codeWait {
		return 0
	}
	n, _ := parseUint(fields[1])
	return n
}

// AppendTicket appends what stands for a reply of size bytes.
func AppendTicket(dst []byte, ticket uint64, size int) []byte {
	dst = append(dst, "-"+codeLarge+" "...)
	dst = strconv.AppendUint(dst, ticket, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(size), 10)
	return append(dst, "\r\n"...)
}

// ParseTicket reads what AppendTicket wrote. size is at least 1 and below 1 TiB.
func ParseTicket(reply []byte) (ticket uint64, size int, ok bool) {
	rest, ok := bytes.CutPrefix(reply, []byte("-"+codeLarge+" "))
	if !ok { // a reply of any length
		return 0, 0, false
	}
	fields := bytes.Fields(rest)
	if len(fields) != 2 {
		return 0, 0, false
	}
	ticket, ok = parseUint(fields[0])
	length, err := strconv.ParseUint(string(fields[1]), 10, 40)
	return ticket, int(length), ok && err == nil && length > 0
}

// Piece is the argument of FETCH: count bytes of a reply from an offset. A count of 0 ends the
// ticket, on the pipe that it came on.
type Piece struct {
	Ticket        uint64
	Offset, Count int
}

// MaxPiece is the most that one FETCH may ask for.
const MaxPiece = 1 << 20

// AppendFetch appends the request for a piece.
func AppendFetch(dst []byte, p Piece) []byte {
	dst = appendUint(AppendVerb(dst, VerbFetch, 3), p.Ticket)
	return appendInt(appendInt(dst, int64(p.Offset)), int64(p.Count))
}

// ParseFetch reads the arguments of FETCH.
func ParseFetch(args [][]byte) (p Piece, ok bool) {
	ticket, ok1 := parseUint(args[0])
	offset, ok2 := resp.ParseInt(args[1])
	count, ok3 := resp.ParseInt(args[2])
	p = Piece{ticket, int(offset), int(count)}
	return p, ok1 && ok2 && ok3 && offset >= 0 && count >= 0 && count <= MaxPiece
}
