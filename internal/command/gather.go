package command

import "bytes"

// Gathering says how a command is executed whose keys lie in several slots, if they may (--cross-slot relaxed): by one
// node, on values that the owners of the keys lend, or in partitions that they hold for it.
type Gathering uint8

// How commands are gathered.
const (
	NotGathered   Gathering = iota // their keys must lie in one slot
	GatherRead                     // all keys are read
	GatherStore                    // a result is stored under one key, unseen, and the others are read
	GatherMerge                    // the same, but that key is read, too
	GatherCopy                     // the second key gets what the first one has
	GatherMove                     // the same, and the first one is deleted
	GatherElement                  // an element of the first key goes to the second one
	GatherNew                      // all keys are stored, or none if one of them exists
)

// Gathered returns how this call is executed if its keys lie in several slots. It reads args during the call only.
func (c *Command) Gathered(args [][]byte) Gathering {
	if c.ID == Sort && looksUp(args) {
		return NotGathered
	}
	return c.Gathers
}

// Reserves reports whether the command changes its keys where they are, and so has their partitions held.
func (g Gathering) Reserves() bool { return g == GatherElement || g == GatherNew }

// Destination returns the argument that is the key under which a gathered command stores; 0: it only reads. If the
// options name several, the last one counts.
func (c *Command) Destination(args [][]byte) (at int) {
	for i := range c.Keys {
		k := &c.Keys[i]
		if run, _ := k.find(args); k.Use&(Update|Insert) != 0 {
			at = max(at, run.First)
		}
	}
	return at
}

// Home returns the key whose owner executes a gathered command: the destination, or else the first one.
func (c *Command) Home(args [][]byte) int {
	if at := c.Destination(args); at != 0 {
		return at
	}
	return c.FirstKey(args)
}

// looksUp reports whether a SORT looks up keys that its patterns make: nobody knows them before.
func looksUp(args [][]byte) bool {
	for i := 2; i < len(args)-1; i++ {
		switch {
		case EqualFold(args[i], "LIMIT"):
			i += 2
		case EqualFold(args[i], "STORE"):
			i++
		case EqualFold(args[i], "GET"):
			if i++; string(args[i]) != "#" {
				return true
			}
		case EqualFold(args[i], "BY"):
			if i++; bytes.IndexByte(args[i], '*') >= 0 {
				return true
			}
		}
	}
	return false
}
