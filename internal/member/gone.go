package member

import (
	"bytes"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Over a pipe that tracks, the node marks the keys of each command that reads, and pushes what is gone when one of
// them changes:
//
//	GET k            ──▶
//	                 ◀──  $1 v
//	                 ◀──  >3 +gone :{hash of k} :{actor}        k has changed, once
//	                 ◀──  >1 +gone                              all keys may have
//
// A push comes behind the replies of the commands that it concerns, unless these are answered later or by a ticket.
// The actor has changed the key itself, or is 0: before a request of a session that wants no word of what it does
// itself, the proxy says AS {actor}.
//
// Over a pipe that listens, LISTEN of the kind prefix has the node push all keys that begin with it:
//
//	                 ◀──  >3 +changed $1 k :{actor}
//	                 ◀──  >1 +gone                              all keys may have changed
//	                 ◀──  >1 +flushed                           all keys have gone, by a FLUSHALL of all nodes
//
// These are of ring.TrackingLevel, but the last of ring.FlushedLevel.

// GoneSize is how long a push is at most, beside a key.
const GoneSize = 80

var (
	gonePrefix    = []byte(">3\r\n+gone\r\n")
	changedPrefix = []byte(">3\r\n+changed\r\n")
	allGone       = []byte(">1\r\n+gone\r\n")
	allFlushed    = []byte(">1\r\n+flushed\r\n")
)

// Gone is what such a push says.
type Gone struct {
	All      bool
	Flushed  bool // All, by a FLUSHALL that each node executes: each pushes this
	ByPrefix bool // Key, and not Hash, is of what has changed
	Key      []byte
	Hash     uint64
	Actor    uint64
}

// AppendGone appends a push.
func AppendGone(dst []byte, g Gone) []byte {
	switch {
	case g.Flushed:
		return append(dst, allFlushed...)
	case g.All:
		return append(dst, allGone...)
	case g.ByPrefix:
		dst = resp.AppendBulk(append(dst, changedPrefix...), g.Key)
	default:
		dst = resp.AppendInt(append(dst, gonePrefix...), int64(g.Hash))
	}
	return resp.AppendInt(dst, int64(g.Actor))
}

// ParseGone reads what AppendGone wrote. push must be whole. The key is a view of push.
func ParseGone(push []byte) (g Gone, ok bool) {
	if bytes.Equal(push, allGone) {
		return Gone{All: true}, true
	}
	if bytes.Equal(push, allFlushed) {
		return Gone{All: true, Flushed: true}, true
	}
	first, rest := []byte(nil), []byte(nil)
	if rest, ok = bytes.CutPrefix(push, changedPrefix); ok {
		var scan resp.Scanner
		if scan.Scan(rest) != resp.Done {
			return g, false
		}
		first, rest = rest[:scan.Len()], rest[scan.Len():]
		g.ByPrefix = true
		g.Key, ok = resp.DecodeBulk(first)
	} else if rest, ok = bytes.CutPrefix(push, gonePrefix); ok {
		end := bytes.IndexByte(rest, '\n') + 1
		first, rest = rest[:end], rest[end:]
		var n int64
		n, ok = resp.DecodeInt(first)
		g.Hash = uint64(n)
	}
	actor, known := resp.DecodeInt(rest)
	g.Actor = uint64(actor)
	return g, ok && known
}

// AppendAs appends AS.
func AppendAs(dst []byte, actor uint64) []byte {
	return appendUint(AppendVerb(dst, VerbAs, 1), actor)
}

// ParseAs reads the argument of AS.
func ParseAs(arg []byte) (actor uint64, ok bool) { return parseUint(arg) }
