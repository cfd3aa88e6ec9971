package hyperloglogs

// The texts of Redis 7, to the letter: clients compare them.
const (
	ErrNoSketch      = "WRONGTYPE Key is not a valid HyperLogLog string value."
	ErrCorruptSketch = "INVALIDOBJ Corrupted HLL object detected"
)

// Texts of our own, for what Redis does not have.
const (
	ErrUnionTooLarge = "ERR too many HyperLogLogs at a time, merge them in several steps"
)
