package member

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A blocking command that names keys of several partitions waits by a claim at the owner of each. An owner that
// has a value for it says READY and does not pop it, so that nothing need be put back when several owners have
// one: the proxy pops by an ordinary command, and ends the other claims.
//
//	proxy                                      node
//	  ── DUNLIN CLAIM 0 list k1 k3 ─────────────▶
//	  ◀── -DUNLINLATER 7 ────────────────────────     nothing there
//	  ◀── >3 +later :7  *2 :1 :12 ───────────────     a push to k3: ready, and turn 12 is kept
//	  ── BLPOP k3 0.001, DUNLIN PASS list 12 k3 ─▶
//	  ◀── k3 and the element ────────────────────
//
// While a claim has its turn, nobody who waits behind it is served, for ClaimTurn at most. PASS ends the turn: behind
// the pop, or if the proxy has something else by then.
//
// A claim of streams names the IDs behind which its command waits for entries. Of $ the owner answers which ID that
// is, with the token or with READY: from then on the command means that ID, wherever it is executed. A claim for a
// consumer group names the group, and how long what is pending there must be idle to be wanted; it is ready also if
// there is no such group, since the read must say so.
//
//	  ── DUNLIN CLAIM 0 s k1 k3 $ 5-1 ──────────▶
//	  ◀── -DUNLINLATER 8 1700000000000-0 ────────     this is $
//	  ── DUNLIN CLAIM 0 g group -1 k1 ──────────▶

// ClaimTurn is how long a claim that was told READY keeps its turn.
const ClaimTurn = 100 * time.Millisecond

// ValueKind says for values of which type a claim waits. The bytes are on the wire.
type ValueKind byte

// The kinds of values that have blocking commands.
const (
	List      ValueKind = 'l'
	SortedSet ValueKind = 'z'
	Stream    ValueKind = 's' // entries behind IDs
	Group     ValueKind = 'g' // entries of streams for a consumer group
)

// Claim is the argument of CLAIM.
type Claim struct {
	Waited time.Duration // for so long the command has waited
	Kind   ValueKind
	Keys   [][]byte

	IDs     [][]byte // of Stream, for each key, as the client has written them
	Group   []byte   // of Group
	MinIdle int64    // of Group: milliseconds; NoIdle: what is pending is not wanted
}

// NoIdle is the MinIdle of a command without CLAIM.
const NoIdle = -1

// AppendClaim appends CLAIM.
func AppendClaim(dst []byte, c *Claim) []byte {
	words := 2 + len(c.Keys) + len(c.IDs)
	if c.Kind == Group {
		words += 2
	}
	dst = appendUint(AppendVerb(dst, VerbClaim, words), uint64(max(0, c.Waited.Milliseconds())))
	dst = resp.AppendBulk(dst, []byte{byte(c.Kind)})
	if c.Kind == Group {
		dst = resp.AppendBulk(resp.AppendBulk(dst, c.Group), strconv.AppendInt(nil, c.MinIdle, 10))
	}
	for _, key := range c.Keys {
		dst = resp.AppendBulk(dst, key)
	}
	for _, id := range c.IDs {
		dst = resp.AppendBulk(dst, id)
	}
	return dst
}

