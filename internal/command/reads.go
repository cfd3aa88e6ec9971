package command

import "time"

// Reads are the places of what an XREAD or XREADGROUP says among its arguments; 0: it does not.
type Reads struct {
	Group   int // the group; its consumer follows
	Count   int
	Block   int // milliseconds
	MinIdle int // of CLAIM
	NoAck   int
	First   int // the first key; as many IDs as keys follow behind the last one
	Keys    int
}

// ReadsOf returns where the options of an XREAD or XREADGROUP are. What its node refuses has no keys. Of an option that
// is given several times the last one counts, as in Redis.
func ReadsOf(args [][]byte) (r Reads) {
	for i := 1; i < len(args); i++ {
		switch option, more := args[i], len(args)-1-i; {
		case EqualFold(option, "block") && more > 0:
			i++
			r.Block = i
		case EqualFold(option, "count") && more > 0:
			i++
			r.Count = i
		case EqualFold(option, "claim") && more > 0:
			i++
			r.MinIdle = i
		case EqualFold(option, "group") && more > 1:
			r.Group = i + 1
			i += 2
		case EqualFold(option, "noack"):
			r.NoAck = i
		case EqualFold(option, "streams") && more > 0:
			r.First, r.Keys = i+1, more/2
			return r
		default:
			return r
		}
	}
	return r
}

// IDs returns the arguments behind the keys: as many, if the command is well-formed.
func (r *Reads) IDs(args [][]byte) [][]byte { return args[r.First+r.Keys:] }

// streamKeys is where the keys of an XREAD or XREADGROUP begin, 0 if it has none.
func streamKeys(args [][]byte) int {
	r := ReadsOf(args)
	return r.First
}

// Limit returns where a call of a command says how long it may wait for its keys, and the unit of that. at is 0 if the
// call never waits for them.
func (c *Command) Limit(args [][]byte) (at int, unit time.Duration) {
	switch {
	case c.Flags&Blocking == 0 || c.Route != Key || len(args) < 2:
		return 0, 0
	case c.ID == BLMPop, c.ID == BZMPop:
		return 1, time.Second
	case c.ID == XRead, c.ID == XReadGroup:
		if r := ReadsOf(args); r.Block > 0 {
			return r.Block, time.Millisecond
		}
		return 0, 0
	}
	return len(args) - 1, time.Second
}
