package sets

// The texts of Redis 8, byte for byte.
const (
	errPositive = "ERR value is out of range, must be positive"
	errRange    = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	errNumKeys  = "ERR numkeys should be greater than 0"
	errFewKeys  = "ERR Number of keys can't be greater than number of args"
	errLimit    = "ERR LIMIT can't be negative"
)
