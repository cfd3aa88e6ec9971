package lua

import "math"

// event is a metamethod's number. The first eight are looked up most: each table notes in a bit of
// absent that it has none of them.
type event uint8

const (
	eventIndex event = iota
	eventNewIndex
	eventEq
	eventCall
	eventLt
	eventLe
	eventConcat
	eventUnm
	eventAdd // in the order of opAdd … opPow
	eventSub
	eventMul
	eventDiv
	eventMod
	eventPow
	eventLen
)

var eventNames = func() (names [eventLen + 1]Value) {
	for i, name := range []string{"__index", "__newindex", "__eq", "__call", "__lt", "__le", "__concat", "__unm",
		"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__len"} {
		names[i] = String(name)
	}
	return names
}()

// lookup is the metamethod in the metatable t, or nil.
func (t *Table) lookup(e event) Value {
	if t == nil || e < 8 && t.absent&(1<<e) != 0 {
		return Nil
	}
	name := eventNames[e]
	if p := t.findString(name, hashString(name.str())); p != nil && !p.isNil() {
		return *p
	}
	if e < 8 {
		t.absent |= 1 << e
	}
	return Nil
}

func (t *thread) metatable(v Value) *Table {
	if v.isTable() {
		return v.table().meta
	}
	if v.isString() {
		return t.state.stringMeta
	}
	return nil
}

func (t *thread) metamethod(v Value, e event) Value { return t.metatable(v).lookup(e) }

// metafield is a field of v's metatable, or nil.
func (t *thread) metafield(v Value, name string) Value {
	if meta := t.metatable(v); meta != nil {
		return meta.GetString(name)
	}
	return Nil
}

// maxMetaLoop is how many __index or __newindex may lead to one another, and stepsOfMeta what each costs: no jump or
// call counts it.
const maxMetaLoop, stepsOfMeta = 100, 4

// index is v[key]. reg is the register of v, for messages.
func (t *thread) index(v, key Value, reg int) Value {
	for range maxMetaLoop {
		var meta Value
		if v.isTable() {
			table := v.table()
			if p := table.find(key); p != nil && !p.isNil() {
				return *p
			}
			if meta = table.meta.lookup(eventIndex); meta.isNil() {
				return Nil
			}
		} else if meta = t.metamethod(v, eventIndex); meta.isNil() {
			t.failOperand("index", v, reg)
		}
		if meta.isFunction() {
			return t.callMeta(meta, v, key)
		}
		t.state.spend(stepsOfMeta)
		v, reg = meta, -1
	}
	t.failf("loop in gettable")
	return Nil
}

// setIndex is v[key] = value. reg is the register of v, for messages.
func (t *thread) setIndex(v, key, value Value, reg int) {
	for range maxMetaLoop {
		var meta Value
		if v.isTable() {
			table := v.table()
			if table.readOnly {
				t.failReadOnly()
			}
			p := table.find(key)
			if p != nil && !p.isNil() {
				*p = value
				table.absent = 0
				return
			}
			if meta = table.meta.lookup(eventNewIndex); meta.isNil() {
				t.rawSet(table, key, value)
				return
			}
		} else if meta = t.metamethod(v, eventNewIndex); meta.isNil() {
			t.failOperand("index", v, reg)
		}
		if meta.isFunction() {
			slot := t.liveTop()
			t.ensure(slot + 4)
			t.stack[slot], t.stack[slot+1], t.stack[slot+2], t.stack[slot+3] = meta, v, key, value
			t.callAtKeepingTop(slot, 3, 0)
			return
		}
		t.state.spend(stepsOfMeta)
		v, reg = meta, -1
	}
	t.failf("loop in settable")
}

func (t *thread) failReadOnly() { t.failf("Attempt to modify a readonly table") }

// rawSet is table[key] = value without metamethods.
func (t *thread) rawSet(table *Table, key, value Value) {
	if table.readOnly {
		t.failReadOnly()
	}
	if key.isNil() {
		t.failf("table index is nil")
	}
	if key.isNumber() && math.IsNaN(key.num()) {
		t.failf("table index is NaN")
	}
	*table.place(key) = value
}

// toNumber is v.ToNumber at the expense of the budget.
func (t *thread) toNumber(v Value) (float64, bool) {
	if v.isString() {
		t.state.spend(len(v.str()) >> 2)
	}
	return v.ToNumber()
}

// arithmetic computes what the machine's fast path does not: strings that denote numbers, metamethods.
func (t *thread) arithmetic(op opcode, a, b Value) Value {
	if x, ok := t.toNumber(a); ok {
		if y, ok := t.toNumber(b); ok {
			return Number(compute(op, x, y))
		}
	}
	e := eventAdd + event(op-opAdd)
	meta := t.metamethod(a, e)
	if meta.isNil() {
		meta = t.metamethod(b, e)
	}
	if !meta.isNil() {
		return t.callMeta(meta, a, b)
	}
	t.failArithmetic(a, b)
	return Nil
}

// failArithmetic blames the operand of the current instruction that is no number.
func (t *thread) failArithmetic(a, b Value) {
	i := t.frame.closure.proto.code[t.frame.pc-1]
	if _, ok := a.ToNumber(); !ok {
		t.failOperand("perform arithmetic on", a, int(i.b()))
	}
	reg := int(i.c())
	if i.op() >= opAddK && i.op() <= opPowK {
		reg = -1
	}
	t.failOperand("perform arithmetic on", b, reg)
}

