package longdouble

import (
	"math/big"
	"testing"
)

func TestParseFloat(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		got := "refused"
		v, infinite, ok := Parse([]byte(text))
		switch {
		case ok && infinite:
			got = "infinite"
		case ok:
			got = string(Append(nil, v))
		}
		if got != want {
			t.Errorf("Parse(%q) prints as %s, want %s", text, got, want)
		}
	}
	f("0", "0")
	f("-0", "0")
	f("+1.50", "1.5")
	f(".5", "0.5")
	f("5.", "5")
	f("1e3", "1000")
	f("1E-3", "0.001")
	f("3.0e03", "3000")
	f("0.1", "0.1")
	f("0.00000000000000000001", "0")
	f("1e-4960", "refused")
	f("1e4932", string(Append(nil, mustFloat("1e4932"))))
	f("1e4933", "refused")
	f("1e999999999", "refused")
	f("0x10", "16")
	f("-0X1.8p3", "-12")
	f("0x1e3", "483")
	f("0b1", "refused")
	f("inf", "infinite")
	f("-Infinity", "infinite")
	for _, bad := range []string{"", " 1", "1 ", "nan", "abc", "1e", "1e+", "1.2.3", ".", "+", "1_000", "1p3", "--1", "0x", "0xg", "0x1e+1", "1f", "0x1p"} {
		f(bad, "refused")
	}
}

func TestFloatSum(t *testing.T) {
	f := func(a, b, want string) {
		t.Helper()
		sum := new(big.Float).SetPrec(MantissaBits)
		sum.Add(mustFloat(a), mustFloat(b))
		if got := string(Append(nil, sum)); got != want {
			t.Errorf("%s + %s = %s, want %s", a, b, got, want)
		}
	}
	f("0.1", "0.2", "0.3")
	f("10.50", "0.1", "10.6")
	f("5.0e3", "2.0e2", "5200")
	f("3", "1.1", "4.1")
	f("1", "-1", "0")
	f("-5.5", "5.5", "0")
}

func mustFloat(text string) *big.Float {
	v, _, ok := Parse([]byte(text))
	if !ok {
		panic("BUG: not a float: " + text)
	}
	return v
}

func TestMax(t *testing.T) {
	largest := Max()
	if Overflows(largest) {
		t.Error("the largest number overflows")
	}
	next := new(big.Float).SetPrec(MantissaBits).Add(largest, new(big.Float).SetMantExp(big.NewFloat(1), maxExponent-MantissaBits))
	if !Overflows(next) {
		t.Errorf("what comes behind the largest number does not overflow: %g", next)
	}
	if text := string(Append(nil, largest)); len(text) != 4933 || text[:16] != "1189731495357231" {
		t.Errorf("the largest number has %d digits, and begins with %s", len(text), text[:16])
	}
}
