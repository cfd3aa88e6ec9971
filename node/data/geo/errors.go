package geo

// The texts of Redis 8, byte for byte, because clients compare them.
const (
	errNotFloat     = "ERR value is not a valid float"
	errUnit         = "ERR unsupported unit provided. please use M, KM, FT, MI"
	errRadius       = "ERR need numeric radius"
	errRadiusSign   = "ERR radius cannot be negative"
	errWidth        = "ERR need numeric width"
	errHeight       = "ERR need numeric height"
	errBoxSign      = "ERR height or width cannot be negative"
	errMember       = "ERR could not decode requested zset member"
	errCount        = "ERR COUNT must be > 0"
	errAny          = "ERR the ANY argument requires COUNT argument"
	errStoreOptions = " is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
	errFrom         = "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for "
	errBy           = "ERR exactly one of BYRADIUS and BYBOX can be specified for "
)
