package sortedsets

// The texts of Redis 8, byte for byte, because clients compare them.
const (
	errNotFloat    = "ERR value is not a valid float"
	errNaN         = "ERR resulting score is not a number (NaN)"
	errNXAndXX     = "ERR XX and NX options at the same time are not compatible"
	errGTAndLT     = "ERR GT, LT, and/or NX options at the same time are not compatible"
	errIncrPairs   = "ERR INCR option supports a single increment-element pair"
	errScoreBounds = "ERR min or max is not a float"
	errNameBounds  = "ERR min or max not valid string range item"
	errLimit       = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"
	errScoresByLex = "ERR syntax error, WITHSCORES not supported in combination with BYLEX"
	errNegative    = "ERR value is out of range, must be positive"
	errOutOfRange  = "ERR value is out of range"
	errCountRange  = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	errNumKeys     = "ERR numkeys should be greater than 0"
	errCount       = "ERR count should be greater than 0"
	errCardLimit   = "ERR LIMIT can't be negative"
	errWeight      = "ERR weight value is not a float"
)
