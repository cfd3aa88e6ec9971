package member

import (
	"bytes"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// A node answers a command that needs a goroutine at once, by a token, and goes on with the next
// request of the pipe. When the goroutine has finished, a push brings what would have been the
// reply:
//
//	BITOP OR k a b   ──▶
//	                 ◀──  -DUNLINLATER 7          in the place of the reply
//	GET x            ──▶
//	                 ◀──  $1 x
//	                 ◀──  >3 +later :7 :1048576   at any time, between two replies
//
// The proxy says CANCEL when the client has gone. The completion comes all the same: with an error, if
// the work has ended early.
//
// Tokens of a connection grow. A refused command's completion is the refusal, so a command that was
// begun may still be sent again.

// MaxLater is how many commands of one pipe a node answers later at a time. It refuses more.
const MaxLater = 1024

// Canceled is the error that completes a command that was canceled before it was executed.
const Canceled = "ERR canceled: the client has disconnected"

const (
	welcome        = "+OK\r\n"
	welcomeOfLater = "+OK later\r\n" // the node answers later what needs a goroutine
	pushOfLater    = ">3\r\n+later\r\n:"
)

// AppendWelcome appends the answer to the greeting of a pipe. later reports whether the node answers
// commands of this pipe later: its proxy must speak ring.LaterLevel.
func AppendWelcome(dst []byte, later bool) []byte {
	if later {
		return append(dst, welcomeOfLater...)
	}
	return append(dst, welcome...)
}

// ParseWelcome reads what AppendWelcome wrote. ok is false if the node has refused the pipe.
func ParseWelcome(reply []byte) (later, ok bool) {
	later = string(reply) == welcomeOfLater
	return later, later || string(reply) == welcome
}

// AppendLater appends what stands in the place of a reply that comes later. ids are those that a command means from now
// on, see Settle.
func AppendLater(dst []byte, token uint64, ids []byte) []byte {
	dst = append(dst, "-"+codeLater+" "...)
	dst = strconv.AppendUint(dst, token, 10)
	if len(ids) > 0 {
		dst = append(append(dst, ' '), ids...)
	}
	return append(dst, "\r\n"...)
}

// ParseLater reads what AppendLater wrote. ids is a view of it.
func ParseLater(reply []byte) (token uint64, ids []byte, ok bool) {
	rest, ok := bytes.CutPrefix(reply, []byte("-"+codeLater+" "))
	rest, whole := bytes.CutSuffix(rest, []byte("\r\n"))
	first, ids, more := bytes.Cut(rest, []byte(" "))
	token, number := parseUint(first)
	return token, ids, ok && whole && number && more == (len(ids) > 0)
}

// AppendCompletion begins the push that completes a command; the reply follows.
func AppendCompletion(dst []byte, token uint64) []byte {
	dst = append(dst, pushOfLater...)
	dst = strconv.AppendUint(dst, token, 10)
	return append(dst, "\r\n"...)
}

// ParsePush takes a push apart, which must be whole. reply is a view of it. ok is false for any push
// but a completion.
func ParsePush(push []byte) (token uint64, reply []byte, ok bool) {
	rest, ok := bytes.CutPrefix(push, []byte(pushOfLater))
	number, reply, found := bytes.Cut(rest, []byte("\r\n"))
	if !ok || !found || len(reply) == 0 || reply[0] == '>' {
		return 0, nil, false
	}
	var scan resp.Scanner
	if scan.Scan(reply) != resp.Done || scan.Len() != len(reply) {
		return 0, nil, false
	}
	token, ok = parseUint(number)
	return token, reply, ok
}
