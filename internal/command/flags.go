package command

// Flags say what a command does and where it is allowed. The lower bits have names in COMMAND INFO,
// as in Redis. The upper bits are Dunlin's own and never shown to clients.
type Flags uint32

// Redis's flags, in the order in which it lists them.
const (
	Write           Flags = 1 << iota // may change the data
	ReadOnly                          // reads keys and changes nothing
	DenyOOM                           // refused when memory is full and nothing may be evicted
	Admin                             // for operators
	PubSub                            // publishing and subscribing
	NoScript                          // not allowed inside a script
	Blocking                          // may make its client wait
	Loading                           // allowed while a data set loads
	Stale                             // allowed on a replica that lost its primary
	SkipMonitor                       // not shown by MONITOR
	SkipSlowlog                       // not entered into the slow log
	NeedsAsking                       // runs as if ASKING had been sent before it
	Fast                              // constant or logarithmic time
	NoAuth                            // allowed before AUTH
	NoMandatoryKeys                   // a call without any key is valid
	NoAsyncLoading                    // refused during an asynchronous load
	NoMulti                           // not allowed inside MULTI
	MovableKeys                       // First, Last and Step do not give all keys; set by build
	AllowBusy                         // allowed while a script runs too long
)

// Our own flags.
const (
	// Idempotent: a second execution leaves the same state and gives an acceptable reply, so a
	// command whose reply was lost may be sent again. For rows whose options decide, ask
	// IdempotentCall.
	Idempotent Flags = 1 << (31 - iota)
	// Internal: spoken between proxies and nodes only. To a client the command
	// does not exist.
	Internal
	// Heavy: a node may take long for it, however short the request is, because it copies or reads
	// a whole value.
	Heavy
	// EveryLoop: the command concerns the clients of all loops of the process to which the client
	// is connected.
	EveryLoop
	// Light: Redis does not flag the command as fast, but with few arguments it is.
	Light
	// Secret: a request may contain a password, so it never enters the slow log.
	Secret
)

var flagNames = [...]string{
	"write", "readonly", "denyoom", "admin", "pubsub", "noscript", "blocking",
	"loading", "stale", "skip_monitor", "skip_slowlog", "asking", "fast",
	"no_auth", "no_mandatory_keys", "no_async_loading",
	"no_multi", "movablekeys", "allow_busy",
}

// Names returns the flags as Redis writes them in COMMAND INFO, in its order.
func (f Flags) Names() []string { return bitNames(uint32(f), flagNames[:]) }

// category is a set of ACL categories. Rows name only what does not follow
// from their flags; Categories adds the rest.
type category uint32

const (
	catKeyspace category = 1 << iota
	catRead
	catWrite
	catSet
	catSortedSet
	catList
	catHash
	catString
	catBitmap
	catHyperLogLog
	catGeo
	catStream
	catPubSub
	catAdmin
	catFast
	catSlow
	catBlocking
	catDangerous
	catConnection
	catTransaction
	catScripting
)

var categoryNames = [...]string{
	"@keyspace", "@read", "@write", "@set", "@sortedset", "@list", "@hash",
	"@string", "@bitmap", "@hyperloglog", "@geo", "@stream", "@pubsub",
	"@admin", "@fast", "@slow", "@blocking", "@dangerous", "@connection",
	"@transaction", "@scripting",
}

// CategoryNames returns the names of all ACL categories, in Redis's order. The
// slice is shared: read only.
func CategoryNames() []string { return categoryNames[:] }

// Categories returns the ACL categories of c as COMMAND INFO shows them.
func (c *Command) Categories() []string {
	return bitNames(uint32(c.acl|c.Flags.categories(c.acl)), categoryNames[:])
}

// categories derives ACL categories from flags by Redis's rules, and adds the named ones.
func (f Flags) categories(named category) category {
	var cats category
	for _, rule := range [...]struct {
		flag Flags
		cats category
	}{
		{Write, catWrite},
		{Admin, catAdmin | catDangerous},
		{PubSub, catPubSub},
		{Blocking, catBlocking},
	} {
		if f&rule.flag != 0 {
			cats |= rule.cats
		}
	}
	// A read-only script does not count as a read: permission to read does not imply permission to
	// run scripts.
	if f&ReadOnly != 0 && named&catScripting == 0 {
		cats |= catRead
	}
	if f&Fast != 0 {
		return cats | catFast
	}
	return cats | catSlow
}

// bitNames returns the names of the set bits, lowest first; bits beyond the
// names are skipped.
func bitNames(bits uint32, names []string) []string {
	var out []string
	for i, name := range names {
		if bits&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}