func compute(op opcode, a, b float64) float64 {
	switch op {
	case opAdd:
		return a + b
	case opSub:
		return a - b
	case opMul:
		return a * b
	case opDiv:
		return a / b
	case opMod:
		return modulo(a, b)
	}
	return power(a, b)
}

// modulo is a - floor(a/b)*b, as Lua 5.1 computes it.
func modulo(a, b float64) float64 { return a - math.Floor(a/b)*b }

// power is a^b. Small whole exponents are multiplied out, which is faster and as exact as C's pow.
func power(a, b float64) float64 {
	switch b {
	case 2:
		return a * a
	case 0.5:
		if !math.IsInf(a, -1) {
			return math.Sqrt(a) + 0
		}
	}
	if n := math.Pow(a, b); !math.IsNaN(n) || math.IsNaN(a) || math.IsNaN(b) {
		return n
	}
	return invalid()
}

var zero float64

// invalid is the NaN that the processor computes where a result is not defined: that of amd64 is written
// "-nan", math.NaN() is written "nan".
func invalid() float64 { return zero / zero }

func (t *thread) negate(v Value) Value {
	if n, ok := t.toNumber(v); ok {
		return Number(-n)
	}
	if meta := t.metamethod(v, eventUnm); !meta.isNil() {
		return t.callMeta(meta, v, v)
	}
	t.failArithmetic(v, v)
	return Nil
}

func (t *thread) length(v Value, reg int) Value {
	if v.isTable() {
		t.state.spend(stepsOfLength)
		return Number(float64(v.table().Length()))
	}
	if v.isString() {
		return Number(float64(len(v.str())))
	}
	t.failOperand("get length of", v, reg)
	return Nil
}

// stepsOfLength is what it costs to bisect a table.
const stepsOfLength = 8

// rawEqual is RawEqual at the expense of the budget.
func (t *thread) rawEqual(a, b Value) bool {
	if a.bits == b.bits && a.ref != b.ref && a.isString() {
		t.state.spend(len(a.str()) >> 6)
	}
	return RawEqual(a, b)
}

// equal is a == b. Metamethods are asked for two tables that have the same __eq.
func (t *thread) equal(a, b Value) bool {
	if t.rawEqual(a, b) {
		return true
	}
	if !a.isTable() || !b.isTable() {
		return false
	}
	x, y := a.table().meta, b.table().meta
	meta := x.lookup(eventEq)
	if meta.isNil() || x != y && !RawEqual(meta, y.lookup(eventEq)) {
		return false
	}
	return t.callMeta(meta, a, b).truthy()
}

func (t *thread) less(a, b Value) bool {
	if a.isNumber() && b.isNumber() {
		return a.num() < b.num()
	}
	if a.isString() && b.isString() {
		t.state.spend(min(len(a.str()), len(b.str())) >> 6)
		return a.str() < b.str()
	}
	if result, ok := t.compareMeta(a, b, eventLt); ok {
		return result
	}
	t.failOrder(a, b)
	return false
}

func (t *thread) lessEqual(a, b Value) bool {
	if a.isNumber() && b.isNumber() {
		return a.num() <= b.num()
	}
	if a.isString() && b.isString() {
		t.state.spend(min(len(a.str()), len(b.str())) >> 6)
		return a.str() <= b.str()
	}
	if result, ok := t.compareMeta(a, b, eventLe); ok {
		return result
	}
	if result, ok := t.compareMeta(b, a, eventLt); ok {
		return !result
	}
	t.failOrder(a, b)
	return false
}

// compareMeta asks a metamethod that both values have.
func (t *thread) compareMeta(a, b Value, e event) (result, ok bool) {
	if a.Kind() != b.Kind() {
		return false, false
	}
	meta := t.metamethod(a, e)
	if meta.isNil() || !RawEqual(meta, t.metamethod(b, e)) {
		return false, false
	}
	return t.callMeta(meta, a, b).truthy(), true
}

// concat is the concatenation of the values from slot first to slot last; it needs these slots as room.
func (t *thread) concat(first, last int) Value {
	for last > first {
		a, b := t.stack[last-1], t.stack[last]
		if !isText(a) || !isText(b) {
			t.stack[last-1] = t.concatMeta(a, b, last)
			last--
			continue
		}
		from, size := last, 0
		for from >= first && isText(t.stack[from]) {
			t.textAt(from, &size)
			from--
		}
		t.stack[from+1] = t.join(from+1, last, size)
		last = from + 1
	}
	return t.stack[first]
}

func isText(v Value) bool { return v.isNumber() || v.isString() }

// stepsOfNumber is what it costs to write a number.
const stepsOfNumber = 32

// textAt makes the value at slot a string and adds its length to size.
func (t *thread) textAt(slot int, size *int) {
	v := &t.stack[slot]
	if v.isNumber() {
		t.state.fuel -= stepsOfNumber
		*v = String(FormatNumber(v.num()))
	}
	*size += len(v.str())
}

func (t *thread) join(from, to, size int) Value {
	t.state.charge(size)
	if size == 0 {
		return String("")
	}
	buf := make([]byte, 0, size)
	for _, v := range t.stack[from : to+1] {
		buf = append(buf, v.str()...)
	}
	return String(bytesAsString(buf))
}

func (t *thread) concatMeta(a, b Value, slot int) Value {
	meta := t.metamethod(a, eventConcat)
	if meta.isNil() {
		meta = t.metamethod(b, eventConcat)
	}
	if meta.isNil() {
		v, at := a, slot-1
		if isText(a) {
			v, at = b, slot
		}
		t.failOperand("concatenate", v, at-t.frame.base)
	}
	return t.callMeta(meta, a, b)
}
