package shape

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// A scan sees all entries that stay, whatever ranks they get meanwhile, while others come and go.
// What a snapshot says, and the changes since it began, make what the tree has.
func TestScanOfChangingTree(t *testing.T) {
	e := openEngine(t, 64<<20)
	x := e.Lock(1, 1)
	defer x.Unlock()
	tree := makeTree(t, x, "tree", 1, true)
	r := rand.New(rand.NewPCG(3, rand.Uint64()))
	ranks := map[string]uint64{}
	set := func(name string, rank uint64) {
		s, there := tree.Lookup([]byte(name))
		_, known := ranks[name]
		err := error(nil)
		if there {
			err = tree.Move(s, rank, []byte(name))
		} else {
			_, err = tree.Insert(rank, []byte(name), nil)
		}
		if err != nil || there != known {
			t.Fatalf("%.20q: there %t, known %t, error %v", name, there, known, err)
		}
		ranks[name] = rank
	}
	name := func(i int) string {
		if i%50 == 0 {
			return fmt.Sprintf("%d%s", i, modelBytes(1, 1500+i%400))
		}
		return fmt.Sprint("member:", i)
	}
	for i := range 3000 {
		set(name(i), uint64(r.Uint32N(100)))
	}
	copied := map[string]uint64{}
	change := func() {
		for range 40 {
			i := r.IntN(4000)
			key := name(i)
			if i >= 3000 && r.IntN(2) == 0 {
				if s, ok := tree.Lookup([]byte(key)); ok {
					tree.CutAt(s)
				}
				delete(ranks, key)
				delete(copied, key)
				continue
			}
			set(key, uint64(r.Uint32N(100)))
			copied[key] = ranks[key]
		}
	}
	seen := map[string]bool{}
	for cursor, n := uint64(0), 0; ; n = 0 {
		cursor = tree.Scan(cursor, func() bool { return n >= 10 }, func(x Entry) { n++; seen[string(x.First.Append(nil))] = true })
		if change(); cursor == 0 {
			break
		}
	}
	for i := range 3000 {
		if !seen[name(i)] {
			t.Fatalf("member %d was not seen", i)
		}
	}
	clear(copied)
	for place, done := uint64(0), false; !done; change() {
		var delta []byte
		delta, place, done = tree.Dump(place, nil, 4<<10, func(dst []byte, x Entry) []byte {
			return AppendSet(dst, x.First.Append(nil), fmt.Append(nil, x.Rank))
		})
		if len(delta) > 16<<10 {
			t.Fatalf("a piece of %d bytes", len(delta))
		}
		if err := EachChange(delta, func(key, value []byte) error {
			rank, err := strconv.ParseUint(string(value), 10, 64)
			copied[string(key)] = rank
			return err
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(copied) != len(ranks) {
		t.Fatalf("%d members copied of %d", len(copied), len(ranks))
	}
	for key, rank := range ranks {
		if copied[key] != rank {
			t.Fatalf("%.20q has rank %d, copied %d", key, rank, copied[key])
		}
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}
