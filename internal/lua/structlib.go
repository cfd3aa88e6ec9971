package lua

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// OpenStruct adds the library struct: values of C in strings, as version 0.2 in Redis has it on amd64.
func OpenStruct(s *State) {
	s.Register(s.Library("struct"), map[string]HostFunction{
		"pack": structPack, "unpack": structUnpack, "size": structSize,
	})
}

const (
	maxStructInt    = 32 // the widest integer
	structAlignment = 8  // what ! without a number means
	structIntegers  = "bBhHlLTiI"
)

// zeros are the most bytes of padding that an integer can need.
var zeros = strings.Repeat("\x00", maxStructInt)

// A structFormat is read option by option.
type structFormat struct {
	call      *Call
	rest      string
	bigEndian bool
	align     int
}

// newStructFormat reads argument 1.
func (c *Call) newStructFormat() structFormat {
	text := c.CheckString(1)
	c.Spend(len(text) >> 6)
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end] // as for C, for which a string ends at its first zero byte
	}
	return structFormat{call: c, rest: text, align: 1}
}

// next reads an option: how many bytes its value takes, and how many lie before it if pos bytes are there.
// A c0 and an s have size 0. ok is false at the end.
func (f *structFormat) next(pos int) (option byte, padding, size int, ok bool) {
	if f.rest == "" {
		return 0, 0, 0, false
	}
	f.call.Spend(8)
	option = f.rest[0]
	f.rest = f.rest[1:]
	size = f.size(option)
	if size == 0 || option == 'c' {
		return option, 0, size, true
	}
	unit := min(size, f.align)
	return option, (unit - pos&(unit-1)) & (unit - 1), size, true
}

func (f *structFormat) size(option byte) int {
	switch option {
	case 'b', 'B', 'x':
		return 1
	case 'h', 'H':
		return 2
	case 'f':
		return 4
	case 'l', 'L', 'T', 'd':
		return 8
	case 'c':
		return f.number(1)
	case 'i', 'I':
		size := f.number(4)
		if size > maxStructInt {
			f.call.Errorf("integral size %d is larger than limit of %d", size, maxStructInt)
		}
		return size
	}
	return 0
}

// number reads a number, or is otherwise if none is next.
func (f *structFormat) number(otherwise int) int {
	if f.rest == "" || !isDigit(f.rest[0]) {
		return otherwise
	}
	n := 0
	for f.rest != "" && isDigit(f.rest[0]) {
		if n = n*10 + int(f.rest[0]-'0'); n > math.MaxInt32 {
			f.call.Errorf("integral size overflow")
		}
		f.rest = f.rest[1:]
	}
	return n
}

// control obeys an option that has no value.
func (f *structFormat) control(option byte) {
	switch option {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		align := f.number(structAlignment)
		if align <= 0 || align&(align-1) != 0 {
			f.call.Errorf("alignment %d is not a power of 2", align)
		}
		f.align = align
	default:
		f.call.ArgError(1, fmt.Sprintf("invalid format option '%c'", option))
	}
}

func isStructInteger(option byte) bool { return strings.IndexByte(structIntegers, option) >= 0 }

func structPack(c *Call) {
	f := c.newStructFormat()
	out := growing{call: c}
	for arg := 2; ; {
		option, padding, size, ok := f.next(len(out.text))
		if !ok {
			break
		}
		out.add(zeros[:padding])
		switch {
		case isStructInteger(option):
			out.add(f.ordered(toStructInt(c.structNumber(arg)), size))
			arg++
		case option == 'x':
			out.add("\x00")
		case option == 'f':
			out.add(f.ordered(uint64(math.Float32bits(float32(c.structNumber(arg)))), size))
			arg++
		case option == 'd':
			out.add(f.ordered(math.Float64bits(c.structNumber(arg)), size))
			arg++
		case option == 'c' || option == 's':
			c.needStructArg(arg, "string")
			s := c.CheckString(arg)
			arg++
			if size == 0 {
				size = len(s)
			}
			if len(s) < size {
				c.ArgError(arg, "string too short") // struct blames the argument behind
			}
			out.add(s[:size])
			if option == 's' {
				out.add("\x00")
			}
		default:
			f.control(option)
		}
	}
	c.PushString(bytesAsString(out.text))
}

