package proxy

import (
	"errors"

	"github.com/dunlin-cache/dunlin/internal/resp"
)

// Errors that the proxy itself gives, encoded once.
var (
	errCrossSlot      = wire("CROSSSLOT Keys in request don't hash to the same slot")
	errLongGathered   = wire("CROSSSLOT the command, whose keys lie in several slots, is longer than 1 MiB: give them a common hash tag")
	errNotGathered    = wire("CROSSSLOT Keys in request don't hash to the same slot: scripts, transactions and this kind of command need keys with a common hash tag, or a pinned database")
	errParkedLong     = wire("TRYAGAIN no node could take the command in time, it was not executed; try again")
	errNotParked      = wire("TRYAGAIN no memory to keep the command until its node can take it, it was not executed; try again")
	errSomeNodes      = wire("ERR not every node could be reached in time, and some may have executed the command; send it again")
	errUnknown        = wire("ERR the connection to the node broke after the command was sent, outcome unknown")
	errLost           = wire("ERR the command was executed, but its large reply was lost on the way from the node; a command that only reads may be repeated")
	errMerge          = wire("ERR a node gave a reply that cannot be merged with the others")
	errRepliesLarge   = wire("ERR executed, but the replies of the transaction would be too large")
	errPubSubLevel    = wire("ERR publishing and subscribing needs protocol level 9, and the cluster has not reached it: all members must be upgraded")
	errTooManyTopics  = wire("ERR there are too many different patterns, or no memory for the subscription at its node")
	errScripts        = wire("ERR scripts need protocol level 10, and this cluster speaks less: upgrade all members")
	errFunctions      = wire("ERR functions need protocol level 13, and this cluster speaks less: upgrade all members")
	errManyClaims     = wire("ERR a blocking command can name at most 256 keys")
	errManyReads      = wire("ERR XREAD and XREADGROUP can name at most 256 streams of several slots")
	errLongClaims     = wire("ERR the arguments of a command that waits can have at most 65536 bytes")
	errDatabases      = wire("ERR databases other than 0 need protocol level 17, and this cluster speaks less: upgrade all members")
	errUnblocked      = wire("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
	errBlocking       = wire("ERR blocking commands need protocol level 8, and this cluster speaks less: upgrade all members")
	errNoTracking     = wire("ERR CLIENT TRACKING is not possible: there is no memory for its prefixes")
	errTrackingLevel  = wire("ERR CLIENT TRACKING needs protocol level 14, and the cluster has not reached it: all members must be upgraded")
	errTrackingInside = wire("ERR CLIENT TRACKING inside MULTI is not allowed")
	errNoList         = wire("TRYAGAIN no memory to go through the clients; try again, or name some by their ids")
	errLoops          = wire("ERR this proxy's loops do not answer")
	errManyFollowed   = wire("ERR too many prefixes: all clients together can have 4096, of 256 different lengths")
)

// errTooEarly closes a client whose pipelined commands brought far larger replies than the ones
// before.
var errTooEarly = errors.New("replies that wait for their turn take too much memory")

// errPanicked closes a client whose command cannot go on.
var errPanicked = errors.New("panic in a turn of its command")

// errCutOff closes a client that has a part of a large reply when the rest is lost.
var errCutOff = errors.New("the rest of a large reply was lost on the way from the node")

func wire(text string) []byte { return resp.AppendError(nil, text) }
