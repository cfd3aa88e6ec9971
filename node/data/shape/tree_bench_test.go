package shape

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkTree measures a list and a sorted set of as many entries as table.size says, of 16 bytes
// each.
func BenchmarkTree(b *testing.B) {
	n := *tableSize
	r := rand.New(rand.NewPCG(1, 2))
	key := make([]byte, 16)
	for _, ranked := range []bool{false, true} {
		name := "list"
		if ranked {
			name = "ranked"
		}
		var tree *Tree
		fill := func(b *testing.B) (unlock func()) {
			e := openEngine(b, 4<<30)
			used := e.Used()
			x := e.Lock(1, 1)
			tree = makeTree(b, x, "tree", 1, ranked)
			for i := range n {
				var err error
				if ranked {
					_, err = tree.Insert(uint64(i)*0x9E3779B97F4A7C15, benchElement(key, uint64(i), 16), nil)
				} else {
					err = tree.InsertAt(i, benchElement(key, uint64(i), 16), nil)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tree.V.Bytes())/float64(n)-16, "B/entry")
			b.ReportMetric(float64(e.Used()-used)/float64(n)-16, "charged-B/entry")
			return x.Unlock
		}
		b.Run(fmt.Sprintf("%s/fill", name), func(b *testing.B) {
			for b.Loop() {
				fill(b)()
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/entry")
			}
		})
		unlock := fill(b)
		each := func(what string, op func(i int)) {
			b.Run(fmt.Sprintf("%s/%s", name, what), func(b *testing.B) {
				for b.Loop() {
					op(r.IntN(n - 2))
				}
			})
		}
		sum := 0
		each("at", func(i int) { x := tree.At(i); sum += x.First.Len() })
		each("walk 100", func(i int) {
			left := 100
			tree.Walk(i, func(x Entry) bool { sum += x.First.Len(); left--; return left > 0 })
		})
		if ranked {
			each("find", func(i int) {
				tree.Find(uint64(i)*0x9E3779B97F4A7C15, benchElement(key, uint64(i), 16))
			})
			each("move", func(i int) {
				tree.Delete(i)
				_, _ = tree.Insert(r.Uint64(), key, nil)
			})
		} else {
			each("push and pop", func(i int) { _ = tree.InsertAt(tree.Len(), key, nil); tree.Delete(0) })
			each("push and pop in front", func(i int) { _ = tree.InsertAt(0, key, nil); tree.Delete(tree.Len() - 1) })
			each("insert and delete", func(i int) { _ = tree.InsertAt(i, key, nil); tree.Delete(i) })
			each("replace", func(i int) { _ = tree.Replace(i, 0, key) })
		}
		b.Run(fmt.Sprintf("%s/delete range", name), func(b *testing.B) {
			removed := 0
			for left := n * 9 / 10; left > 0 && tree.Len() > n/10; {
				k := tree.DeleteSome(n/20, left)
				left -= k
				removed += k
			}
			if removed > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(removed), "ns/entry")
			}
		})
		unlock()
	}
}