// ParseClaim reads the arguments of CLAIM. What it returns are views of them.
func ParseClaim(args [][]byte) (c Claim, ok bool) {
	waited, ok := parseUint(args[0])
	kind, known := parseValueKind(args[1])
	c.Waited = time.Duration(min(waited, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
	c.Kind, c.Keys, ok = kind, args[2:], ok && known
	switch n := len(c.Keys); kind {
	case Stream:
		c.Keys, c.IDs = c.Keys[:n/2], c.Keys[n/2:]
		ok = ok && n > 0 && n%2 == 0
	case Group:
		if n < 3 {
			return c, false
		}
		idle, number := resp.ParseInt(c.Keys[1])
		c.Group, c.MinIdle, c.Keys = c.Keys[0], idle, c.Keys[2:]
		ok = ok && number && idle >= NoIdle
	case List, SortedSet:
	}
	return c, ok
}

func parseValueKind(arg []byte) (k ValueKind, ok bool) {
	if len(arg) == 1 {
		k = ValueKind(arg[0])
	}
	return k, k == List || k == SortedSet || k == Stream || k == Group
}

// Ready is the answer to a claim.
type Ready struct {
	Key  int    // which key has a value
	Turn uint64 // that the claim has there; 0: it needs none
	IDs  []byte // see Settle; nil: there are none
}

// AppendReady appends the answer to a claim.
func AppendReady(dst []byte, r Ready) []byte {
	n := 2
	if len(r.IDs) > 0 {
		n = 3
	}
	dst = resp.AppendInt(resp.AppendInt(resp.AppendArray(dst, n), int64(r.Key)), int64(r.Turn))
	if n == 3 {
		dst = resp.AppendBulk(dst, r.IDs)
	}
	return dst
}

// LastID stands for the last ID of a stream at the moment when a command is executed.
const LastID = "$"

// AppendSettled appends an ID that has taken the place of a LastID to those before it.
func AppendSettled(ids, id []byte) []byte {
	if len(ids) > 0 {
		ids = append(ids, ' ')
	}
	return append(ids, id...)
}

// Settle puts the IDs that AppendSettled wrote in the places of the LastIDs among all. It reports false if they are
// not as many. The new IDs are views.
func Settle(all [][]byte, ids []byte) (ok bool) {
	for i, id := range all {
		if string(id) == LastID {
			if len(ids) == 0 {
				return false
			}
			all[i], ids, _ = bytes.Cut(ids, []byte(" "))
		}
	}
	return len(ids) == 0
}

// ParseReady reads what AppendReady wrote. keys is how many keys the claim has.
func ParseReady(reply []byte, keys int) (r Ready, ok bool) {
	n, at, ok := resp.DecodeArray(reply)
	if !ok || n != 2 && n != 3 {
		return r, false
	}
	rest := reply[at:]
	end := lineEnd(rest)
	key, ok := resp.DecodeInt(rest[:end])
	rest = rest[end:]
	end = lineEnd(rest)
	turn, ok2 := resp.DecodeInt(rest[:end])
	r = Ready{Key: int(key), Turn: uint64(turn)}
	ok = ok && ok2 && 0 <= key && key < int64(keys) && turn >= 0
	if n == 3 {
		r.IDs, ok2 = resp.DecodeBulk(rest[end:])
		return r, ok && ok2
	}
	return r, ok && end == len(rest)
}

// lineEnd returns where the first line of a reply ends.
func lineEnd(reply []byte) int {
	for i, b := range reply {
		if b == '\n' {
			return i + 1
		}
	}
	return len(reply)
}

// Pass is the argument of PASS.
type Pass struct {
	Kind  ValueKind
	Turn  uint64
	Key   []byte
	Group []byte // of Group
}

// AppendPass appends PASS.
func AppendPass(dst []byte, p Pass) []byte {
	words := 3
	if p.Kind == Group {
		words = 4
	}
	dst = resp.AppendBulk(AppendVerb(dst, VerbPass, words), []byte{byte(p.Kind)})
	dst = resp.AppendBulk(appendUint(dst, p.Turn), p.Key)
	if p.Kind == Group {
		dst = resp.AppendBulk(dst, p.Group)
	}
	return dst
}

// ParsePass reads the arguments of PASS. The key and the group are views of them.
func ParsePass(args [][]byte) (p Pass, ok bool) {
	kind, ok := parseValueKind(args[0])
	turn, number := parseUint(args[1])
	p = Pass{Kind: kind, Turn: turn, Key: args[2]}
	if kind == Group {
		if len(args) != 4 {
			return p, false
		}
		p.Group = args[3]
	}
	return p, ok && number && (kind == Group || len(args) == 3)
}
