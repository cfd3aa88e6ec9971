package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestZipf(t *testing.T) {
	const n, draws = 1000, 200_000
	for _, exponent := range []float64{0.8, 1, 1.2} {
		z, r := newZipf(exponent, n), rand.New(rand.NewPCG(1, 1))
		var counts [n]int
		for range draws {
			counts[z.draw(r)]++
		}
		total := 0.0
		for k := range n {
			total += math.Pow(float64(k+1), -exponent)
		}
		for _, k := range []int{0, 1, 2, 9, 99} {
			want := draws * math.Pow(float64(k+1), -exponent) / total
			if got := float64(counts[k]); math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("exponent %v: rank %d was drawn %v times, want about %.0f", exponent, k, got, want)
			}
		}
	}
}

// testTrace makes the workload of that name with 2,000 keys.
func testTrace(t *testing.T, name string) *Trace {
	i := slices.IndexFunc(Workloads, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("there is no workload %q", name)
	}
	return Workloads[i].Trace(2000, 20_000)
}

func TestTraces(t *testing.T) {
	for _, w := range Workloads {
		a, b := w.Trace(2000, 20_000), w.Trace(2000, 20_000)
		if !slices.Equal(a.Keys, b.Keys) || !slices.Equal(a.Values, b.Values) {
			t.Errorf("%s: two traces differ", w.Name)
		}
		if len(a.Keys) != 20_000 || a.WarmUp != 8000 {
			t.Errorf("%s: %d reads, %d of them to warm up", w.Name, len(a.Keys), a.WarmUp)
		}
		if top := slices.Max(a.Keys); int(top) >= len(a.Values) {
			t.Errorf("%s: key %d of %d", w.Name, top, len(a.Values))
		}
	}
}

// counts returns how often each key is read.
func counts(keys []uint32) map[uint32]int {
	n := map[uint32]int{}
	for _, key := range keys {
		n[key]++
	}
	return n
}

func TestScans(t *testing.T) {
	once := 0
	for key, n := range counts(testTrace(t, "scans").Keys) {
		if key >= 2000 {
			once++
			if n != 1 {
				t.Errorf("key %d of a scan is read %d times", key, n)
			}
		}
	}
	if once < 3500 || once > 4500 {
		t.Errorf("%d of 20000 reads are of scans, want a fifth", once)
	}
}

// overlap returns the share of b's reads that are of keys that a reads.
func overlap(a, b []uint32) float64 {
	n, both := counts(a), 0
	for _, key := range b {
		if n[key] > 0 {
			both++
		}
	}
	return float64(both) / float64(len(b))
}

// TestMoves checks that a working set is about the same after a short time, and another one at the
// end.
func TestMoves(t *testing.T) {
	for _, name := range []string{"drift", "window"} {
		keys := testTrace(t, name).Keys
		n := len(keys) / 10
		soon, late := overlap(keys[:n], keys[n:2*n]), overlap(keys[:n], keys[9*n:])
		if soon < 0.5 || late > 0.05 {
			t.Errorf("%s: %.2f of the reads stay for a tenth of the trace, %.2f till the end", name, soon, late)
		}
	}
}

func TestHotSet(t *testing.T) {
	keys := testTrace(t, "hot set").Keys
	n := len(keys) / 20
	for phase := range 20 {
		hot := 0
		for _, key := range keys[phase*n : (phase+1)*n] {
			if int(key)/40 == phase {
				hot++
			}
		}
		if hot < n*85/100 || hot > n*95/100 {
			t.Errorf("phase %d: %d of %d reads are of its keys", phase, hot, n)
		}
	}
}

func TestAbrupt(t *testing.T) {
	trace := testTrace(t, "abrupt")
	top := func(keys []uint32) (top uint32) {
		n := counts(keys)
		for key := range n {
			if n[key] > n[top] {
				top = key
			}
		}
		return top
	}
	if top(trace.Keys[:1000]) != top(trace.Keys[1000:2000]) {
		t.Error("the most popular key changes within a phase")
	}
	tops := map[uint32]bool{}
	for phase := range 10 {
		tops[top(trace.Keys[phase*2000:(phase+1)*2000])] = true
	}
	if len(tops) < 8 {
		t.Errorf("%d keys are the most popular of 10 phases", len(tops))
	}
}

func TestLongTail(t *testing.T) {
	trace := testTrace(t, "long tail")
	values := slices.Clone(trace.Values)
	slices.Sort(values)
	if median := values[len(values)/2]; median < 250 || median > 350 {
		t.Errorf("the median of the lengths is %d, want about 300", median)
	}
	if values[0] < 16 || values[len(values)-1] > 100<<10 || values[len(values)-1] < 10<<10 {
		t.Errorf("lengths from %d to %d", values[0], values[len(values)-1])
	}
}