// needStructArg fails where argument i is missing: struct calls it nil.
func (c *Call) needStructArg(i int, want string) {
	if i > c.Len() {
		c.ArgError(i, want+" expected, got nil")
	}
}

func (c *Call) structNumber(i int) float64 {
	c.needStructArg(i, "number")
	return c.CheckNumber(i)
}

// toStructInt is n as an unsigned long; a negative number wraps around.
func toStructInt(n float64) uint64 {
	if n < 0 {
		return uint64(truncate(n))
	}
	return toUnsigned(n)
}

// ordered is n as size bytes.
func (f *structFormat) ordered(n uint64, size int) string {
	buf := make([]byte, maxStructInt)
	binary.LittleEndian.PutUint64(buf, n)
	buf = buf[:size]
	if f.bigEndian {
		slices.Reverse(buf)
	}
	return bytesAsString(buf)
}

// number64 is the unsigned number that data holds. Of more than 8 bytes, the least significant count.
func (f *structFormat) number64(data string) uint64 {
	var buf [maxStructInt]byte
	copy(buf[:], data)
	if f.bigEndian {
		slices.Reverse(buf[:len(data)])
	}
	return binary.LittleEndian.Uint64(buf[:])
}

// integer is the number that data holds.
func (f *structFormat) integer(option byte, data string) float64 {
	n := f.number64(data)
	if isUpper(option) {
		return float64(n)
	}
	sign := ^uint64(0) << ((len(data)*8 - 1) & 63)
	if n&sign != 0 {
		n |= sign
	}
	return float64(int64(n))
}

func structUnpack(c *Call) {
	f := c.newStructFormat()
	data := c.CheckString(2)
	pos := c.OptInt(3, 1)
	if pos == 0 {
		c.ArgError(3, "offset must be 1 or greater")
	}
	pos--
	arguments := c.Len()
	var results []Value
	for {
		option, padding, size, ok := f.next(pos)
		if !ok {
			break
		}
		pos += padding
		needData := func() {
			if pos < 0 || pos > len(data) || size > len(data)-pos {
				c.ArgError(2, "data string too short")
			}
		}
		needData()
		if arguments+len(results)+2 > maxCSlots {
			c.Errorf("stack overflow (too many results)")
		}
		if len(results) == cap(results) {
			c.Charge(valueSize * (2*cap(results) + 1))
		}
		switch {
		case isStructInteger(option):
			results = append(results, Number(f.integer(option, data[pos:pos+size])))
		case option == 'x':
		case option == 'f':
			n := math.Float32frombits(uint32(f.number64(data[pos : pos+size])))
			results = append(results, Number(float64(n)))
		case option == 'd':
			results = append(results, Number(math.Float64frombits(f.number64(data[pos:pos+size]))))
		case option == 'c':
			if size == 0 {
				size = c.takeSize(&results)
				needData()
			}
			results = append(results, c.State().copyString(data[pos:pos+size]))
		case option == 's':
			size = strings.IndexByte(data[pos:], 0)
			if size < 0 {
				c.Spend(len(data) >> 5)
				c.Errorf("unfinished string in data")
			}
			results = append(results, c.State().copyString(data[pos:pos+size]))
			size++
		default:
			f.control(option)
		}
		pos += size
	}
	for _, v := range results {
		c.Push(v)
	}
	c.PushNumber(float64(pos + 1))
}

// takeSize takes the last result, which is the size of what follows.
func (c *Call) takeSize(results *[]Value) int {
	last := len(*results) - 1
	if last < 0 {
		c.Errorf("format 'c0' needs a previous size")
	}
	n, ok := (*results)[last].ToNumber()
	if !ok {
		c.Errorf("format 'c0' needs a previous size")
	}
	*results = (*results)[:last]
	if size := toUnsigned(n); size <= math.MaxInt32 {
		return int(size)
	}
	return math.MaxInt
}

func structSize(c *Call) {
	f := c.newStructFormat()
	pos := 0
	for {
		option, padding, size, ok := f.next(pos)
		if !ok {
			break
		}
		switch {
		case option == 's':
			c.ArgError(1, "option 's' has no fixed size")
		case option == 'c' && size == 0:
			c.ArgError(1, "option 'c0' has no fixed size")
		case !isAlnum(option):
			f.control(option)
		}
		pos += padding + size
	}
	c.PushNumber(float64(pos))
}
