package shape

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// changingTree is a ranked tree that changes at random: of 4,000 members, 3,000 always stay, whatever
// ranks they get.
type changingTree struct {
	*Tree
	t      *testing.T
	random *rand.Rand
	ranks  map[string]uint64
	// copied is what a snapshot and the changes since its beginning make of the tree.
	copied map[string]uint64
}

const staying = 3000

func newChangingTree(t *testing.T) *changingTree {
	x := openEngine(t, 64<<20).Lock(1, 1)
	t.Cleanup(x.Unlock)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &changingTree{
		Tree: makeTree(t, x, "tree", 1, true), t: t, random: rand.New(rand.NewPCG(3, seed)),
		ranks: map[string]uint64{}, copied: map[string]uint64{},
	}
	for i := range staying {
		c.set(changingName(i))
	}
	clear(c.copied)
	return c
}

// changingName is the name of a member. Some are long.
func changingName(i int) string {
	if i%50 == 0 {
		return fmt.Sprintf("%d%s", i, modelBytes(1, 1500+i%400))
	}
	return fmt.Sprint("member:", i)
}

// set gives a member a random rank.
func (c *changingTree) set(name string) {
	rank := uint64(c.random.Uint32N(100))
	s, there := c.Lookup([]byte(name))
	_, known := c.ranks[name]
	err := error(nil)
	if there {
		err = c.Move(s, rank, []byte(name))
	} else {
		_, err = c.Insert(rank, []byte(name), nil)
	}
	if err != nil || there != known {
		c.t.Fatalf("%.20q: there %t, known %t, error %v", name, there, known, err)
	}
	c.ranks[name], c.copied[name] = rank, rank
}

func (c *changingTree) change() {
	for range 40 {
		i := c.random.IntN(staying + 1000)
		name := changingName(i)
		if i < staying || c.random.IntN(2) == 0 {
			c.set(name)
			continue
		}
		if s, ok := c.Lookup([]byte(name)); ok {
			c.CutAt(s)
		}
		delete(c.ranks, name)
		delete(c.copied, name)
	}
}

// A scan sees all entries that stay, whatever ranks they get meanwhile, while others come and go.
func TestScanOfChangingTree(t *testing.T) {
	c, seen := newChangingTree(t), map[string]bool{}
	for cursor, n := uint64(0), 0; ; n = 0 {
		weight := func(Entry) int { return scanRoom >> c.random.IntN(12) }
		cursor = c.Scan(cursor, func(int) bool { return n >= 10 }, weight, func(x Entry) {
			n++
			seen[string(x.First.Append(nil))] = true
		})
		if c.change(); cursor == 0 {
			break
		}
	}
	for i := range staying {
		if !seen[changingName(i)] {
			t.Fatalf("member %d was not seen", i)
		}
	}
}

// A scan weighs the entries of buckets that have a long string, and of no others.
func TestScanWeighsFew(t *testing.T) {
	x := openEngine(t, 64<<20).Lock(1, 1)
	defer x.Unlock()
	s := scannedTree{makeTree(t, x, "tree", 1, true)}
	for i := range 4000 {
		s.add(t, [][]byte{fmt.Append(nil, "member:", i)})
	}
	s.add(t, [][]byte{modelBytes(1, 500)})
	seen, weighed := 0, map[string]bool{}
	weight := func(x Entry) int {
		weighed[string(x.First.Append(nil))] = true
		return x.First.Size()
	}
	if next := s.Scan(0, func(int) bool { return false }, weight, func(Entry) { seen++ }); next != 0 {
		t.Errorf("the scan ends at %d", next)
	}
	if seen != s.Len() || len(weighed) == 0 || len(weighed) > s.Len()/4 {
		t.Errorf("%d entries of %d were seen, and %d weighed", seen, s.Len(), len(weighed))
	}
}

// What a snapshot says, and the changes since it began, make what the tree has.
func TestDumpOfChangingTree(t *testing.T) {
	c := newChangingTree(t)
	for place, done := (engine.Place{}), false; !done; c.change() {
		var delta []byte
		delta, place, done = c.Dump(place, nil, 4<<10, func(dst []byte, x Entry) []byte {
			return AppendSet(dst, x.First.Append(nil), fmt.Append(nil, x.Rank))
		})
		if len(delta) > 16<<10 {
			t.Fatalf("a piece of %d bytes", len(delta))
		}
		if err := EachChange(delta, func(key, value []byte) error {
			rank, err := strconv.ParseUint(string(value), 10, 64)
			c.copied[string(key)] = rank
			return err
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(c.copied, c.ranks) {
		t.Errorf("%d members copied of %d, or others", len(c.copied), len(c.ranks))
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
