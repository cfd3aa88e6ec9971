package keys

// The texts of Redis 7, byte for byte, because clients compare them.
const (
	errInvalidCursor = "ERR invalid cursor"
	errExpireNX      = "ERR NX and XX, GT or LT options at the same time are not compatible"
	errExpireGTLT    = "ERR GT and LT options at the same time are not compatible"
	ErrNoKey         = "ERR no such key"
	errSameObject    = "ERR source and destination objects are the same"
	ErrBusyKey       = "BUSYKEY Target key name already exists."
	errTTL           = "ERR Invalid TTL value, must be >= 0"
	errIdleTime      = "ERR Invalid IDLETIME value, must be >= 0"
	errFrequency     = "ERR Invalid FREQ value, must be >= 0 and <= 255"
	ErrPayload       = "ERR DUMP payload version or checksum are wrong"
	errFormat        = "ERR Bad data format"
	ErrNoFrequency   = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + errSwitched
	ErrNoIdleTime    = "ERR An LFU maxmemory policy is selected, idle time not tracked. " + errSwitched
	errNotInMulti    = "ERR Command not allowed inside a transaction"
	errSwitched      = "Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust."
)

// Dunlin's own texts, for errors that Redis does not have.
const (
	errKeysTooLarge = "ERR the reply of KEYS would be too large, use SCAN"
	ErrDumpTooLarge = "ERR the value is too large for DUMP"
)
