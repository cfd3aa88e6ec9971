package streams

import (
	"errors"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// errGone is exec.ErrGone for a stream of which a command has answered a part.
var errGone = errors.New(strings.TrimPrefix(exec.ErrGone, "ERR "))

// The texts of Redis 8, byte for byte, because clients compare them.
const (
	ErrID          = "ERR Invalid stream ID specified as stream command argument"
	ErrStart       = "ERR invalid start ID for the interval"
	ErrEnd         = "ERR invalid end ID for the interval"
	ErrNoKey       = "ERR no such key"
	ErrIDTooSmall  = "ERR The ID specified in XADD is equal or smaller than the target stream top item"
	ErrIDZero      = "ERR The ID specified in XADD must be greater than 0-0"
	ErrIDExhausted = "ERR The stream has exhausted the last possible ID, unable to add more items"

	ErrTwoStrategies = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible"
	ErrNoStrategy    = "ERR syntax error, XTRIM must be called with a trimming strategy"
	ErrMaxLen        = "ERR The MAXLEN argument must be >= 0."
	ErrLimit         = "ERR The LIMIT argument must be >= 0."
	ErrLimitAlone    = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"
	ErrLimitExact    = "ERR syntax error, LIMIT cannot be used without the special ~ option"

	ErrNumIDs      = "ERR Number of IDs must be a positive integer"
	ErrNumIDsMatch = "ERR The `numids` parameter must match the number of arguments"
	ErrNoIDs       = "ERR IDS option is required"
)

// Of XSETID.
const (
	ErrAddedNegative  = "ERR entries_added must be positive"
	ErrAddedTooSmall  = "ERR The entries_added specified in XSETID is smaller than the target stream length"
	ErrSetBelowGiven  = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id"
	ErrSetBelowMax    = "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"
	ErrSetBelowLatest = "ERR The ID specified in XSETID is smaller than the target stream top item"
)

// Of groups.
const (
	ErrGroupNeedsKey = "ERR The XGROUP subcommand requires the key to exist. " +
		"Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically."
	ErrBusyGroup   = "BUSYGROUP Consumer Group name already exists"
	ErrEntriesRead = "ERR value for ENTRIESREAD must be positive or -1"

	ErrClaimIdle      = "ERR Invalid min-idle-time argument for XCLAIM"
	ErrClaimIdleOpt   = "ERR Invalid IDLE option argument for XCLAIM"
	ErrClaimTime      = "ERR Invalid TIME option argument for XCLAIM"
	ErrClaimRetry     = "ERR Invalid RETRYCOUNT option argument for XCLAIM"
	ErrAutoClaimIdle  = "ERR Invalid min-idle-time argument for XAUTOCLAIM"
	ErrAutoClaimCount = "ERR COUNT must be > 0"
)

// noGroup is the error of a command on groups that names one that does not exist, by the key and the
// group.
func noGroup(key, group []byte) string {
	return "NOGROUP No such key '" + command.Cut(key) + "' or consumer group '" + command.Cut(group) + "'"
}

// noGroupOfKey is noGroup for XGROUP and XINFO.
func noGroupOfKey(key, group []byte) string {
	return "NOGROUP No such consumer group '" + command.Cut(group) + "' for key name '" + command.Cut(key) + "'"
}

// unrecognized is the error of XCLAIM for an option that it does not have.
func unrecognized(option []byte) string {
	return "ERR Unrecognized XCLAIM option '" + command.Cut(option) + "'"
}
