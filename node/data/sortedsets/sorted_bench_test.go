package sortedsets

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/shape"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
)

var benchSize = flag.Int("members", 0, "members in BenchmarkSorted; 0: 1,000, 100,000 and 1,000,000")

// benchSorted is a sorted set of n members of 8 to 40 bytes, with random scores, and what one command
// does with it: it takes the lock, finds the key, and acts.
type benchSorted struct {
	tb      testing.TB
	e       *engine.Engine
	r       exec.Request
	n       int
	payload int
	name    []byte
	pair    [2][]byte
	number  [scoreRoom]byte
	rand    *rand.Rand
	sum     float64
	x       sorted
}

var benchKey = []byte("sorted")

func newBenchSorted(tb testing.TB, n int) *benchSorted {
	e, err := engine.New(engine.Config{MaxBytes: 2 << 30, Shards: 1, Seed: 7, Policy: engine.NoEviction,
		Forms: map[engine.Type]engine.Form{engine.TypeZSet: sortedType.Form}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	s := &benchSorted{tb: tb, e: e, n: n, rand: rand.New(rand.NewPCG(1, 2))}
	s.r.Worker = &exec.Worker{}
	for i := range n {
		s.payload += len(s.member(i))
		s.add(s.name, s.rand.Float64()*1e6, Options{})
	}
	return s
}

// member is the name of a member, of 8 to 40 bytes, valid until the next call.
func (s *benchSorted) member(i int) []byte {
	s.name = appendBenchMember(s.name[:0], i)
	return s.name
}

// appendBenchMember appends the name of a member.
func appendBenchMember(dst []byte, i int) []byte {
	begin := len(dst)
	dst = append(dst, "m:"...)
	for h := uint64(i + 1); len(dst)-begin < 40; {
		h *= 0x9E3779B97F4A7C15
		dst = binary.BigEndian.AppendUint64(dst, h)
	}
	return dst[:begin+8+i%33]
}

// with has f act on the set as a command does.
func (s *benchSorted) with(f func(x *sorted)) {
	t := s.e.Lock(1, 1)
	defer t.Unlock()
	x := &s.x
	*x = sorted{r: &s.r, txn: t, key: benchKey}
	if x.item, x.found = t.Find(benchKey); x.found {
		x.View = viewOf(t, x.item)
	}
	f(x)
}

func (s *benchSorted) add(member []byte, score float64, o Options) {
	s.pair[0], s.pair[1] = strconv.AppendFloat(s.number[:0], score, 'g', -1, 64), member
	s.with(func(x *sorted) {
		if err := x.add(&addition{o: o, args: s.pair[:], each: 2, read: readPair}); err != nil {
			s.tb.Fatal(err)
		}
	})
}

func readPair(pair [][]byte) (score float64, member []byte, problem string) {
	score, _ = ParseScore(pair[0])
	return score, pair[1], ""
}

func (s *benchSorted) remove(member []byte) {
	s.pair[0] = member
	s.with(func(x *sorted) {
		if _, err := x.remove(s.pair[:1]); err != nil {
			s.tb.Fatal(err)
		}
	})
}

func (s *benchSorted) pop(n int) {
	s.with(func(x *sorted) {
		x.Each(Span{to: n}, func(member shape.Item, score float64) bool { s.sum += score; return true })
		if _, err := x.removeSome(0, n, n); err != nil {
			s.tb.Fatal(err)
		}
	})
}

// report reports the bytes of a member beyond its name: of the value, and with what is free on its
// pages.
func (s *benchSorted) report(b *testing.B, what string) {
	s.with(func(x *sorted) {
		if v, ok := x.txn.Parts(x.item); ok {
			b.ReportMetric(float64(int(v.Bytes())-s.payload)/float64(s.n), "B/member-"+what)
		}
	})
}

func BenchmarkSorted(b *testing.B) {
	sizes := []int{1_000, 100_000, 1_000_000}
	if *benchSize > 0 {
		sizes = []int{*benchSize}
	}
	for _, n := range sizes {
		benchmarkSorted(b, n)
	}
}

func benchmarkSorted(b *testing.B, n int) {
	s := newBenchSorted(b, n)
	each := func(what string, op func(i int)) {
		b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				op(s.rand.IntN(n))
			}
		})
	}
	b.Run(fmt.Sprintf("bytes/%d", n), func(b *testing.B) {
		for b.Loop() {
			_ = s.e.Used()
		}
		s.report(b, "new")
		b.ReportMetric(float64(int(s.e.Used())-s.payload)/float64(n), "charged-B/member")
	})
	each("ZSCORE", func(i int) { s.with(func(x *sorted) { f, _ := x.Score(s.member(i)); s.sum += f }) })
	each("ZSCORE-miss", func(i int) {
		s.with(func(x *sorted) { f, _ := x.Score(s.member(n + i)); s.sum += f })
	})
	each("ZRANK", func(i int) {
		s.with(func(x *sorted) { at, _, _ := x.Position(s.member(i)); s.sum += float64(at) })
	})
	each("ZRANGE-100", func(i int) {
		i = min(i, n-100)
		s.with(func(x *sorted) {
			x.Each(Span{from: i, to: i + 100}, func(m shape.Item, score float64) bool { s.sum += score; return true })
		})
	})
	each("ZADD-score", func(i int) { s.add(s.member(i), s.rand.Float64()*1e6, Options{}) })
	each("ZINCRBY", func(i int) { s.add(s.member(i), 1, Options{AddsTo: true}) })
	each("ZREM-ZADD", func(i int) { s.remove(s.member(i)); s.add(s.member(i), s.rand.Float64()*1e6, Options{}) })
	each("ZPOPMIN-ZADD", func(i int) {
		s.with(func(x *sorted) { m, _ := x.at(0); s.name = m.Append(s.name[:0]) })
		s.pop(1)
		s.add(s.name, s.rand.Float64()*1e6, Options{})
	})
	b.Run(fmt.Sprintf("churned-bytes/%d", n), func(b *testing.B) {
		for b.Loop() {
			_ = s.e.Used()
		}
		s.report(b, "churned")
		b.ReportMetric(float64(int(s.e.Used())-s.payload)/float64(n), "charged-B/member")
	})
	b.Run(fmt.Sprintf("ZADD-new/%d", n), func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			s.add(s.member(n+i), s.rand.Float64()*1e6, Options{})
		}
	})
}

// BenchmarkRangeDelete removes 180,000 of 200,000 members in runs, as ZREMRANGEBYRANK does.
func BenchmarkRangeDelete(b *testing.B) {
	for range b.N {
		b.StopTimer()
		s := newBenchSorted(b, 200_000)
		b.StartTimer()
		for left := 180_000; left > 0; {
			s.with(func(x *sorted) {
				n, err := x.removeSome(10_000, left, removedAtOnce)
				if left -= n; err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
