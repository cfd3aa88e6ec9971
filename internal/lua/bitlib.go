package lua

import (
	"math"
	"math/bits"
)

// OpenBit adds the library bit: operations on the 32 bits of a number, as Lua BitOp 1.0.2 has them.
func OpenBit(s *State) {
	s.Register(s.Library("bit"), map[string]HostFunction{
		"tobit": bitUnary(func(x uint32) uint32 { return x }),
		"bnot":  bitUnary(func(x uint32) uint32 { return ^x }),
		"bswap": bitUnary(bits.ReverseBytes32),
		"band":  bitFold(func(x, y uint32) uint32 { return x & y }),
		"bor":   bitFold(func(x, y uint32) uint32 { return x | y }),
		"bxor":  bitFold(func(x, y uint32) uint32 { return x ^ y }),

		"lshift":  bitShift(func(x uint32, n int) uint32 { return x << n }),
		"rshift":  bitShift(func(x uint32, n int) uint32 { return x >> n }),
		"arshift": bitShift(func(x uint32, n int) uint32 { return uint32(int32(x) >> n) }),
		"rol":     bitShift(bits.RotateLeft32),
		"ror":     bitShift(func(x uint32, n int) uint32 { return bits.RotateLeft32(x, -n) }),

		"tohex": bitToHex,
	})
}

// roundToBits is added to a number: what is left of it is then in the low bits of the mantissa, rounded to
// the nearest integer, half to even, modulo 2^32. That is how BitOp defines the bits of a number.
const roundToBits = 1<<52 + 1<<51

func (c *Call) checkBits(i int) uint32 {
	return uint32(math.Float64bits(c.CheckNumber(i) + roundToBits))
}

// pushBits pushes x as a signed number.
func (c *Call) pushBits(x uint32) { c.PushNumber(float64(int32(x))) }

func bitUnary(f func(x uint32) uint32) HostFunction {
	return func(c *Call) { c.pushBits(f(c.checkBits(1))) }
}

// bitFold combines all arguments. BitOp looks at them from the last to the second, and so do messages.
func bitFold(f func(x, y uint32) uint32) HostFunction {
	return func(c *Call) {
		c.Spend(c.Len())
		x := c.checkBits(1)
		for i := c.Len(); i > 1; i-- {
			x = f(x, c.checkBits(i))
		}
		c.pushBits(x)
	}
}

func bitShift(f func(x uint32, n int) uint32) HostFunction {
	return func(c *Call) {
		x := c.checkBits(1)
		c.pushBits(f(x, int(c.checkBits(2)&31)))
	}
}

// bitToHex writes the last digits of a number: 8, or as many as argument 2 says, in capitals if that is
// negative.
func bitToHex(c *Call) {
	x, n, digits := c.checkBits(1), int32(8), "0123456789abcdef"
	if c.Len() > 1 {
		n = int32(c.checkBits(2))
	}
	if n < 0 {
		n, digits = -n, "0123456789ABCDEF"
	}
	if n < 0 || n > 8 { // the least integer stays negative
		n = 8
	}
	var text [8]byte
	for i := n - 1; i >= 0; i-- {
		text[i] = digits[x&15]
		x >>= 4
	}
	c.Push(c.State().NewString(text[:n]))
}
