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
)

// Dunlin's own texts, for errors that Redis does not have.
const (
	ErrReplyTooLarge = "ERR the reply would be too large, ask for fewer keys"
)
