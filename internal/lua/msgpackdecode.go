package lua

import (
	"encoding/binary"
	"math"
)

// A msgpackDecoder reads values as cmsgpack does. Lengths in the input are believed only as far as the
// input goes: nothing is allocated for what has not been read.
type msgpackDecoder struct {
	call  *Call
	text  string
	slots int // of C Lua's stack, which bounds the nesting and the number of results
}

func msgpackUnpack(c *Call) { c.unpackValues(c.Len(), 0, 0) }

func msgpackUnpackOne(c *Call) { c.unpackValues(1, 1, c.OptInt(2, 0)) }

func msgpackUnpackLimit(c *Call) {
	limit := c.CheckInt(2)
	c.unpackValues(1, limit, c.OptInt(3, 0))
}

// unpackValues pushes up to limit values that argument 1 has at offset, and before them the offset behind
// them, or -1 at the end. If limit and offset are both 0, it pushes all values and no offset. slots are
// those that the arguments take in C Lua.
func (c *Call) unpackValues(slots, limit, offset int) {
	text := c.CheckString(1)
	if offset < 0 || limit < 0 {
		// cmsgpack reports the length as the limit.
		c.Errorf("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(text)))
	}
	if offset > len(text) {
		c.Errorf("Start offset %d greater than input length %d.", int32(offset), len(text))
	}
	all := limit == 0 && offset == 0
	if all {
		limit = math.MaxInt32
	}
	d := msgpackDecoder{call: c, text: text[offset:], slots: slots}
	var values []Value
	for len(d.text) > 0 && len(values) < limit {
		v := d.value()
		if len(values) == cap(values) {
			c.Charge(valueSize * (2*cap(values) + 1))
		}
		values = append(values, v)
		d.slots++
	}
	switch {
	case all:
	case len(d.text) == 0:
		c.PushNumber(-1)
	default:
		c.PushNumber(float64(len(text) - len(d.text)))
	}
	for _, v := range values {
		c.Push(v)
	}
}

// needSlots fails where C Lua's stack would overflow.
func (d *msgpackDecoder) needSlots(n int, where string) {
	if d.slots+n > maxCSlots {
		d.call.Errorf("stack overflow (%s)", where)
	}
}

// take reads n bytes.
func (d *msgpackDecoder) take(n int) string {
	if n > len(d.text) {
		d.call.Errorf("Missing bytes in input.")
	}
	taken := d.text[:n]
	d.text = d.text[n:]
	return taken
}

// uint reads a number of 1, 2, 4 or 8 bytes.
func (d *msgpackDecoder) uint(size int) uint64 {
	var buf [8]byte
	copy(buf[8-size:], d.take(size))
	return binary.BigEndian.Uint64(buf[:])
}

// int is uint with a sign.
func (d *msgpackDecoder) int(size int) Value {
	unused := 64 - 8*size
	return Number(float64(int64(d.uint(size)<<unused) >> unused))
}

func (d *msgpackDecoder) value() Value {
	if len(d.text) == 0 {
		d.take(1)
	}
	d.call.Spend(8)
	d.needSlots(1, "too many return values at once; use unpack_one or unpack_limit instead.")
	switch first := d.take(1)[0]; {
	case first < 0x80:
		return Number(float64(first))
	case first < 0x90:
		return d.table(int(first & 0xf))
	case first < 0xa0:
		return d.array(int(first & 0xf))
	case first < 0xc0:
		return d.string(int(first & 0x1f))
	case first >= 0xe0:
		return Number(float64(int8(first)))
	default:
		return d.marked(first)
	}
}

// marked is the value behind a byte that tells its type and no more.
func (d *msgpackDecoder) marked(first byte) Value {
	switch first {
	case 0xc0:
		return Nil
	case 0xc2, 0xc3:
		return Bool(first == 0xc3)
	case 0xca:
		return Number(float64(math.Float32frombits(uint32(d.uint(4)))))
	case 0xcb:
		return Number(math.Float64frombits(d.uint(8)))
	case 0xcc, 0xcd, 0xce:
		return Number(float64(d.uint(1 << (first - 0xcc))))
	case 0xcf, 0xd3: // cmsgpack reads large unsigned numbers as negative ones, too
		return d.int(8)
	case 0xd0, 0xd1, 0xd2:
		return d.int(1 << (first - 0xd0))
	case 0xd9, 0xda, 0xdb:
		return d.string(int(d.uint(1 << (first - 0xd9))))
	case 0xdc, 0xdd:
		return d.array(int(d.uint(2 << (first - 0xdc))))
	case 0xde, 0xdf:
		return d.table(int(d.uint(2 << (first - 0xde))))
	}
	d.call.Errorf("Bad data format in input.")
	return Nil
}

func (d *msgpackDecoder) string(length int) Value {
	return d.call.State().copyString(d.take(length))
}

func (d *msgpackDecoder) array(length int) Value {
	t := d.call.State().NewTable(0, 0)
	d.slots++
	d.needSlots(1, "in function mp_decode_to_lua_array")
	d.slots++ // the index
	for i := 1; i <= length; i++ {
		t.SetInt(i, d.value())
	}
	d.slots -= 2
	return TableValue(t)
}

func (d *msgpackDecoder) table(length int) Value {
	t := d.call.State().NewTable(0, 0)
	d.slots++
	for range length {
		key := d.value()
		d.slots++ // the key
		v := d.value()
		d.slots--
		if key.isNil() {
			throw(String("table index is nil"))
		}
		if n, ok := key.AsNumber(); ok && math.IsNaN(n) {
			throw(String("table index is NaN"))
		}
		t.Set(key, v)
	}
	d.slots--
	return TableValue(t)
}
