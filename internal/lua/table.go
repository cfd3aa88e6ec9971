package lua

import (
	"iter"
	"math"
)

// A Table is a table of Lua. It is laid out as in Lua 5.1 (an array for the keys 1 … n of which more
// than half are in use, a hash with free places in its chains for the others), because scripts can see
// the layout: in the order of pairs, in the length of arrays with holes, in what cjson writes.
//
// A Table belongs to one State and is used by its goroutine only.
type Table struct {
	array    []Value
	nodes    []node // 0 or a power of two
	lastFree int    // all nodes at lastFree and above are in use
	meta     *Table
	state    *State
	id       uint32
	seen     uint32 // the last census that counted it
	absent   uint8  // metamethods known to be absent from this table, as events' bits
	readOnly bool
}

type node struct {
	key, value Value
	next       uint32 // 1 + the index of the next node with this main position; 0: none
}

const (
	valueSize = 16
	nodeSize  = 40
	tableSize = 96
)

// ReadOnly reports whether scripts are kept from changing t.
func (t *Table) ReadOnly() bool { return t.readOnly }

// SetReadOnly keeps scripts from changing t, or lets them. The host's Set is not kept from it.
func (t *Table) SetReadOnly(on bool) { t.readOnly = on }

// SetMetatable sets the metatable of t; nil removes it.
func (t *Table) SetMetatable(meta *Table) { t.meta = meta }

// hashString is the hash of Lua 5.1: at most 32 bytes of s are looked at. Those who put many colliding
// keys into a table pay for the walk through their chain in steps.
func hashString(s string) uint32 {
	h := uint32(len(s))
	step := len(s)>>5 + 1
	for i := len(s); i >= step; i -= step {
		h ^= h<<5 + h>>2 + uint32(s[i-1])
	}
	return h
}

func (t *Table) mainPosition(key Value) uint32 {
	size := uint32(len(t.nodes))
	switch {
	case key.isNumber():
		if key.num() == 0 {
			return 0
		}
		return (uint32(key.bits) + uint32(key.bits>>32)) % (size - 1 | 1)
	case key.isString():
		return hashString(key.str()) & (size - 1)
	case key.isKind(kindBool):
		return uint32(bit(key.truthy())) & (size - 1)
	}
	return uint32(key.address()) % (size - 1 | 1)
}

// walked charges a walk through a chain. Ordinary chains are short and free.
func (t *Table) walked(nodes, keyLength int) {
	if nodes > 4 || keyLength > 1024 {
		t.state.spend(nodes * (1 + keyLength>>6))
	}
}

// Get is t[key] without metamethods.
func (t *Table) Get(key Value) Value {
	if p := t.find(key); p != nil {
		return *p
	}
	return Nil
}

// find is where the value of key is, or nil.
func (t *Table) find(key Value) *Value {
	if key.isNumber() {
		n := key.num()
		if i := int(n); float64(i) == n {
			if uint(i-1) < uint(len(t.array)) {
				return &t.array[i-1]
			}
		}
		return t.findNode(key)
	}
	if key.isString() {
		return t.findString(key, hashString(key.str()))
	}
	if key.isNil() {
		return nil
	}
	return t.findNode(key)
}

// GetInt is t[i] without metamethods.
func (t *Table) GetInt(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if len(t.nodes) != 0 {
		if p := t.findNode(Number(float64(i))); p != nil {
			return *p
		}
	}
	return Nil
}

// GetString is t[key] without metamethods.
func (t *Table) GetString(key string) Value {
	if p := t.findString(String(key), hashString(key)); p != nil {
		return *p
	}
	return Nil
}

// findString is find for a string whose hash is known.
func (t *Table) findString(key Value, hash uint32) *Value {
	if len(t.nodes) == 0 {
		return nil
	}
	i := hash & uint32(len(t.nodes)-1)
	for walked := 1; ; walked++ {
		n := &t.nodes[i]
		if n.key.bits == key.bits && (n.key.ref == key.ref || n.key.isString() && n.key.str() == key.str()) {
			t.walked(walked, int(key.bits>>8))
			return &n.value
		}
		if n.next == 0 {
			t.walked(walked, int(key.bits>>8))
			return nil
		}
		i = n.next - 1
	}
}

// findNode is find for a key in the hash that is no string.
func (t *Table) findNode(key Value) *Value {
	if n := t.nodeOf(key); n >= 0 {
		return &t.nodes[n].value
	}
	return nil
}

