package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPutKey(t *testing.T) {
	key := newKey(16)
	f := func(i uint32, want string) {
		t.Helper()
		if putKey(key, i); string(key) != want {
			t.Errorf("key %d is %q: want %q", i, key, want)
		}
	}
	f(0, "session:00000000")
	f(0x1234abcd, "session:1234abcd")
	f(math.MaxUint32, "session:ffffffff")
	if n := len(newKey(50)); n != 50 {
		t.Errorf("a key of %d bytes: want 50", n)
	}
}

func TestZipf(t *testing.T) {
	const keys, draws = 1000, 400_000
	sum := 0.0
	for k := 1.0; k <= keys; k++ {
		sum += 1 / k
	}
	z, r := newZipf(keys), rand.New(rand.NewPCG(1, 2))
	var count [keys + 1]int
	for range draws {
		count[z.draw(r)]++
	}
	for _, k := range []int{1, 2, 3, 10, 100} {
		want := draws / sum / float64(k)
		if got := float64(count[k]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("rank %d was drawn %.0f times: want %.0f", k, got, want)
		}
	}
}

func TestScatter(t *testing.T) {
	const keys = 10_000
	seen := make([]bool, keys)
	for rank := range uint64(keys) {
		seen[scatter(rank, keys)] = true
	}
	for i, ok := range seen {
		if !ok {
			t.Fatalf("no rank has key %d", i)
		}
	}
}

// TestContenders checks that all contenders do the same.
func TestContenders(t *testing.T) {
	for _, name := range contenders {
		if name == harness {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s, err := openStore(name, 64<<20, 1)
			if err != nil {
				t.Fatal(err)
			}
			key := newKey(16)
			f := func(want string) {
				t.Helper()
				if got := string(s.get(key, nil)); got != want {
					t.Errorf("the value is %q: want %q", got, want)
				}
			}
			f("")
			s.set(key, []byte("10"))
			f("10")
			if n := s.keys(); n != 1 {
				t.Errorf("%d keys: want 1", n)
			}
			if takesPart(name, opIncr) {
				s.incr(key)
				f("11")
			}
			s.del(key)
			f("")
			if takesPart(name, opExpireFirst) {
				s.set(key, []byte("value"))
				s.expire(key, math.MaxInt64/2)
				f("value")
				s.expire(key, 1)
				f("")
			}
		})
	}
}

func TestRatio(t *testing.T) {
	row := &speedRow{}
	for _, x := range [][4]float64{{110, 210, 60, 10}, {60, 310, 0, 10}, {110, 110, 0, 10}} {
		row.rounds = append(row.rounds, [4]speedResult{{Nanos: x[0]}, {Nanos: x[1]}, {Nanos: x[2]}, {Nanos: x[3]}})
	}
	if got := row.ratio(1); got != 2 {
		t.Errorf("the ratio is %v: want 2, the median of 2, 6 and 1", got)
	}
	if got := verdict(0.89, overFast); got != "0.89 BEHIND" {
		t.Errorf("the verdict is %q", got)
	}
}
