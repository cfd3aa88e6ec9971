package resp

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestAppendFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0:                       "0",
		math.Copysign(0, -1):    "-0",
		1:                       "1",
		-17:                     "-17",
		1 << 62:                 "4611686018427387904",
		1 << 63:                 "9223372036854776000",
		0.1:                     "0.1",
		-0.1:                    "-0.1",
		0.30000000000000004:     "0.30000000000000004",
		3.5e-6:                  "3.5e-6",
		1e-7:                    "1e-7",
		-1.5e-9:                 "-1.5e-9",
		123.456:                 "123.456",
		1e20:                    "1e+20",
		1.2345678901234567e25:   "1.2345678901234566e+25",
		12345678901234567890123: "12345678901234568000000",
		123456789012345678901:   "123456789012345680000",
		1e300:                   "1e+300",
		5e-324:                  "5e-324",
		math.MaxFloat64:         "1.7976931348623157e+308",
		math.Inf(1):             "inf",
		math.Inf(-1):            "-inf",
		math.NaN():              "nan",
	} {
		if got := string(AppendFloat(nil, f)); got != want {
			t.Errorf("%g: got %q, want %q", f, got, want)
		}
	}
}

// TestGrisu reads back what AppendFloat writes, for random numbers of all sizes.
func TestGrisu(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	longer, n := 0, 200_000
	for i := range n {
		f := math.Float64frombits(r.Uint64())
		if i%2 == 0 {
			f = math.Round(r.NormFloat64()*1e6) / 1e3
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			continue
		}
		text := string(AppendFloat(nil, f))
		if back, err := strconv.ParseFloat(text, 64); err != nil || back != f {
			t.Fatalf("%b: %s reads back as %b, %v", f, text, back, err)
		}
		var digits [20]byte
		if size, _ := grisu(math.Abs(f)+math.SmallestNonzeroFloat64, &digits); size > 17 {
			longer++
		}
	}
	if longer > 0 {
		t.Errorf("%d of %d numbers have more than 17 digits", longer, n)
	}
}

func TestTenPowers(t *testing.T) {
	// From Loitsch's paper.
	all := tenPowers()
	for i, want := range map[int]scaled{
		0:          {18054884314459144840, -1220},
		43:         {15111572745182864684, -77},
		powers - 1: {12648080533535911531, 1066},
	} {
		if all[i] != want {
			t.Errorf("power %d is %v, want %v", i, all[i], want)
		}
	}
}

func TestAppendFloatAllocs(t *testing.T) {
	dst := make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { dst = AppendFloat(dst[:0], 0.1234567) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkAppendFloat(b *testing.B) {
	dst := make([]byte, 0, 64)
	for b.Loop() {
		dst = AppendFloat(dst[:0], 0.123456789012)
	}
}
