package proxy

import "github.com/dunlin-cache/dunlin/internal/resp"

// Errors that the proxy itself gives, encoded once.
var (
	errCrossSlot = wire("CROSSSLOT Keys in request don't hash to the same slot")
	errHeldLong  = wire("TRYAGAIN no node could take the command in time, it was not executed; try again")
	errUnknown   = wire("ERR the connection to the node broke after the command was sent, outcome unknown")
	errMerge     = wire("ERR a node gave a reply that cannot be merged with the others")
	errKeysMany  = wire("ERR the reply would be too large, use SCAN")
)

func wire(text string) []byte { return resp.AppendError(nil, text) }
