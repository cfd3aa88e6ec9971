package member

import (
	"math"
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

// ClaimTurn is how long a claim that was told READY keeps its turn.
const ClaimTurn = 100 * time.Millisecond

// ValueKind says for values of which type a claim waits. The bytes are on the wire.
type ValueKind byte

// The kinds of values that have blocking commands.
const (
	List      ValueKind = 'l'
	SortedSet ValueKind = 'z'
)

// Claim is the argument of CLAIM.
type Claim struct {
	Waited time.Duration // for so long the command has waited
	Kind   ValueKind
	Keys   [][]byte
}

// ClaimKeys is where the keys of a CLAIM begin in its arguments, behind the verb.
const ClaimKeys = 2

// AppendClaim appends CLAIM.
func AppendClaim(dst []byte, c *Claim) []byte {
	dst = appendUint(AppendVerb(dst, VerbClaim, ClaimKeys+len(c.Keys)), uint64(max(0, c.Waited.Milliseconds())))
	dst = resp.AppendBulk(dst, []byte{byte(c.Kind)})
	for _, key := range c.Keys {
		dst = resp.AppendBulk(dst, key)
	}
	return dst
}

// ParseClaim reads the arguments of CLAIM. The keys are views of them.
func ParseClaim(args [][]byte) (c Claim, ok bool) {
	waited, ok := parseUint(args[0])
	kind, known := parseValueKind(args[1])
	waited = min(waited, math.MaxInt64/uint64(time.Millisecond))
	return Claim{time.Duration(waited) * time.Millisecond, kind, args[ClaimKeys:]}, ok && known
}

func parseValueKind(arg []byte) (k ValueKind, ok bool) {
	if len(arg) == 1 {
		k = ValueKind(arg[0])
	}
	return k, k == List || k == SortedSet
}

// Ready is the answer to a claim.
type Ready struct {
	Key  int    // which key has a value
	Turn uint64 // that the claim has there; 0: it needs none
}

// AppendReady appends the answer to a claim.
func AppendReady(dst []byte, r Ready) []byte {
	return resp.AppendInt(resp.AppendInt(resp.AppendArray(dst, 2), int64(r.Key)), int64(r.Turn))
}

// ParseReady reads what AppendReady wrote. keys is how many keys the claim has.
func ParseReady(reply []byte, keys int) (r Ready, ok bool) {
	n, at, ok := resp.DecodeArray(reply)
	if !ok || n != 2 {
		return r, false
	}
	rest := reply[at:]
	end := lineEnd(rest)
	key, ok1 := resp.DecodeInt(rest[:end])
	turn, ok2 := resp.DecodeInt(rest[end:])
	return Ready{int(key), uint64(turn)}, ok1 && ok2 && 0 <= key && key < int64(keys) && turn >= 0
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
	Kind ValueKind
	Turn uint64
	Key  []byte
}

// AppendPass appends PASS.
func AppendPass(dst []byte, p Pass) []byte {
	dst = resp.AppendBulk(AppendVerb(dst, VerbPass, 3), []byte{byte(p.Kind)})
	return resp.AppendBulk(appendUint(dst, p.Turn), p.Key)
}

// ParsePass reads the arguments of PASS. The key is a view of them.
func ParsePass(args [][]byte) (p Pass, ok bool) {
	kind, ok := parseValueKind(args[0])
	turn, number := parseUint(args[1])
	return Pass{kind, turn, args[2]}, ok && number
}
