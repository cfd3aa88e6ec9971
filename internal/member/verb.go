package member

import (
	"bytes"
	"math"
	"strconv"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// Name is the first word of every request between members.
const Name = "DUNLIN"

// The verbs. Names in braces are arguments; "…" repeats.
const (
	VerbChallenge = "CHALLENGE" // returns a nonce for a proof
	VerbPipe      = "PIPE"      // {boot} {loop} {kind}[-no-touch][-tracks] {generation} {version} {proof} [{level}]
	VerbPeer      = "PEER"      // {boot} {proof}
	VerbLevel     = "LEVEL"     // {level}: the level that PIPE would name now; ring.OfferLevel
	VerbRetry     = "RETRY"     // {epoch}: the proxy begins to repeat what was refused on this pipe
	VerbCancel    = "CANCEL"    // {token}: nobody waits for that command any more; from ring.OfferLevel on
	VerbFetch     = "FETCH"     // {ticket} {offset} {count}
	VerbListen    = "LISTEN"    // {kind} {mode} {name} {count}, on a pipe that listens
	VerbTopics    = "TOPICS"    // {epoch} ({boot} {loop} {kind} {name} {count})…: who listens to what the node gets
	VerbMissed    = "MISSED"    // {epoch} {kind} {channel} {message} ({boot} {loop})…: what those have not got who listen there
	VerbHanded    = "HANDED"    // {partitions} {name}: that node has told all of their channels; a gap where it has not: ring.HandedLevel
	VerbClaim     = "CLAIM"     // {age} {kind} {key}…, of one partition; from ring.ClaimLevel on
	VerbPass      = "PASS"      // {kind} {turn} {key}: the claim that was told READY does not pop, or has
	VerbReturn    = "RETURN"    // {token} {word of a command}…: puts back what was popped (return.go); from ring.ReturnLevel on
	VerbAs        = "AS"        // {actor}: who wants no word of what the next request of this pipe changes; ring.TrackingLevel
	VerbWatch     = "WATCH"     // {key}…
	VerbExec      = "EXEC"      // {slot} {watched} ({key} {version})… {request}…
	VerbEach      = "EACH"      // {partitions} {word of the command}…
	VerbGather    = "GATHER"    // {word of the command}…, whose keys lie in several slots; from ring.GatherLevel on
	VerbLend      = "LEND"      // {database} {key} {versioned}: what the key holds (lend.go)
	VerbCede      = "CEDE"      // {database} {key} {version}: the key is deleted if it has not changed
	VerbReserve   = "RESERVE"   // {database} {word of a command}…: its partition is held, for a command of several (reserve.go)
	VerbWithin    = "WITHIN"    // {further} {word of a command}…, executed in a partition that is held for this connection
	VerbRelease   = "RELEASE"   // ends what was reserved, and keeps what was changed
	VerbPublish   = "PUBLISH"   // {command} {channel} {message}, of a channel that this node has (publish.go); ring.PinnedLevel
	VerbTable     = "TABLE"     // [{name}]: returns the table, or null; an error if that is not the node's name (ring.GoneLevel)
	VerbTake      = "TAKE"      // {table}
	VerbReport    = "REPORT"    // returns which copies are in sync
	VerbSettings  = "SETTINGS"  // {hash}: returns the settings document, or null
	VerbConfigure = "CONFIGURE" // [{hash}] ({name} {value})…: has the coordinator change the settings, of that document
	VerbEmpty     = "EMPTY"     // {hash} {databases}: which of these, closed by that document, have keys here; ring.PinnedLevel
	VerbStream    = "STREAM"    // {name} {generation}
	VerbEffects   = "EFFECTS"   // {seq} {milli} {effects}
	VerbValue     = "VALUE"     // {seq} {milli} {partition} {key} {expireAt} {type} {uses} {total} {offset} {piece}
)

// AppendVerb appends the beginning of a request: its first two words. n is how many arguments
// follow the verb; the caller appends them as bulk strings.
func AppendVerb(dst []byte, verb string, n int) []byte {
	dst = resp.AppendArray(dst, n+2)
	dst = resp.AppendBulkString(dst, Name)
	return resp.AppendBulkString(dst, verb)
}

// AppendRequest appends a whole request.
func AppendRequest(dst []byte, verb string, args ...[]byte) []byte {
	dst = AppendVerb(dst, verb, len(args))
	for _, a := range args {
		dst = resp.AppendBulk(dst, a)
	}
	return dst
}

// IsRequest reports whether input begins with the first word of a request as AppendRequest encodes it.
func IsRequest(input []byte) bool {
	_, words, whole := bytes.Cut(input, []byte("\r\n"))
	return whole && input[0] == '*' && bytes.HasPrefix(words, firstWord)
}

// firstWord is the encoding of DUNLIN.
var firstWord = []byte("$6\r\nDUNLIN\r\n")

// AppendLevel appends LEVEL, with the level of this build.
func AppendLevel(dst []byte) []byte { return appendUint(AppendVerb(dst, VerbLevel, 1), ring.Level) }

// ParseLevel reads the argument of LEVEL.
func ParseLevel(arg []byte) (level uint8, ok bool) {
	n, ok := parseUint(arg)
	return uint8(n), ok && n <= math.MaxUint8
}

// AppendCancel appends CANCEL.
func AppendCancel(dst []byte, token uint64) []byte {
	return appendUint(AppendVerb(dst, VerbCancel, 1), token)
}

// ParseCancel reads the argument of CANCEL.
func ParseCancel(arg []byte) (token uint64, ok bool) { return parseUint(arg) }

// AppendRetry appends RETRY. epoch is the newest one that the node has named in a refusal.
func AppendRetry(dst []byte, epoch uint64) []byte {
	return appendUint(AppendVerb(dst, VerbRetry, 1), epoch)
}

// ParseRetry reads the argument of RETRY.
func ParseRetry(arg []byte) (epoch uint64, ok bool) { return parseUint(arg) }

// appendUint appends a number as a bulk string.
func appendUint(dst []byte, n uint64) []byte {
	var digits [20]byte
	return resp.AppendBulk(dst, strconv.AppendUint(digits[:0], n, 10))
}

// appendInt is appendUint for signed numbers.
func appendInt(dst []byte, n int64) []byte {
	var digits [20]byte
	return resp.AppendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}

func parseUint(b []byte) (n uint64, ok bool) {
	const digits = 20 // of the longest number
	if len(b) > digits {
		if b = bytes.TrimLeft(b, "0"); len(b) > digits {
			return 0, false // strconv would copy it, and its error once more
		}
		if len(b) == 0 {
			return 0, true
		}
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	return n, err == nil
}
