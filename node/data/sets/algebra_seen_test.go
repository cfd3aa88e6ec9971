package sets

import (
	"fmt"
	"math"
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

// account is a heap that counts.
type account struct {
	exec.Heap
	charged, most int64
}

func (a *account) Charge(n int64) bool {
	if a.charged+n > a.most {
		return false
	}
	a.charged += n
	return true
}

func (a *account) Refund(n int64) { a.charged -= n }

// A union or difference of many sources takes about as many steps as these have members.
func TestStepsOfManySources(t *testing.T) {
	const sources, each = 200, 10
	e, err := engine.New(engine.Config{MaxBytes: 64 << 20, Shards: 1, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x := e.Lock(1, 1)
	defer x.Unlock()
	var keys [][]byte
	for i := range sources {
		var p shape.Pack
		p.Open(&shape.PackedSet, nil, 1)
		for j := range each {
			p.Insert(j, 0, fmt.Append(nil, "member:", i*each/2+j), nil) // the next source has half of them
		}
		key := fmt.Append(nil, "key:", i)
		if err := x.Set(key, p.Bytes(), engine.TypeSet, 0); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	for _, test := range []struct {
		op          operation
		keys        [][]byte
		most        int64
		want, steps int
	}{
		{union, keys, math.MaxInt, each + (sources-1)*each/2, sources * (2*each + 1)},
		{diff, keys, math.MaxInt, each / 2, sources * (2*each + 1)},
		{diff, keys[1:], math.MaxInt, each / 2, sources * (2*each + 1)},
		{union, keys, 1000, -1, sources * (2*each + 1)},
		{union, keys[:3], 0, each + 2*each/2, 200},
	} {
		heap := account{most: test.most}
		s := state{plan: plan{op: test.op, keys: test.keys}}
		s.look(&slice{x, math.MaxInt})
		s.remember(&heap)
		walked := slice{x, math.MaxInt}
		for !s.done && (s.seen == nil || !s.seen.lost) {
			s.walk(&walked, func([]byte) bool { return false })
		}
		if lost := s.seen != nil && s.seen.lost; lost != (test.want < 0) || !lost && s.found != test.want {
			t.Errorf("operation %d over %d sources finds %d, lost %t, want %d", test.op, len(test.keys), s.found, lost, test.want)
		}
		if steps := math.MaxInt - walked.left; steps > test.steps {
			t.Errorf("operation %d over %d sources takes %d steps, more than %d", test.op, len(test.keys), steps, test.steps)
		}
		if s.seen.end(); heap.charged != 0 {
			t.Errorf("%d bytes stay charged", heap.charged)
		}
	}
}
