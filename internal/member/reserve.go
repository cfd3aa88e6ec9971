package member

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// A command that changes keys of several slots, such as LMOVE or MSETNX, is executed by one node, which has the owners
// of the keys hold their partitions for it. In a partition that is held for it, it looks first, and changes something
// when it has looked everywhere:
//
//	proxy                     node                            owners of a and b
//	  ── DUNLIN GATHER LMOVE a b … ─▶
//	  ◀── -DUNLINLATER 7 ──────
//	                           ── DUNLIN RESERVE 0 LINDEX a 0 ──▶     a is held
//	                           ◀── the element ──────────────────
//	                           ── DUNLIN RESERVE 0 LLEN b ──────▶     so is b
//	                           ◀── 0 ────────────────────────────
//	                           ── DUNLIN WITHIN 2 RPUSH b … ────▶     b is not held any more
//	                           ◀── 1 ────────────────────────────
//	                           ── DUNLIN WITHIN 1 LPOP a ───────▶     nor is a
//	                           ◀── the element ──────────────────
//	  ◀── >3 +later :7 reply ──
//
// What is reserved belongs to the connection, and ends with it, or when its owner has held it for too long.

// Further says what becomes of a reservation behind a command.
type Further uint8

// The values of Further. The digits are on the wire.
const (
	GoesOn   Further = iota // there comes more
	IsLast                  // the partition is not held any more
	IsCopied                // the same, and the reply comes when the follower has what the command has changed
	furthers
)

// Lapsed is the code of the error of WITHIN about a partition that is not reserved any more. The command was not
// executed.
const Lapsed = "DUNLINLAPSED"

// AppendReserve appends RESERVE. The keys of the command are all of one partition.
func AppendReserve(dst []byte, database uint8, args ...[]byte) []byte {
	dst = appendInt(AppendVerb(dst, VerbReserve, 1+len(args)), int64(database))
	return appendWords(dst, args)
}

// ParseReserve reads the arguments of RESERVE. The command is a view of them.
func ParseReserve(args [][]byte) (database uint8, cmd [][]byte, ok bool) {
	n, ok := parseUint(args[0])
	return uint8(n), args[1:], ok && n < ring.MaxDatabases
}

// AppendWithin appends WITHIN.
func AppendWithin(dst []byte, further Further, args ...[]byte) []byte {
	dst = appendInt(AppendVerb(dst, VerbWithin, 1+len(args)), int64(further))
	return appendWords(dst, args)
}

// ParseWithin reads the arguments of WITHIN. The command is a view of them.
func ParseWithin(args [][]byte) (further Further, cmd [][]byte, ok bool) {
	n, ok := parseUint(args[0])
	return Further(n), args[1:], ok && n < uint64(furthers)
}

// AppendRelease appends RELEASE.
func AppendRelease(dst []byte) []byte { return AppendVerb(dst, VerbRelease, 0) }

func appendWords(dst []byte, words [][]byte) []byte {
	for _, word := range words {
		dst = resp.AppendBulk(dst, word)
	}
	return dst
}

// Reserve has the owner of a command's keys hold their partition, and execute the command there.
// The reply is valid until the next request. If that is an error, it is returned as a *Refusal, and
// then the partition may be held or not.
func (p *Peer) Reserve(database uint8, args ...[]byte) (reply []byte, err error) {
	return p.exchange(AppendReserve(nil, database, args...))
}

// Within has the owner execute a command in a partition that is held for the caller.
func (p *Peer) Within(further Further, args ...[]byte) (reply []byte, err error) {
	return p.exchange(AppendWithin(nil, further, args...))
}

// Release ends what was reserved, and keeps what was changed there. It returns how many partitions that were.
func (p *Peer) Release() (partitions int, err error) {
	reply, err := p.exchange(AppendRelease(nil))
	if err != nil {
		return 0, err
	}
	n, ok := resp.DecodeInt(reply)
	if !ok || n < 0 || n > ring.Partitions {
		return 0, p.malformed()
	}
	return int(n), nil
}
