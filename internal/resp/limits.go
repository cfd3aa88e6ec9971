package resp

import "math"

// Version is a version of the protocol. A connection speaks RESP2 until HELLO 3.
// The encoders treat every other value, zero too, as RESP2.
type Version uint8

// The versions that exist.
const (
	RESP2 Version = 2
	RESP3 Version = 3
)

// Outcome says how far a Parser or Scanner got.
type Outcome uint8

const (
	// NeedMore: the buffer ends before the request or reply ends.
	NeedMore Outcome = iota
	// Done: a whole request or reply is there.
	Done
	// LargeBulk: the next argument of a request is too large to be gathered; see Parser.Large. Only
	// with Limits.LargeBulk.
	LargeBulk
	// Malformed: the bytes are not RESP, or break a limit. The stream is lost.
	Malformed
)

// String names the outcome, for tests and logs.
func (o Outcome) String() string {
	switch o {
	case NeedMore:
		return "need more"
	case Done:
		return "done"
	case LargeBulk:
		return "large bulk"
	default:
		return "malformed"
	}
}

// Limits bounds what a Parser accepts. The Parser applies them to the lengths that headers declare,
// so it refuses an oversized request before the request's bytes arrive.
type Limits struct {
	MaxBulk    int // bytes of one argument; 0 means DefaultLimits.MaxBulk
	MaxArgs    int // arguments of one request; 0 means DefaultLimits.MaxArgs
	MaxInline  int // bytes of an inline line, or of any header; 0 means DefaultLimits.MaxInline
	MaxRequest int // bytes of one whole request; 0 or more than 4 GiB - 1 means 4 GiB - 1

	// LargeBulk is the least length of an argument, in bytes, that the Parser announces with the
	// outcome LargeBulk as soon as its header is there. 0 means that it announces none.
	LargeBulk int

	// Words returns how many arguments of a request the caller wants, given the first two, which it
	// must not retain. The Parser checks every argument and keeps only so many, so that a list that
	// nobody reads takes no memory. It calls Words for long requests only. nil: all are kept.
	Words func(first, second []byte) int

	// Unauthenticated selects Redis's error texts for clients that have not authenticated, for
	// numbers that exceed these limits but not DefaultLimits.
	Unauthenticated bool
}

// DefaultLimits are the limits of an authenticated client, and of a zero Parser.
var DefaultLimits = Limits{
	MaxBulk:    512 << 20,
	MaxArgs:    1 << 20,
	MaxInline:  64 << 10,
	MaxRequest: 1 << 30,
}

// UnauthenticatedLimits are the limits before AUTH: enough for HELLO with all its options, too
// little to make a server buffer much for a stranger.
var UnauthenticatedLimits = Limits{
	MaxBulk:         16 << 10,
	MaxArgs:         10,
	MaxInline:       16 << 10,
	MaxRequest:      17 << 10,
	Unauthenticated: true,
}

// resolved returns l with its zeros replaced by the defaults that they stand for.
func (l Limits) resolved() Limits {
	if l.MaxBulk <= 0 {
		l.MaxBulk = DefaultLimits.MaxBulk
	}
	if l.MaxArgs <= 0 {
		l.MaxArgs = DefaultLimits.MaxArgs
	}
	if l.MaxInline <= 0 {
		l.MaxInline = DefaultLimits.MaxInline
	}
	if l.LargeBulk <= 0 {
		l.LargeBulk = math.MaxInt
	}
	// The parser keeps positions in 32 bits, to halve the memory of long lists.
	if l.MaxRequest <= 0 || l.MaxRequest > math.MaxUint32 {
		l.MaxRequest = math.MaxUint32
	}
	return l
}
