package command

import "slices"

// FirstKey returns the position of the first key among args, or of what decides in its place who executes
// the command; 0 if there is none. It reads args during the call only.
func (c *Command) FirstKey(args [][]byte) int {
	// Nearly every row has its first key at a fixed place.
	if c.firstKey != 0 {
		if int(c.firstKey) < len(args) {
			return int(c.firstKey)
		}
		return 0
	}
	for i := range c.Keys {
		if run, _ := c.Keys[i].find(args); run.First != 0 {
			return run.First
		}
	}
	return 0
}

// AppendKeys appends the positions of all keys among args to dst, in the order of the row's key
// specs. It returns false if the arguments contradict a spec (a count that is no number or exceeds
// the arguments): the command then answers with its own error, on whichever node it runs. Every
// appended position is within args in any case. It reads args during the call only.
func (c *Command) AppendKeys(dst []int, args [][]byte) ([]int, bool) {
	valid := true
	for i := range c.Keys {
		var ok bool
		dst, ok = c.Keys[i].AppendKeys(dst, args)
		valid = valid && ok
	}
	return dst, valid
}

// AppendKeys does for the keys of one spec what Command.AppendKeys does for all.
func (k *KeySpec) AppendKeys(dst []int, args [][]byte) ([]int, bool) {
	run, ok := k.find(args)
	if run.First == 0 {
		return dst, ok
	}
	if n := run.Count(); n > cap(dst)-len(dst) {
		dst = slices.Grow(dst, n) // at once: a million keys would be copied twenty times
	}
	for p := run.First; p <= run.Last; p += run.Step {
		dst = append(dst, p)
	}
	return dst, ok
}

// KeyRun are keys of a command: every Step-th argument from First to Last.
type KeyRun struct{ First, Last, Step int }

// Count returns the number of keys.
func (r *KeyRun) Count() int { return (r.Last-r.First)/r.Step + 1 }

// Has reports whether the argument at that place is one of the keys.
func (r *KeyRun) Has(place int) bool {
	return r.First <= place && place <= r.Last && (place-r.First)%r.Step == 0
}

// KeyRuns are all keys of a command. Two runs may have a key in common.
type KeyRuns []KeyRun

// KeyRuns returns the keys that AppendKeys lists, in a time that does not depend on their number.
func (c *Command) KeyRuns(args [][]byte) (runs KeyRuns) {
	for i := range c.Keys {
		if run, _ := c.Keys[i].find(args); run.First != 0 {
			runs = append(runs, run)
		}
	}
	return runs
}

// Count returns the number of keys.
func (r KeyRuns) Count() (n int) {
	for i := range r {
		n += r[i].Count()
	}
	return n
}

// Last returns the last place of a key.
func (r KeyRuns) Last() (place int) {
	for i := range r {
		place = max(place, r[i].First+(r[i].Count()-1)*r[i].Step)
	}
	return place
}

// Has reports whether the argument at that place is a key.
func (r KeyRuns) Has(place int) bool {
	for i := range r {
		if r[i].Has(place) {
			return true
		}
	}
	return false
}

// GrownKey returns the key to which the command gives data, the first one if it has several; nil if it
// has none. It is a view of args.
func (c *Command) GrownKey(args [][]byte) []byte {
	for i := range c.Keys {
		k := &c.Keys[i]
		if run, _ := k.find(args); k.Use&(Update|Insert) != 0 && run.First > 0 {
			return args[run.First]
		}
	}
	return nil
}

// find returns the run of keys that the spec describes, within args, and
// whether the arguments agree with the spec. An optional keyword that is
// absent agrees. First is 0 if there are no keys.
func (k *KeySpec) find(args [][]byte) (KeyRun, bool) {
	begin := k.begin(args)
	if begin == 0 {
		return KeyRun{}, true
	}
	run := KeyRun{Step: k.Step}
	switch {
	case k.Find == FindKeyNum:
		return k.findCounted(args, begin)
	case k.Find == FindUnknown:
		run = KeyRun{begin, begin, 1}
	case k.Last >= 0:
		run.First, run.Last = begin, begin+k.Last
	case k.Limit > 1:
		run.First, run.Last = begin, begin+(len(args)-begin)/k.Limit+k.Last
	default:
		run.First, run.Last = begin, len(args)+k.Last
	}
	if run.Last >= len(args) || run.Last < run.First {
		return KeyRun{}, false
	}
	return run, true
}

// findCounted returns the keys that follow a count.
func (k *KeySpec) findCounted(args [][]byte, begin int) (KeyRun, bool) {
	if begin+k.NumIdx >= len(args) {
		return KeyRun{}, false
	}
	n, ok := count(args[begin+k.NumIdx])
	if !ok {
		return KeyRun{}, false
	}
	if n == 0 {
		return KeyRun{}, true // scripts may use no key
	}
	first := begin + k.FirstKey
	// Compared before it is multiplied, so that no count can overflow.
	if n > (len(args)-first+k.Step-1)/k.Step {
		return KeyRun{}, false
	}
	return KeyRun{first, first + (n-1)*k.Step, k.Step}, true
}

// begin returns where the search for keys starts, 0 for nowhere.
func (k *KeySpec) begin(args [][]byte) int {
	switch {
	case k.Begin == BeginIndex:
		return k.Index
	case k.locate != nil:
		return k.locate(args)
	case k.Begin == BeginKeyword:
		return k.afterKeyword(args)
	}
	return 0
}

// afterKeyword returns the position after the keyword, 0 if it is absent or
// the last argument, where nothing can follow it.
func (k *KeySpec) afterKeyword(args [][]byte) int {
	if k.Index < 0 {
		for i := len(args) + k.Index; i > 0; i-- {
			if EqualFold(args[i], k.Keyword) {
				return i + 1
			}
		}
		return 0
	}
	for i := k.Index; i < len(args)-1; i++ {
		if EqualFold(args[i], k.Keyword) {
			return i + 1
		}
	}
	return 0
}

// sortStore finds the destination of SORT. Its keywords are searched in order,
// because a pattern may itself be spelled STORE; the last STORE counts.
func sortStore(args [][]byte) int {
	dest := 0
	for i := 2; i < len(args)-1; i++ {
		switch {
		case EqualFold(args[i], "LIMIT"):
			i += 2
		case EqualFold(args[i], "GET"), EqualFold(args[i], "BY"):
			i++
		case EqualFold(args[i], "STORE"):
			i++
			dest = i
		}
	}
	return dest
}

// count reads a number of keys, which consists of decimal digits only. It accepts up to seven
// digits, which is more than a request can have arguments.
func count(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 7 {
		return 0, false
	}
	n := 0
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}
