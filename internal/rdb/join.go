package rdb

// join returns the checksum of bytes whose checksum is front, followed by n bytes whose own checksum
// is back. So a payload's checksum can be made before its head is known: the checksum of bytes is
// their polynomial modulo the generator's, n bytes behind them multiply it by x to the power of 8n,
// and polynomials are added by xor.
func join(front, back uint64, n int) uint64 {
	shift, step := one, one>>8 // x to the power of 8n, and of 8, 16, 32 …
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiply(shift, step)
		}
		step = multiply(step, step)
	}
	return multiply(front, shift) ^ back
}

// The coefficient of the lowest power is the highest bit.
const (
	generator = 0x95ac9329ac4bc9b5
	one       = uint64(1) << 63
)

// multiply returns the product of two polynomials modulo the generator.
func multiply(a, b uint64) (product uint64) {
	for ; a != 0; a <<= 1 {
		if a&one != 0 {
			product ^= b
		}
		if carry := b & 1; carry != 0 {
			b = b>>1 ^ generator
		} else {
			b >>= 1
		}
	}
	return product
}
