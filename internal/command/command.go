package command

import "math"

// ID identifies a row; the constants are in id.go. IDs are dense, so that they can index arrays of
// NumIDs counters or handlers. 0 is no row.
type ID uint16

// Route says who executes a command, as the process that the client is connected to sees it.
type Route uint8

const (
	Refused    Route = iota // by nobody in a cluster of this kind
	Local                   // by the process that the client is connected to
	Key                     // all keys in one slot, by the owner of its partition
	AnyNode                 // by any node
	SplitKeys               // divided by key, each part by its owner
	SplitPairs              // divided by pairs of key and value
	AllNodes                // by every node, each for its partitions
)

// Merge says how the replies to the parts of a command become one.
type Merge uint8

const (
	MergeNone  Merge = iota // there is one reply
	MergeSum                // integers, added
	MergeArray              // arrays, elements put back in the order of the keys
	MergeOK                 // +OK if every part says so
	MergeInfo               // the nodes' figures, by package proxy/wide
	MergeWide               // anything else that all nodes say, by package proxy/wide
)

// Command is one row of the table. Rows are immutable after start and shared;
// nobody may change what they point to.
type Command struct {
	ID    ID
	Route Route
	Merge Merge
	Built bool // false: clients are told that there is no such command
	// firstKey is the position of the first key among the arguments if every call has it at the
	// same position, otherwise placed.
	firstKey uint8
	// placed is the argument that is no key and yet decides, as a key does, who executes the command:
	// the channel of PUBLISH. 0: none.
	placed uint8
	Flags  Flags
	// Arity counts the command's name and, for a subcommand, both names.
	// Negative: at least that many, and at most the limit of most.
	Arity int
	most  int // words of a request: maxWords for a client's command without keys, otherwise no limit

	Name string     // lower case; of a subcommand in full, "client|id"
	Subs []*Command // not nil for a container, whose calls run a row of these
	Keys []KeySpec
	// Values are the arguments that are stored under a key, as its value or a part of it, or compared with it.
	Values ValueSpec
	// The keys as Redis described them before key specs: First and Last are arguments (Last
	// negative: from the end), 0 for none. build sets them.
	First, Last, Step int

	Gathers Gathering // see Gathered

	Group      string // as in COMMAND DOCS
	Since      string // version of Redis, or of Valkey for what only it has
	Deprecated string // version that deprecated it, if any
	Summary    string
	acl        category // what does not follow from Flags

	// repeatable decides for an Idempotent row whether a call with these options may be repeated.
	repeatable func(args [][]byte) bool
	fold       fold // of the own name, "id" of "client|id"
}

// RedisVersion is the version of Redis whose behaviour clients can expect. Clients choose features
// by it (CLIENT SETINFO and CLIENT NO-TOUCH from 7.2), and frameworks refuse to start below their
// minimum.
const RedisVersion = "7.4.0"

// Placed returns the argument that is no key and yet decides, as a key does, who executes the command; 0
// if there is none.
func (c *Command) Placed() int { return int(c.placed) }

// OnChannel reports whether a channel decides who executes the command. It lies in no database.
func (c *Command) OnChannel() bool { return c.placed > 0 || c.ID == SPublish }

// Quick reports whether the command takes microseconds as long as it has few arguments.
func (c *Command) Quick() bool { return c.Flags&(Fast|Light) != 0 }

// MaxScript is the longest body of a script, in bytes.
const MaxScript = 1 << 20

// IsScript reports whether the command executes a script or calls a function.
func (c *Command) IsScript() bool {
	switch c.ID {
	case Eval, EvalRO, EvalSha, EvalShaRO, FCall, FCallRO:
		return true
	}
	return false
}

// IsFunction reports whether the command is about functions, or calls one.
func (c *Command) IsFunction() bool {
	return c.ID == FCall || c.ID == FCallRO || FunctionDelete <= c.ID && c.ID <= FunctionStats
}

// ArityOK reports whether a request of n arguments, names included, fits.
func (c *Command) ArityOK(n int) bool {
	if c.Arity >= 0 {
		return n == c.Arity
	}
	return n >= -c.Arity && n <= c.most
}

// Fits reports whether a request does: its number of words, and their length.
func (c *Command) Fits(args [][]byte) bool { return c.ArityOK(len(args)) && !c.isTooLong(args) }

// isTooLong reports whether a request without keys has more bytes than a server answers.
func (c *Command) isTooLong(args [][]byte) bool {
	if c.most != maxWords || c.placed != 0 || c.Group == scriptingTable.group {
		return false
	}
	bytes := 0
	for _, a := range args[1:] {
		bytes += len(a)
	}
	return bytes > maxBytes
}

// Words returns how many words of a request the server reads, by its first two: one more than its row
// allows, if there is a limit, so that the request is refused. It is a resp.Limits.Words.
func Words(name, sub []byte) int {
	if c := Row([][]byte{name, sub}); c != nil && c.Arity >= 0 {
		return c.Arity + 1
	} else if c != nil && c.most == math.MaxInt {
		return math.MaxInt
	}
	return maxWords + 1
}

// ByID returns the row with that ID; nil if there is none.
func ByID(id ID) *Command {
	if id >= NumIDs {
		return nil
	}
	return byID[id]
}

// All returns the top-level rows, built or not, sorted by name, without internal ones. Callers
// share the slice and must not change it.
func All() []*Command { return sorted }

// Listed returns the rows that COMMAND shows, sorted by name: the built ones. Subs still contain
// subcommands that are not built. Callers share the slice and must not change it.
func Listed() []*Command { return listed }

// Resolve returns the row that a client's request runs, or its subcommand's row, and checks the
// number of arguments. If there is no such row it returns nil, and dst with the error text
// appended. args must have at least the name, and is not kept.
func Resolve(dst []byte, args [][]byte) (c *Command, refusal []byte) {
	if c = Lookup(args[0]); c != nil && c.Flags&Internal != 0 {
		c = nil
	}
	return resolve(dst, c, args)
}

// ResolvePeer is Resolve for connections of members: it also finds internal commands.
func ResolvePeer(dst []byte, args [][]byte) (c *Command, refusal []byte) {
	return resolve(dst, Lookup(args[0]), args)
}

// resolve checks in Redis's order: name, subcommand, number of arguments.
func resolve(dst []byte, c *Command, args [][]byte) (*Command, []byte) {
	if c == nil || !c.Built {
		return nil, AppendUnknown(dst, args)
	}
	if c.Subs != nil && len(args) > 1 {
		sub := c.Sub(args[1])
		if sub == nil || !sub.Built {
			return nil, AppendUnknownSub(dst, c, args[1])
		}
		c = sub
	}
	switch {
	case len(args) > c.most:
		return nil, appendTooMany(dst, c)
	case !c.ArityOK(len(args)):
		return nil, AppendWrongArity(dst, c)
	case c.isTooLong(args):
		return nil, appendTooLong(dst, c)
	}
	return c, nil
}
