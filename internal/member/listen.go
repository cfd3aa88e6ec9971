package member

import (
	"bytes"
	"math"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A proxy's loop listens to brokers over a pipe of the kind Listening. It says how many subscribers of each
// topic it has, and the node pushes what is published:
//
//	proxy                                     node
//	  ── DUNLIN LISTEN channel live c 2 ───────▶
//	  ◀── :1 ──────────────────────────────────
//	  ◀── >3 message c …                             the frame that a subscriber of RESP3 gets
//	  ◀── >2 +lost :7                                so many messages had no room
//
// The answer says what the count is worth, see Heard. Nothing of a topic comes behind the answer Noted to a
// count of 0. While messages wait that may be of the topic, that answer is NotOwner; those that come later do
// not count.

// Mode says what a proxy that listens is to get.
type Mode uint8

// The modes are those of a broker. The numbers are on the wire.
const (
	Live   Mode = iota // what is published from now on
	Ahead              // nothing yet: the channel is about to move to this node
	Follow             // also what was published here since the channel has moved, or since this node serves
)

// Listen is the argument of LISTEN.
type Listen struct {
	Kind  uint8 // pubsub.Kind
	Mode  Mode
	Name  []byte
	Count int // of subscribers; 0: the proxy does not listen any more
}

// Heard is the answer to LISTEN.
type Heard uint8

const (
	NotOwner Heard = iota // the node is not the broker of this channel yet; ask again
	Noted                 // the count is in force
	Gapped                // the same, but some of what Follow asks for is lost
	TooMany               // there are too many patterns, and nothing was noted
)

// AppendListen appends LISTEN.
func AppendListen(dst []byte, l Listen) []byte {
	dst = AppendVerb(dst, VerbListen, 4)
	dst = appendUint(appendUint(dst, uint64(l.Kind)), uint64(l.Mode))
	return appendInt(resp.AppendBulk(dst, l.Name), int64(l.Count))
}

// ParseListen reads the arguments of LISTEN. kinds is how many kinds of topics there are.
func ParseListen(args [][]byte, kinds uint8) (l Listen, ok bool) {
	kind, ok1 := parseUint(args[0])
	mode, ok2 := parseUint(args[1])
	count, ok3 := resp.ParseInt(args[3])
	l = Listen{Kind: uint8(kind), Mode: Mode(mode), Name: args[2], Count: int(count)}
	return l, ok1 && ok2 && ok3 && kind < uint64(kinds) && mode <= uint64(Follow) && 0 <= count && count <= math.MaxInt32
}

// AppendHeard appends the answer to LISTEN.
func AppendHeard(dst []byte, h Heard) []byte { return resp.AppendInt(dst, int64(h)) }

// ParseHeard reads what AppendHeard wrote.
func ParseHeard(reply []byte) (h Heard, ok bool) {
	n, ok := resp.DecodeInt(reply)
	return Heard(n), ok && 0 <= n && n <= int64(TooMany)
}

var lostPrefix = []byte(">2\r\n+lost\r\n")

// AppendLost appends the push that says how many messages had no room since the last one.
func AppendLost(dst []byte, messages uint64) []byte {
	return resp.AppendInt(append(dst, lostPrefix...), int64(min(messages, math.MaxInt64)))
}

// ParseLost reads what AppendLost wrote.
func ParseLost(push []byte) (messages uint64, ok bool) {
	rest, ok := bytes.CutPrefix(push, lostPrefix)
	if !ok {
		return 0, false
	}
	n, ok := resp.DecodeInt(rest)
	return uint64(n), ok && n >= 0
}
