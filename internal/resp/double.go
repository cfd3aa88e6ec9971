package resp

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"sync"
)

// AppendFloat appends f as Redis 8 writes a score: an integer as its digits, anything else in the
// digits of Grisu2. These read back as f, and nearly always are the fewest that do. Infinities are
// "inf" and "-inf", and not-a-number is "nan".
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	case math.Abs(f) <= 1<<62 && f == math.Trunc(f):
		return strconv.AppendInt(dst, int64(f), 10)
	case f < 0:
		dst = append(dst, '-')
	}
	var digits [20]byte
	n, k := grisu(math.Abs(f), &digits)
	return layOut(dst, digits[:n], k, f < 0)
}

// layOut appends digits * 10^k.
func layOut(dst, digits []byte, k int, negative bool) []byte {
	n := len(digits)
	exponent := k + n - 1
	size := max(exponent, -exponent)
	switch {
	case k >= 0 && size < n+7:
		dst = append(dst, digits...)
		for range k {
			dst = append(dst, '0')
		}
		return dst
	case k < 0 && (k > -7 || size < 4):
		if n+k > 0 {
			dst = append(dst, digits[:n+k]...)
			dst = append(dst, '.')
			return append(dst, digits[n+k:]...)
		}
		dst = append(dst, "0."...)
		for range -(n + k) {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	sign, most := byte('+'), 18
	if negative {
		most--
	}
	digits = digits[:min(n, most)]
	if k+len(digits)-1 < 0 {
		sign = '-'
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	return strconv.AppendInt(append(dst, 'e', sign), int64(size), 10)
}

// scaled is a number frac * 2^exp.
type scaled struct {
	frac uint64
	exp  int
}

// times is the product, rounded to 64 bits.
func (a scaled) times(b scaled) scaled {
	high, low := bits.Mul64(a.frac, b.frac)
	return scaled{high + low>>63, a.exp + b.exp + 64}
}

// The powers of ten that grisu scales by: 10^firstPower, and each powerStep further. They bring any
// float64 into the range of exponents from lowest to highest.
const (
	firstPower = -348
	powerStep  = 8
	powers     = 87
	lowest     = -60
	highest    = -32
)

var tenPowers = sync.OnceValue(func() *[powers]scaled {
	all := new([powers]scaled)
	ten := new(big.Float).SetPrec(2048).SetInt64(10)
	power := new(big.Float).SetPrec(2048).SetInt64(1)
	for range -firstPower {
		power.Quo(power, ten)
	}
	for i := range all {
		short := new(big.Float).SetPrec(64).SetMode(big.ToNearestEven).Set(power)
		exp := short.MantExp(short)
		frac, _ := short.SetMantExp(short, 64).Uint64()
		all[i] = scaled{frac, exp - 64}
		for range powerStep {
			power.Mul(power, ten)
		}
	}
	return all
})

// powerFor is a power of ten, and its exponent, that brings a number with this binary exponent into
// the range.
func powerFor(exp int) (power scaled, k int) {
	all := tenPowers()
	i := (int(-float64(exp+powers)*0.30102999566398114) - firstPower) / powerStep
	for all[i].exp+exp+64 < lowest {
		i++
	}
	for all[i].exp+exp+64 > highest {
		i--
	}
	return all[i], firstPower + i*powerStep
}

// grisu writes digits such that f, which is positive and finite, is the float64 nearest to digits *
// 10^k: Grisu2 of Florian Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with
// Integers" (PLDI 2010).
func grisu(f float64, digits *[20]byte) (n, k int) {
	const hidden = 1 << 52
	w := scaled{math.Float64bits(f) & (hidden - 1), int(math.Float64bits(f) >> 52)}
	if w.exp > 0 {
		w.frac += hidden
		w.exp -= 1075
	} else {
		w.exp = -1074
	}
	above, below := scaled{w.frac<<1 + 1, w.exp - 1}, scaled{w.frac<<1 - 1, w.exp - 1}
	if w.frac == hidden { // the next smaller number is nearer
		below = scaled{w.frac<<2 - 1, w.exp - 2}
	}
	shift := bits.LeadingZeros64(above.frac)
	above = scaled{above.frac << shift, above.exp - shift}
	below = scaled{below.frac << (below.exp - above.exp), above.exp}
	shift = bits.LeadingZeros64(w.frac)
	w = scaled{w.frac << shift, w.exp - shift}
	power, k := powerFor(above.exp)
	w, above, below = w.times(power), above.times(power), below.times(power)
	above.frac--
	below.frac++
	n, more := generate(w, above, below, digits)
	return n, more - k
}

// generate writes the digits of above until what is left is within the interval down to below, and
// moves the last one towards w. It returns the exponent of the last digit.
func generate(w, above, below scaled, digits *[20]byte) (n, k int) {
	shift := -above.exp
	interval, gap := above.frac-below.frac, above.frac-w.frac
	whole, part := above.frac>>shift, above.frac&(1<<shift-1)
	unit := uint64(1_000_000_000)
	for k = 9; k >= 0; k-- {
		if digit := byte(whole / unit); digit > 0 || n > 0 {
			digits[n] = '0' + digit
			n++
		}
		whole %= unit
		if rest := whole<<shift + part; rest <= interval {
			approach(digits[:n], interval, rest, unit<<shift, gap)
			return n, k
		}
		unit /= 10
	}
	for ; ; k-- {
		part *= 10
		interval *= 10
		gap *= 10
		if digit := byte(part >> shift); digit > 0 || n > 0 {
			digits[n] = '0' + digit
			n++
		}
		part &= 1<<shift - 1
		if part < interval {
			approach(digits[:n], interval, part, 1<<shift, gap)
			return n, k
		}
	}
}

// approach lowers the last digit while that brings the number nearer to what is gap below the upper
// end, and leaves it in the interval. rest is how far below that end the number is.
func approach(digits []byte, interval, rest, unit, gap uint64) {
	for rest < gap && interval-rest >= unit && (rest+unit < gap || gap-rest > rest+unit-gap) {
		digits[len(digits)-1]--
		rest += unit
	}
}
