package hyperloglogs

// The texts of Redis 7, byte for byte, because clients compare them.
const (
	ErrNoSketch      = "WRONGTYPE Key is not a valid HyperLogLog string value."
	ErrCorruptSketch = "INVALIDOBJ Corrupted HLL object detected"
)

// Dunlin's own texts, for errors that Redis does not have.
const (
	ErrUnionTooLarge = "ERR too many HyperLogLogs at a time, merge them in several steps"
)
