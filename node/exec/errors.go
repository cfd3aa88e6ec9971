package exec

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// codeERR is the code of most errors.
const codeERR = "ERR"

// The texts of Redis 7, byte for byte, because clients compare them.
const (
	ErrSyntax     = command.ErrSyntax
	ErrNotInteger = command.ErrNotInteger
	ErrWrongType  = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrTooLong    = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrOOM        = "OOM command not allowed when used memory > 'maxmemory'."
	ErrCrossSlot  = "CROSSSLOT Keys in request don't hash to the same slot"
)

// ErrClosed is the error for a command on keys of a database whose placement changes.
const ErrClosed = "TRYAGAIN that database is being pinned, or is not pinned any more, try again in a moment"

// ErrBusy is the error for a command that the node gives up because it closes.
const ErrBusy = "ERR this node's loops do not answer"

// ErrHeld is the error for a command that has waited for a hold for too long, and has changed nothing;
// errHeldPartly for one that has changed some of its keys.
const (
	ErrHeld       = "BUSY a transaction has held the partition of that key for too long, try again"
	errHeldPartly = "ERR executed for some of the keys only: " +
		"a transaction has held the partition of another one for too long"
)

// ErrReplyLost is the error for a command that was executed, when there is no memory for its reply.
const ErrReplyLost = "ERR executed, but there was no memory for the reply"

// ErrAbandoned is the error for a command that has changed nothing, when nobody waits for its reply any more.
const ErrAbandoned = member.Canceled

// ErrGone is the error for a command that has removed or answered some elements of a value, when
// the node loses the value's partition before the next run.
const ErrGone = "ERR the key was removed before the command had ended"

// ErrKeyTooLong is the error for a key longer than engine.MaxKeyLen.
var ErrKeyTooLong = "ERR key exceeds maximum allowed size of " + strconv.Itoa(engine.MaxKeyLen) + " bytes"

// Unbuilt returns the error for a command that finds no memory for what it is about to store at a key. It has
// the same code as ErrOOM.
func Unbuilt(key []byte) string {
	return "OOM there is no memory to build the value of key '" + command.Cut(key) + "'"
}

// TooBig returns the error for a command that would make the value of a key bigger than engine.ErrTooBig
// allows. It has the same code as ErrOOM.
func TooBig(key []byte) string {
	return "OOM the value of key '" + command.Cut(key) + "' would take more than a quarter of 'maxmemory'"
}

// NeverFits returns the error for a value that is larger than the memory limit, in bytes, allows
// even after everything else is evicted. It has the same code as ErrOOM.
func NeverFits(limit int64) string {
	return "OOM value does not fit into 'maxmemory' of " + strconv.FormatInt(limit, 10) + " bytes, even alone"
}
