package exec

import (
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// codeERR is the code of most errors.
const codeERR = "ERR"

// The texts of Redis 7, to the letter: clients compare them.
const (
	ErrSyntax     = command.ErrSyntax
	ErrNotInteger = command.ErrNotInteger
	ErrWrongType  = "WRONGTYPE Operation against a key holding the wrong kind of value"
	ErrTooLong    = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	ErrOOM        = "OOM command not allowed when used memory > 'maxmemory'."
)

// Texts of our own, for what Redis does not have.
const (
	ErrBusy = "ERR this node's loops do not answer"
)

// ErrKeyTooLong is the error for a key that the engine does not take.
var ErrKeyTooLong = "ERR key exceeds maximum allowed size of " + strconv.Itoa(engine.MaxKeyLen) + " bytes"

// NeverFits is the error for a value that no eviction makes room for. Its code is that of any other
// lack of memory.
func NeverFits(limit int64) string {
	return "OOM value does not fit into 'maxmemory' of " + strconv.FormatInt(limit, 10) + " bytes, even alone"
}
