package bitmaps

// The texts of Redis 7, byte for byte, because clients compare them.
const (
	errBit           = "ERR bit is not an integer or out of range"
	errBitOffset     = "ERR bit offset is not an integer or out of range"
	errBitArgument   = "ERR The bit argument must be 1 or 0."
	errBitNot        = "ERR BITOP NOT must be called with a single source key."
	errFieldType     = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is."
	errFieldReadOnly = "ERR BITFIELD_RO only supports the GET subcommand"
	errOverflowType  = "ERR Invalid OVERFLOW type specified"
)

// Dunlin's own texts, for errors that Redis does not have.
const (
	errSourcesChange = "TRYAGAIN the sources change faster than they can be combined"
)
