package lua

import (
	"sync/atomic"
)

// A State runs scripts, one at a time. It belongs to one goroutine; only Stop may be called by others.
type State struct {
	Globals *Table

	// Look is asked every 10,000 steps; an error from it ends the script and is its Cause. It may be nil.
	Look func() error
	// More is asked when a script has used all bytes that it may: it returns how many more the script gets.
	// More itself bounds their sum. It may be nil: then there are no more.
	More func(need int) int
	// Caught makes of an error that pcall has caught what pcall returns. It may be nil: then that is the error.
	Caught func(v Value) Value
	// Print gets what print writes, one line without its end. It may be nil.
	Print func(line string)
	// Clock is what os.clock returns: seconds of processor time. It may be nil: then it is 0.
	Clock func() float64

	account
	stop atomic.Bool

	registry   *Table // what the host keeps, out of the scripts' reach
	stringMeta *Table // the metatable of all strings
	pinned     []Value
	atReset    []func()
	running    *thread
	main       *thread
	base       int // bytes in use before a script runs
	lastID     uint32
	baseID     uint32 // what lastID was before a script runs
	lastCensus uint32
	random     random
	spare      spareNodes
}

// NewState makes a State with the base library. Libraries are added with their Open functions.
func NewState() *State {
	s := &State{}
	s.setLimits(Limits{Steps: 1 << 40, Bytes: 1 << 40})
	s.Globals = s.NewTable(0, 0)
	s.registry = s.NewTable(0, 0)
	s.main = s.newThread()
	s.running = s.main
	s.random.seed(0)
	openBase(s)
	s.Seal()
	return s
}

// Seal says that what is in use now is there before every script: Reset returns to this account. The
// host calls it once all libraries are open. From then on it sees to it that everything which scripts
// share is read-only: what a script manages to leave behind is not counted.
func (s *State) Seal() { s.base, s.baseID = s.used, s.lastID }

// Reset prepares for the next script: it forgets what the last one left on the stack, takes back Stop,
// and sets the budgets.
func (s *State) Reset(l Limits) {
	s.setLimits(l)
	s.limit += s.base
	s.used = s.base
	s.stop.Store(false)
	s.random.seed(0)
	s.lastID = s.baseID // scripts see numbers of tables: the same in every State that was made alike
	clear(s.pinned)
	s.pinned = s.pinned[:0]
	s.running = s.main
	s.main.reset()
	for _, f := range s.atReset {
		f()
	}
}

// AtReset has f called by every Reset: a library forgets what the last script has set.
func (s *State) AtReset(f func()) { s.atReset = append(s.atReset, f) }

// Stop ends the running script within some 50 µs with ErrStopped. Any goroutine may call it. It is in
// force until Reset.
func (s *State) Stop() { s.stop.Store(true) }

// Used is how many bytes of its budget the script has in use, or has had since they were last counted.
func (s *State) Used() int { return s.used - s.base }

// NewTable makes a table with room for elements and fields.
func (s *State) NewTable(elements, fields int) *Table {
	s.charge(tableSize)
	t := &Table{state: s, id: s.newID()}
	if elements > 0 || fields > 0 {
		t.resize(elements, fields)
	}
	return t
}

// NewString is the Value of a copy of b, which is charged.
func (s *State) NewString(b []byte) Value {
	if len(b) <= 1 {
		if len(b) == 0 {
			return String("")
		}
		return byteString(b[0])
	}
	s.charge(len(b))
	return String(string(b))
}

// byteStrings are the strings of one byte.
var byteStrings = func() string {
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	return string(all[:])
}()

func byteString(b byte) Value { return String(byteStrings[b : int(b)+1]) }

// copyString is the Value of a part of another string, which it must not keep alive.
func (s *State) copyString(part string) Value {
	if len(part) <= 1 {
		if part == "" {
			return String("")
		}
		return byteString(part[0])
	}
	s.charge(len(part))
	return String(string([]byte(part)))
}

// Pin keeps v counted until Reset although only the host refers to it.
func (s *State) Pin(v Value) { s.pinned = append(s.pinned, v) }

// Registry is a table for the host, which scripts cannot reach.
func (s *State) Registry() *Table { return s.registry }

// StringMetatable is the metatable of all strings; nil before the string library is open.
func (s *State) StringMetatable() *Table { return s.stringMeta }

func (s *State) newID() uint32 {
	s.lastID++
	return s.lastID
}

// A HostFunction is a function that scripts call. It reads its arguments from c and pushes its results.
// c is valid during the call only; strings and tables that it hands out are valid for as long as one likes.
type HostFunction func(c *Call)

// Function makes a Value of f. captured are values that belong to it, which it finds as c.Captured(i).
func (s *State) Function(f HostFunction, captured ...Value) Value {
	s.charge(closureSize + len(captured)*valueSize)
	return builtinValue(&builtin{function: f, captured: captured, id: s.newID()})
}

// Register sets functions in t.
func (s *State) Register(t *Table, functions map[string]HostFunction) {
	for _, name := range sortedNames(functions) {
		t.SetString(name, s.Function(functions[name]))
	}
}

// Library is the global table name, which is made if it is not there.
func (s *State) Library(name string) *Table {
	if t, ok := s.Globals.GetString(name).AsTable(); ok {
		return t
	}
	t := s.NewTable(0, 0)
	s.Globals.SetString(name, TableValue(t))
	return t
}

// Load makes a function of a compiled chunk. Its variables are the globals.
func (s *State) Load(p *Prototype) Value { return s.LoadIn(p, s.Globals) }

// LoadIn makes a function of a compiled chunk whose global variables are those of env.
func (s *State) LoadIn(p *Prototype, env *Table) Value { return closureValue(s.newClosure(p, env)) }

// Call calls a function and returns its results, which are valid until the State is used again.
// An error is an *Error.
func (s *State) Call(fn Value, args ...Value) (results []Value, err error) {
	t := s.running
	at := t.liveTop()
	t.ensure(at + len(args) + 1)
	t.stack[at] = fn
	copy(t.stack[at+1:], args)
	t.top = at + 1 + len(args)
	if failure := t.try(at, len(args), allResults); failure != nil {
		t.top = at
		return nil, failure
	}
	results = t.stack[at:t.top]
	t.top = at
	return results, nil
}
