package command

// KeyUse says what a command does with the keys of one KeySpec, in the words
// of Redis's key specifications.
type KeyUse uint16

const (
	RO            KeyUse = 1 << iota // reads the value
	RW                               // reads and changes it
	OW                               // overwrites it unseen
	RM                               // removes it
	Access                           // returns or depends on user data
	Update                           // changes user data
	Insert                           // adds user data, changes none
	Delete                           // deletes user data
	NotKey                           // not a key, but it decides the slot like one: shard channels
	Incomplete                       // does not find every key
	VariableFlags                    // the options decide which of these hold
)

var keyUseNames = [...]string{
	"RO", "RW", "OW", "RM", "access", "update", "insert", "delete",
	"not_key", "incomplete", "variable_flags",
}

// Names returns the use as COMMAND INFO writes it.
func (u KeyUse) Names() []string { return bitNames(uint32(u), keyUseNames[:]) }

// Begin is how the search for the keys of a KeySpec starts.
type Begin uint8

const (
	BeginIndex   Begin = iota // at argument Index
	BeginKeyword              // after the argument that equals Keyword, looked for from Index on
	BeginUnknown              // no rule says; locate finds what can be found
)

// Find is how the keys lie from the beginning on.
type Find uint8

const (
	FindRange   Find = iota // every Step-th argument up to Last
	FindKeyNum              // a count, then that many keys
	FindUnknown             // no rule says
)

// KeySpec finds a run of keys among the arguments, where argument 0 is the
// command's name. The fields are those of Redis's key specifications, so that
// COMMAND INFO can show them.
type KeySpec struct {
	Use   KeyUse
	Begin Begin
	Find  Find
	// Index is the argument for BeginIndex. For BeginKeyword it is where the search begins; if it
	// is negative, it counts from the end, and the search goes backwards.
	Index   int
	Keyword string // BeginKeyword: upper case

	// FindRange: Last is relative to the first key or, if negative, to the end of the arguments.
	// Limit 2 stops half way: the other half of the arguments are not keys.
	Last, Step, Limit int

	// FindKeyNum: the count is NumIdx after the beginning, the keys FirstKey
	// after it, Step apart.
	NumIdx, FirstKey int

	// locate, if not nil, finds by code where the keys begin (0: there are none): those of an unknown spec, and those
	// behind a keyword that may also stand elsewhere.
	locate func(args [][]byte) int
}

// specs is a short name for the table's rows.
type specs = []KeySpec

// at describes the single key at argument i.
func at(i int, use KeyUse) KeySpec { return span(i, 0, 1, use) }

// span describes every step-th argument from i to last, which counts from i or, if negative, from
// the end.
func span(i, last, step int, use KeyUse) KeySpec {
	return KeySpec{Use: use, Index: i, Last: last, Step: step}
}

// counted describes the keys after argument i, which says how many they are; they are step apart.
func counted(i, step int, use KeyUse) KeySpec {
	return KeySpec{Use: use, Index: i, Find: FindKeyNum, FirstKey: 1, Step: step}
}

// after describes the single key that follows a keyword, which is looked for from argument i on.
func after(keyword string, i int, use KeyUse) KeySpec {
	return KeySpec{Use: use, Begin: BeginKeyword, Keyword: keyword, Index: i, Step: 1}
}

// restAfter describes all arguments after a keyword, or with limit 2 their first half.
func restAfter(keyword string, i, limit int, use KeyUse) KeySpec {
	return KeySpec{Use: use, Begin: BeginKeyword, Keyword: keyword, Index: i, Last: -1, Step: 1, Limit: limit}
}

// afterStreams describes the keys of XREAD and XREADGROUP, which Redis looks for from argument i on.
func afterStreams(i int, use KeyUse) KeySpec {
	k := restAfter("STREAMS", i, 2, use)
	k.locate = streamKeys // a group may be called like that
	return k
}

// unknown describes keys that no rule finds. locate, if not nil, finds one by code.
func unknown(use KeyUse, locate func(args [][]byte) int) KeySpec {
	return KeySpec{Use: use, Begin: BeginUnknown, Find: FindUnknown, locate: locate}
}

// ValueSpec says which arguments of a command are stored under keys, as values or parts of them, or
// compared with what is.
type ValueSpec struct {
	First int // argument of the first or only value; 0: there is none
	// Elements: each long argument from First on is to be a string in the value of argument 1, which
	// is a hash, a list or a stream.
	Elements bool
	// Operands: each long argument behind First is compared with the value of argument 1.
	Operands bool
	// Pairs: every second argument from First on is a value, and the argument before it is its key.
	// Otherwise there is one value, and its key is argument 1.
	Pairs bool
}

// valueAt is the single value at argument i.
func valueAt(i int) ValueSpec { return ValueSpec{First: i} }

// valueAndOperands is the single value at argument i, and what stands in options behind it.
func valueAndOperands(i int) ValueSpec { return ValueSpec{First: i, Operands: true} }

// valuesFrom is every second argument from i on.
func valuesFrom(i int) ValueSpec { return ValueSpec{First: i, Pairs: true} }

// elementsFrom is the long arguments from i on.
func elementsFrom(i int) ValueSpec { return ValueSpec{First: i, Elements: true} }

// Has reports whether argument i, which is long, is a value.
func (v ValueSpec) Has(i int) bool {
	if v.First == 0 || i < v.First {
		return false
	}
	return v.Elements || v.Operands || i == v.First || v.Pairs && (i-v.First)%2 == 0
}

// Key returns the argument that is the key of value i.
func (v ValueSpec) Key(i int) int {
	if v.Pairs {
		return i - 1
	}
	return 1
}
