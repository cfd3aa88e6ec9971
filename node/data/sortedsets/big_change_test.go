package sortedsets

import (
	"fmt"
	"testing"
)

// A ZADD of a big set that names a member several times leaves its last score, and one entry.
func TestAddOneMemberTwice(t *testing.T) {
	s := newBenchSorted(t, 2000)
	name := []byte("m")
	for _, scores := range [][]string{{"1", "2"}, {"1", "2", "1"}, {"5", "1", "3", "1"}, {"3", "3"}} {
		var args [][]byte
		for i, score := range scores {
			args = append(args, []byte(score), name, fmt.Append(nil, i), fmt.Append(nil, "other:", i))
		}
		s.with(func(x *sorted) {
			a := addition{o: Options{CountChanged: true}, args: args, each: 2, read: readPair}
			if err := x.add(&a); err != nil {
				t.Fatal(err)
			}
			if score, ok := x.Score(name); !ok || fmt.Sprint(score) != scores[len(scores)-1] {
				t.Errorf("ZADD of %q leaves %g, there %t", scores, score, ok)
			}
			if err := x.big.tree.Check(); err != nil {
				t.Error(err)
			}
		})
	}
	s.remove(name)
	s.with(func(x *sorted) {
		if _, ok := x.Score(name); ok {
			t.Error("the member is there after ZREM")
		}
	})
}
