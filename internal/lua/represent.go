package lua

import (
	"math"
	"unsafe"
)

// A Value is any value of Lua, in two words. The zero Value is nil.
//
//	kind       ref                      bits
//	number     &numberTag               the float64
//	nil        nil                      0
//	false      nil                      kindBool
//	true       &trueTag                 kindBool
//	string     its first byte           length << 8 | kindString
//	table …    the object               its kind
//
// So a number needs no allocation, a string none beside its bytes, and "is it true" is one comparison.
// All uses of unsafe are in this file. A ref is an ordinary pointer to the collector of Go: whoever
// holds a Value keeps alive what it stands for.
type Value struct {
	ref  unsafe.Pointer
	bits uint64
}

// The addresses of these bytes are marks; their contents are not used.
var numberTag, trueTag, emptyTag, lightTag byte

const (
	kindNil uint64 = iota
	kindBool
	kindString
	kindTable
	kindClosure
	kindBuiltin
	kindThread
	kindLight
)

// Number is the Value of n.
func Number(n float64) Value {
	return Value{unsafe.Pointer(&numberTag), math.Float64bits(n)}
}

// String is the Value of s, which is not copied.
func String(s string) Value {
	if len(s) == 0 {
		return Value{unsafe.Pointer(&emptyTag), kindString}
	}
	return Value{unsafe.Pointer(unsafe.StringData(s)), uint64(len(s))<<8 | kindString}
}

// Bool is true or false.
func Bool(b bool) Value {
	if b {
		return Value{unsafe.Pointer(&trueTag), kindBool}
	}
	return Value{nil, kindBool}
}

// Light is a light userdata: an address that means something to the host. Its number is all that it has.
func Light(n uint32) Value {
	return Value{unsafe.Pointer(&lightTag), uint64(n)<<8 | kindLight}
}

// TableValue is the Value of t.
func TableValue(t *Table) Value { return Value{unsafe.Pointer(t), kindTable} }

func closureValue(c *closure) Value     { return Value{unsafe.Pointer(c), kindClosure} }
func builtinValue(b *builtin) Value     { return Value{unsafe.Pointer(b), kindBuiltin} }
func threadValue(t *thread) Value       { return Value{unsafe.Pointer(t), kindThread} }
func (v Value) isNil() bool             { return v.ref == nil && v.bits == kindNil }
func (v Value) truthy() bool            { return v.ref != nil }
func (v Value) isNumber() bool          { return v.ref == unsafe.Pointer(&numberTag) }
func (v Value) num() float64            { return math.Float64frombits(v.bits) }
func (v Value) isKind(kind uint64) bool { return !v.isNumber() && v.bits&0xff == kind }
func (v Value) isString() bool          { return v.isKind(kindString) }

// str, table, closure, builtin and thread presume that v is of their kind.
func (v Value) str() string       { return unsafe.String((*byte)(v.ref), int(v.bits>>8)) }
func (v Value) table() *Table     { return (*Table)(v.ref) }
func (v Value) closure() *closure { return (*closure)(v.ref) }
func (v Value) builtin() *builtin { return (*builtin)(v.ref) }
func (v Value) thread() *thread   { return (*thread)(v.ref) }

// isTable is one comparison more than isNumber: a number can have the bits of kindTable.
func (v Value) isTable() bool { return v.bits == kindTable && v.ref != unsafe.Pointer(&numberTag) }

// setNumber stores n in place. It leaves the pointer alone where a number stood before, which saves
// the collector's write barrier in loops.
func (v *Value) setNumber(n float64) {
	if v.ref != unsafe.Pointer(&numberTag) {
		v.ref = unsafe.Pointer(&numberTag)
	}
	v.bits = math.Float64bits(n)
}

// RawEqual reports whether a and b are equal without metamethods.
func RawEqual(a, b Value) bool {
	if a.ref == b.ref {
		if a.isNumber() {
			return a.num() == b.num()
		}
		return a.bits == b.bits
	}
	return a.bits == b.bits && a.isString() && b.isString() && a.str() == b.str()
}

// address is what %p of C would print for v: unique while v lives, without telling a real address.
func (v Value) address() uint64 {
	switch {
	case v.isNumber() || v.isString():
		return 0
	case v.bits == kindTable:
		return uint64(v.table().id)
	case v.bits == kindClosure:
		return uint64(v.closure().id)
	case v.bits == kindBuiltin:
		return uint64(v.builtin().id)
	case v.bits == kindThread:
		return uint64(v.thread().id)
	}
	return v.bits >> 8
}

// bytesAsString makes a string of b without copying it. b must never change again.
func bytesAsString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// sameBytes names the memory of a string: two strings with the same name share it.
func sameBytes(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
