package hashes

// The texts of Redis 8, byte for byte, because clients compare them.
const (
	errNotInteger   = "ERR hash value is not an integer"
	errNotFloat     = "ERR hash value is not a float"
	errFloatArg     = "ERR value is not a valid float"
	errNaNArg       = "ERR value is NaN or Infinity"
	errNaN          = "ERR increment would produce NaN or Infinity"
	errOverflow     = "ERR increment or decrement would overflow"
	errRange        = "ERR value is out of range"
	errCountRange   = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	errNoFields     = "ERR Mandatory argument FIELDS is missing or not at the right position"
	errNumFields    = "ERR Number of fields must be a positive integer"
	errNumFieldsArg = "ERR Parameter `numFields` should be greater than 0"
	errFieldsInArgs = "ERR The `numfields` parameter must match the number of arguments"
	errNegativeTime = "ERR invalid expire time, must be >= 0"
	errFieldCount   = "ERR invalid number of fields"
	errMissingTime  = "ERR missing expire time"
	errOneExpiry    = "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified"
	errOneCondition = "ERR Only one of FXX or FNX arguments can be specified"
	errUnknownArg   = "ERR unknown argument: "
)

// Dunlin's own text, for an error that Redis does not have.
const errReplyTooLarge = "ERR the reply would be too large, ask for fewer fields"
