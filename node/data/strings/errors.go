package strings

// The texts of Redis 7, byte for byte, because clients compare them.
const (
	errNotFloat     = "ERR value is not a valid float"
	errNaN          = "ERR increment would produce NaN or Infinity"
	errOverflow     = "ERR increment or decrement would overflow"
	errDecrOverflow = "ERR decrement would overflow"
	ErrOffset       = "ERR offset is out of range"
	errLCSType      = "ERR The specified keys must contain string values"
	errLCSBoth      = "ERR If you want both the length and indexes, please just use IDX."
	ErrLCSTooLong   = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
	errLCSMemory    = "ERR Insufficient memory, failed allocating transient memory for LCS"
	errNumKeys      = "ERR invalid numkeys value"
	errPairs        = "ERR wrong number of key-value pairs"

	// Of Redis 8.
	errConditionType = "ERR Key should be of string type if conditions are specified"
	errCondition     = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
	errDigest        = "ERR must be exactly 16 hexadecimal characters"

	errExpiryMissing     = "ERR ENX flag requires an expiration"
	errBounds            = "ERR LBOUND can't be greater than UBOUND"
	errAppliedOverflow   = "ERR applied increment would overflow"
	errAppliedInfinity   = "ERR applied increment would be Infinity"
	errInfiniteIncrement = "ERR BYFLOAT increment cannot be Infinity"
	errInfiniteValue     = "ERR value cannot be Infinity"
)

// Dunlin's own texts, for errors that Redis does not have.
const (
	ErrReplyTooLarge = "ERR the reply would be too large, ask for fewer keys"
)
