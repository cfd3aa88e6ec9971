package node

import (
	"errors"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/member"
	"github.com/dunlin-cache/dunlin/node/engine"
)

// codeERR is the code of most errors.
const codeERR = "ERR"

// The texts of Redis 7, to the letter: clients compare them.
const (
	errSyntax        = "ERR syntax error"
	errNotInteger    = "ERR value is not an integer or out of range"
	errNotFloat      = "ERR value is not a valid float"
	errNaN           = "ERR increment would produce NaN or Infinity"
	errOverflow      = "ERR increment or decrement would overflow"
	errDecrOverflow  = "ERR decrement would overflow"
	errWrongType     = "WRONGTYPE Operation against a key holding the wrong kind of value"
	errOffset        = "ERR offset is out of range"
	errTooLong       = "ERR string exceeds maximum allowed size (proto-max-bulk-len)"
	errInvalidCursor = "ERR invalid cursor"
	errExpireNX      = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT    = "ERR GT and LT options at the same time are not compatible"
	errBit           = "ERR bit is not an integer or out of range"
	errBitOffset     = "ERR bit offset is not an integer or out of range"
	errBitArgument   = "ERR The bit argument must be 1 or 0."
	errBitNot        = "ERR BITOP NOT must be called with a single source key."
	errFieldType     = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	errFieldReadOnly = "ERR BITFIELD_RO only supports the GET subcommand"
	errOverflowType  = "ERR Invalid OVERFLOW type specified"
	errLCSType       = "ERR The specified keys must contain string values"
	errLCSBoth       = "ERR If you want both the length and indexes, please just use IDX."
	errLCSTooLong    = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
	errLCSMemory     = "ERR Insufficient memory, failed allocating transient memory for LCS"
	errNumKeys       = "ERR invalid numkeys value"
	errPairs         = "ERR wrong number of key-value pairs"
	errOOM           = "OOM command not allowed when used memory > 'maxmemory'."
	errCrossSlot     = "CROSSSLOT Keys in request don't hash to the same slot"
	errNotServed     = member.NotServed
	errNoAuth        = "NOAUTH Authentication required."
	errNoSketch      = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errCorruptSketch = "INVALIDOBJ Corrupted HLL object detected"
	errNoKey         = "ERR no such key"
	errSameObject    = "ERR source and destination objects are the same"
	errDBIndex       = "ERR DB index is out of range"
	errNotInt32      = "ERR value is out of range, value must between -2147483648 and 2147483647"
	errBusyKey       = "BUSYKEY Target key name already exists."
	errTTL           = "ERR Invalid TTL value, must be >= 0"
	errIdleTime      = "ERR Invalid IDLETIME value, must be >= 0"
	errFrequency     = "ERR Invalid FREQ value, must be >= 0 and <= 255"
	errPayload       = "ERR DUMP payload version or checksum are wrong"
	errFormat        = "ERR Bad data format"
	errNoFrequency   = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + errSwitched
	errNoIdleTime    = "ERR An LFU maxmemory policy is selected, idle time not tracked. " + errSwitched
	errSwitched      = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// Texts of our own, for what Redis does not have.
const (
	errTakingOver      = "TRYAGAIN this node is taking over the partition of that key, try again in a moment"
	errKeysTooLarge    = "ERR the reply of KEYS would be too large, use SCAN"
	errUnionTooLarge   = "ERR too many HyperLogLogs at a time, merge them in several steps"
	errSourcesChange   = "TRYAGAIN the sources change faster than they can be combined"
	errDumpTooLarge    = "ERR the value is too large for DUMP"
	errRestoreTooLarge = "ERR the value is too large for RESTORE within a transaction"
	errRepliesTooLarge = "ERR executed, but the replies of the transaction would be too large"
	errReplyTooLarge   = "ERR the reply would be too large, ask for fewer keys"
	errBadSecret       = "WRONGPASS the secret of this cluster is another one"
	errNoChallenge     = "WRONGPASS ask for a challenge first"
	errOldPipe         = "ERR a newer generation of this pipe has been opened"
	errBadPipe         = "ERR cannot open pipe: malformed description"
	errPipeLevel       = "ERR cannot open pipe: its proxy speaks protocol level %d, and this cluster needs %d: upgrade it"
	errBadBitmap       = "ERR partitions must be a bitmap of 512 bytes"
	errBadTable        = "ERR cannot read table"
	errHandingOver     = "TRYAGAIN the node is still handing over what the table has taken from it"
	errForeignTable    = "ERR that table is of a lineage that this node does not follow"
	errBadFetch        = "ERR cannot fetch: malformed request, or not on a pipe"
	errBadExec         = "ERR cannot execute transaction: malformed, or not of one slot"
	errNoTicket        = "ERR there is no such ticket"
	errNotEach         = "ERR that command is not executed by partitions"
	errBadStream       = "ERR cannot go on with stream: malformed"
	errNoStream        = "ERR cannot go on with stream: another connection has it, or none was opened here"
	errStreamGap       = "ERR cannot go on with stream: a batch is missing"
	errBusy            = "ERR this node's loops do not answer"
)

var errKeyTooLong = "ERR key exceeds maximum allowed size of " + strconv.Itoa(engine.MaxKeyLen) + " bytes"

// neverFits answers a value that no eviction makes room for. Its code is that of any
// value that there is no memory for.
func neverFits(limit int64) string {
	return "OOM value does not fit into 'maxmemory' of " + strconv.FormatInt(limit, 10) + " bytes, even alone"
}

// engineError is the reply to a command that the engine refused to store.
func (n *Node) engineError(err error) string {
	switch {
	case errors.Is(err, engine.ErrNeverFits):
		return neverFits(n.engine.MaxBytes())
	case errors.Is(err, engine.ErrMemory):
		return errOOM
	case errors.Is(err, engine.ErrKeyTooLong):
		return errKeyTooLong
	case errors.Is(err, engine.ErrValueTooLarge):
		return errTooLong
	}
	return "ERR " + err.Error()
}