func (t *Table) nodeOf(key Value) int {
	if len(t.nodes) == 0 {
		return -1
	}
	i := t.mainPosition(key)
	for walked := 1; ; walked++ {
		n := &t.nodes[i]
		if RawEqual(n.key, key) {
			t.walked(walked, 0)
			return int(i)
		}
		if n.next == 0 {
			t.walked(walked, 0)
			return -1
		}
		i = n.next - 1
	}
}

// Set is t[key] = value without metamethods, and also where t is read-only. The key is neither nil nor
// NaN. What t grows by is charged to its State.
func (t *Table) Set(key, value Value) { *t.place(key) = value }

// SetInt is t[i] = value, as Set.
func (t *Table) SetInt(i int, value Value) {
	if uint(i-1) < uint(len(t.array)) {
		t.array[i-1] = value
		return
	}
	*t.place(Number(float64(i))) = value
}

// SetString is t[key] = value, as Set.
func (t *Table) SetString(key string, value Value) { *t.place(String(key)) = value }

// place is where the value of key is or, if key is new, goes. It is valid until the next change of t.
func (t *Table) place(key Value) *Value {
	t.absent = 0
	if p := t.find(key); p != nil {
		return p
	}
	return t.insert(key)
}

// Length is the length of t as #t is in Lua 5.1: a border, and of several the same one.
func (t *Table) Length() int {
	j := len(t.array)
	if j > 0 && t.array[j-1].isNil() {
		i := 0
		for j-i > 1 {
			if m := (i + j) / 2; t.array[m-1].isNil() {
				j = m
			} else {
				i = m
			}
		}
		return i
	}
	if len(t.nodes) == 0 {
		return j
	}
	return t.searchBorder(j)
}

// searchBorder finds a border at or above i in the hash: doubling, then bisecting.
func (t *Table) searchBorder(i int) int {
	j := i + 1
	for !t.GetInt(j).isNil() {
		i = j
		j *= 2
		if j > math.MaxInt32 { // a table made to mislead: count
			i = 1
			for !t.GetInt(i).isNil() {
				t.state.spend(1)
				i++
			}
			return i - 1
		}
	}
	for j-i > 1 {
		if m := (i + j) / 2; t.GetInt(m).isNil() {
			j = m
		} else {
			i = m
		}
	}
	return i
}

// Next is the entry behind key in the order of pairs; nil begins. It returns a nil key at the end, and
// ok is false if key is not in t.
func (t *Table) Next(key Value) (k, v Value, ok bool) {
	i := t.position(key)
	if i < 0 {
		return Nil, Nil, false
	}
	k, v = t.entryFrom(i)
	return k, v, true
}

// position is the place behind key: first the array, then the nodes.
func (t *Table) position(key Value) int {
	if key.isNil() {
		return 0
	}
	if key.isNumber() {
		if n := key.num(); n >= 1 && n <= float64(len(t.array)) && n == math.Trunc(n) {
			return int(n)
		}
	}
	n := t.nodeOf(key)
	if n < 0 {
		return -1
	}
	return len(t.array) + n + 1
}

// entryFrom is the first entry at place i or behind it.
func (t *Table) entryFrom(i int) (k, v Value) {
	from := i
	for ; i < len(t.array); i++ {
		if v = t.array[i]; !v.isNil() {
			t.walked(i-from, 0)
			return Number(float64(i + 1)), v
		}
	}
	for n := i - len(t.array); n < len(t.nodes); n++ {
		if v = t.nodes[n].value; !v.isNil() {
			t.walked(n+len(t.array)-from, 0)
			return t.nodes[n].key, v
		}
	}
	t.walked(len(t.array)+len(t.nodes)-from, 0)
	return Nil, Nil
}

// entries are the keys and values of t in the order of pairs. t does not change meanwhile.
func (t *Table) entries() iter.Seq2[Value, Value] {
	return func(yield func(k, v Value) bool) {
		t.state.spend(len(t.array) + len(t.nodes))
		for i, v := range t.array {
			if !v.isNil() && !yield(Number(float64(i+1)), v) {
				return
			}
		}
		for i := range t.nodes {
			if n := &t.nodes[i]; !n.value.isNil() && !yield(n.key, n.value) {
				return
			}
		}
	}
}
