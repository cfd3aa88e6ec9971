package lists

// The texts of Redis 8, byte for byte, because clients compare them.
const (
	ErrNoKey        = "ERR no such key"
	ErrIndex        = "ERR index out of range"
	ErrPositive     = "ERR value is out of range, must be positive"
	ErrRange        = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
	ErrRank         = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list"
	ErrCount        = "ERR COUNT can't be negative"
	ErrMaxLen       = "ERR MAXLEN can't be negative"
	ErrNumKeys      = "ERR numkeys should be greater than 0"
	ErrCountAtLeast = "ERR count should be greater than 0"
)

// Of SORT.
const (
	ErrSortBy     = "ERR BY option of SORT denied in cluster mode when keys formed by the pattern may be in different slots."
	ErrSortGet    = "ERR GET option of SORT denied in cluster mode when keys formed by the pattern may be in different slots."
	ErrSortWeight = "ERR One or more scores can't be converted into double"
)
