package member

import (
	"bytes"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// What a blocking command has popped for a client that has gone by then, its proxy puts back. But the key may have been
// deleted in between, and then the element must not come back. So a node says right in front of the reply by which
// token it can tell, to proxies that speak ring.ReturnLevel:
//
//	proxy                                      node
//	  ── BLPOP q 0 ────────────────────────────▶
//	  ◀── -DUNLINLATER 7 ───────────────────────
//	  ◀── >2 +popped :12  >3 +later :7  q e ────     a push served it
//	  ── DUNLIN RETURN 12 LPUSH q e ───────────▶     nobody wants e
//	  ◀── :1 ───────────────────────────────────     :0 if q was deleted since
//
// RETURN executes the command that it carries, LPUSH, RPUSH or ZADD, unless the node knows that the key was deleted,
// flushed, replaced or removed in another way since. If the key was only emptied, it gets the expiry back that it had
// then. A node that does not know the token executes the command as it is: another node gave it, or it is too old.

// MaxReturned is how many words a command has that RETURN carries.
const MaxReturned = 300

const pushOfPopped = ">2\r\n+popped\r\n:"

// AppendPopped appends the push in front of a reply, or of what completes a command.
func AppendPopped(dst []byte, token uint64) []byte {
	return append(strconv.AppendUint(append(dst, pushOfPopped...), token, 10), "\r\n"...)
}

// PoppedLen returns the length of what AppendPopped wrote at the beginning of some output, 0 if it begins with a reply.
func PoppedLen(out []byte) int {
	rest, is := bytes.CutPrefix(out, []byte(pushOfPopped))
	if !is {
		return 0
	}
	return len(out) - len(rest) + lineEnd(rest)
}

// ParsePopped reads what AppendPopped wrote.
func ParsePopped(push []byte) (token uint64, ok bool) {
	rest, ok := bytes.CutPrefix(push, []byte(pushOfPopped))
	number, whole := bytes.CutSuffix(rest, []byte("\r\n"))
	token, isNumber := parseUint(number)
	return token, ok && whole && isNumber
}

// AppendReturn appends RETURN. words are at most MaxReturned.
func AppendReturn(dst []byte, token uint64, words [][]byte) []byte {
	dst = appendUint(AppendVerb(dst, VerbReturn, 1+len(words)), token)
	for _, w := range words {
		dst = resp.AppendBulk(dst, w)
	}
	return dst
}

// ParseReturn reads the arguments of RETURN. The words are views of them.
func ParseReturn(args [][]byte) (token uint64, words [][]byte, ok bool) {
	token, ok = parseUint(args[0])
	return token, args[1:], ok && len(args)-1 <= MaxReturned
}
