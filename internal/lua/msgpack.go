package lua

import (
	"encoding/binary"
	"math"
)

// maxMsgpackNesting is the depth from which tables are packed as nil.
const maxMsgpackNesting = 16

// OpenCMsgpack adds the library cmsgpack, as version 0.4.0 in Redis has it.
func OpenCMsgpack(s *State) {
	t := s.Library("cmsgpack")
	s.Register(t, map[string]HostFunction{
		"pack": msgpackPack, "unpack": msgpackUnpack, "unpack_limit": msgpackUnpackLimit, "unpack_one": msgpackUnpackOne,
	})
	t.SetString("_NAME", String("cmsgpack"))
	t.SetString("_VERSION", String("lua-cmsgpack 0.4.0"))
	t.SetString("_COPYRIGHT", String("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.SetString("_DESCRIPTION", String("MessagePack C implementation for Lua"))
}

// A msgpackEncoder writes values as cmsgpack does: in the shortest form, numbers as integers if they are.
type msgpackEncoder struct{ growing }

// msgpackPack packs its arguments, one behind the other.
func msgpackPack(c *Call) {
	switch {
	case c.Len() == 0:
		c.ArgError(0, "MessagePack pack needs input.")
	case 2*c.Len() > maxCSlots:
		c.ArgError(0, "Too many arguments for MessagePack pack.")
	}
	e := msgpackEncoder{growing{call: c}}
	for _, v := range c.Args() {
		e.value(v, 0)
	}
	c.PushString(bytesAsString(e.text))
}

func (e *msgpackEncoder) value(v Value, depth int) {
	e.call.Spend(8)
	switch v.Kind() {
	case KindBool:
		e.bytes(0xc2 + byte(bit(v.truthy())))
	case KindNumber:
		e.number(v.num())
	case KindString:
		e.string(v.str())
	case KindTable:
		if depth < maxMsgpackNesting {
			e.table(v.table(), depth+1)
			return
		}
		fallthrough
	default:
		e.bytes(0xc0)
	}
}

func (e *msgpackEncoder) bytes(b ...byte) { e.add(bytesAsString(b)) }

// head adds a byte and n behind it, as a big-endian number of some bytes.
func (e *msgpackEncoder) head(first byte, n uint64, size int) {
	var buf [9]byte
	binary.BigEndian.PutUint64(buf[1:], n<<(64-8*size))
	buf[0] = first
	e.add(bytesAsString(buf[:1+size]))
}

func (e *msgpackEncoder) number(n float64) {
	if i := int64(truncate(n)); float64(i) == n {
		e.integer(i)
	} else if short := float32(n); float64(short) == n {
		e.head(0xca, uint64(math.Float32bits(short)), 4)
	} else {
		e.head(0xcb, math.Float64bits(n), 8)
	}
}

func (e *msgpackEncoder) integer(i int64) {
	n := uint64(i)
	switch {
	case i >= -32 && i <= math.MaxInt8:
		e.bytes(byte(i))
	case i < math.MinInt32:
		e.head(0xd3, n, 8)
	case i < math.MinInt16:
		e.head(0xd2, n, 4)
	case i < math.MinInt8:
		e.head(0xd1, n, 2)
	case i < 0:
		e.head(0xd0, n, 1)
	case i <= math.MaxUint8:
		e.head(0xcc, n, 1)
	case i <= math.MaxUint16:
		e.head(0xcd, n, 2)
	case i <= math.MaxUint32:
		e.head(0xce, n, 4)
	default:
		e.head(0xcf, n, 8)
	}
}

func (e *msgpackEncoder) string(s string) {
	switch n := len(s); {
	case n < 32:
		e.bytes(0xa0 + byte(n))
	case n <= math.MaxUint8:
		e.head(0xd9, uint64(n), 1)
	case n <= math.MaxUint16:
		e.head(0xda, uint64(n), 2)
	default:
		e.head(0xdb, uint64(n), 4)
	}
	e.call.Spend(len(s) >> 5)
	e.add(s)
}

// table packs t as an array if its keys are 1 to the number of its elements, otherwise as a map.
func (e *msgpackEncoder) table(t *Table, depth int) {
	n, isArray := shapeOf(t)
	if isArray {
		e.size(n, 0x90, 0xdc)
		for i := 1; i <= n; i++ {
			e.value(t.GetInt(i), depth)
		}
		return
	}
	e.size(n, 0x80, 0xde)
	for k, v := range t.entries() {
		e.value(k, depth)
		e.value(v, depth)
	}
}

// size adds how many elements follow: in one byte with small, or behind long or long+1.
func (e *msgpackEncoder) size(n int, small, long byte) {
	switch {
	case n < 16:
		e.bytes(small + byte(n))
	case n <= math.MaxUint16:
		e.head(long, uint64(n), 2)
	default:
		e.head(long+1, uint64(n), 4)
	}
}

// shapeOf counts the elements of t, and reports whether their keys are 1 to their number.
func shapeOf(t *Table) (elements int, isArray bool) {
	last := 0.0
	isArray = true
	for key := range t.entries() {
		elements++
		k, ok := key.AsNumber()
		if !ok || k < 1 || k > math.MaxInt32 || k != math.Floor(k) {
			isArray = false
		}
		last = max(last, k)
	}
	return elements, isArray && last == float64(elements)
}
