package streams

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
)

var benchEntries = flag.Int("bench.entries", 100_000, "entries of the streams that benchmarks make")

// benchStream fills a stream under one lock.
type benchStream struct {
	e    *engine.Engine
	t    engine.Txn
	next ID
}

func newBench(b *testing.B) *benchStream {
	e := openTestEngine(b, 8<<30, engine.NoEviction)
	return &benchStream{e: e, t: e.Lock(testPartition, 1_000_000), next: ID{1_700_000_000_000, 0}}
}

// run has f change the stream as one command does.
func (x *benchStream) run(b *testing.B, f func(s *stream)) {
	item, found := x.t.Peek(testKey)
	s := streamOf(nil, x.t, testKey, item, found)
	f(&s)
	if err := s.close(); err != nil {
		b.Fatal(err)
	}
}

// add adds an entry: three fields, of equal names or not, with values of 8 bytes, three entries a millisecond.
func (x *benchStream) add(b *testing.B, i int, fields [][]byte, differ bool) {
	for f := range 3 {
		copy(fields[2*f+1], "v0000000")
		for at, n := 7, (i*3+f)%10_000_000; n > 0; at, n = at-1, n/10 {
			fields[2*f+1][at] = byte('0' + n%10)
		}
		if differ {
			name := fields[2*f]
			for at, n := len(name)-1, i; n > 0 && at > 0; at, n = at-1, n/10 {
				name[at] = byte('0' + n%10)
			}
		}
	}
	if i%3 == 0 {
		x.next = ID{x.next.Ms + 1, 0}
	} else {
		x.next.Seq++
	}
	x.run(b, func(s *stream) {
		if err := s.add(x.next, fields); err != nil {
			b.Fatal(err)
		}
	})
}

func benchFields() [][]byte {
	return [][]byte{[]byte("temperature"), make([]byte, 8), []byte("sensor-name"), make([]byte, 8), []byte("measured-at"), make([]byte, 8)}
}

// times are how long each of many equal steps took. Their median does not count that others had the processor.
type times []time.Duration

func (t *times) add(begun time.Time) { *t = append(*t, time.Since(begun)) }

func (t times) median(per int) float64 {
	slices.Sort(t)
	return float64(t[len(t)/2].Nanoseconds()) / float64(per)
}

func (x *benchStream) bytes() int64 {
	item, _ := x.t.Peek(testKey)
	v, _ := x.t.Parts(item)
	return v.Bytes()
}

func BenchmarkAdd(b *testing.B) {
	for _, differ := range []bool{false, true} {
		b.Run(fmt.Sprintf("differ=%t", differ), func(b *testing.B) {
			for b.Loop() {
				x, fields := newBench(b), benchFields()
				payload := int64(3 * 8)
				if differ {
					payload += 3 * 11
				}
				used := x.e.Used()
				var took times
				for i := 0; i < *benchEntries; i += 100 {
					begun := time.Now()
					for j := range 100 {
						x.add(b, i+j, fields, differ)
					}
					took.add(begun)
				}
				n := float64(*benchEntries)
				b.ReportMetric(took.median(100), "ns/entry")
				b.ReportMetric(float64(x.bytes()-payload*int64(*benchEntries))/n, "B/entry")
				b.ReportMetric(float64(x.e.Used()-used-payload*int64(*benchEntries))/n, "charged-B/entry")
				x.t.Unlock()
			}
		})
	}
}

func BenchmarkEach(b *testing.B) {
	x, fields := newBench(b), benchFields()
	for i := range *benchEntries {
		x.add(b, i, fields, false)
	}
	defer x.t.Unlock()
	item, _ := x.t.Peek(testKey)
	v, sum := viewOf(x.t, item), 0
	var took times
	for b.Loop() {
		begun, n := time.Now(), 0
		v.each(minID, func(_ ID, e entry) bool {
			if sum += e.strings(); n%1000 == 999 {
				took.add(begun)
				begun = time.Now()
			}
			n++
			return true
		})
	}
	b.ReportMetric(took.median(1000), "ns/entry")
}

// BenchmarkPending reads 200,000 entries as consumers of a group, 100 at a time, and acknowledges
// them, in their order or in any.
func BenchmarkPending(b *testing.B) {
	for _, consumers := range []int{1, 10, 1000} {
		for _, random := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/random=%t", consumers, random), func(b *testing.B) {
				for b.Loop() {
					benchPending(b, consumers, random)
				}
			})
		}
	}
}

func benchPending(b *testing.B, consumers int, random bool) {
	x := newBench(b)
	defer x.t.Unlock()
	name := func(i int) []byte { return fmt.Append(nil, "consumer-", i%consumers) }
	x.run(b, func(s *stream) {
		g, err := s.createGroup([]byte("group"), minID, 0)
		if err != nil {
			b.Fatal(err)
		}
		for i := range consumers {
			if _, err := s.createConsumer(&g, name(i), 1_000_000); err != nil {
				b.Fatal(err)
			}
		}
	})
	const n, atOnce = 200_000, 100
	before := x.bytes()
	var set, acked times
	id := func(i int) ID { return ID{x.next.Ms + uint64(i/3), uint64(i % 3)} }
	for i := 0; i < n; i += atOnce {
		begun := time.Now()
		x.run(b, func(s *stream) {
			g, _ := s.group([]byte("group"))
			c, _ := s.consumer(&g, name(i/atOnce))
			for j := range atOnce {
				p := pending{id: id(i + j), delivered: 1_000_000 + int64(i), count: 1}
				if err := s.setPending(&g, &c, p); err != nil {
					b.Fatal(err)
				}
			}
		})
		set.add(begun)
	}
	b.ReportMetric(float64(x.bytes()-before)/n, "B/entry")
	b.ReportMetric(set.median(atOnce), "set-ns/entry")
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if random {
		order = rand.New(rand.NewPCG(1, 1)).Perm(n)
	}
	for at, i := range order {
		if at == n*9/10 {
			b.ReportMetric(float64(x.bytes()-before)/(n-n*9/10), "left-B/entry")
		}
		begun := time.Now()
		x.run(b, func(s *stream) {
			g, _ := s.group([]byte("group"))
			if !s.ack(&g, id(i)) {
				b.Fatal("not pending")
			}
		})
		acked.add(begun)
	}
	b.ReportMetric(acked.median(1), "ack-ns/entry")
}

// BenchmarkIdleScan looks through 200,000 pending entries for ten that are idle for longest, or for
// none.
func BenchmarkIdleScan(b *testing.B) {
	x, fields := newBench(b), benchFields()
	defer x.t.Unlock()
	const n = 200_000
	first := x.next
	for i := range n {
		x.add(b, i, fields, false)
	}
	x.run(b, func(s *stream) {
		g, err := s.createGroup([]byte("group"), x.next, n)
		if err != nil {
			b.Fatal(err)
		}
		c, err := s.createConsumer(&g, []byte("consumer"), 1_000_000)
		if err != nil {
			b.Fatal(err)
		}
		for i := range n {
			p := pending{id: ID{first.Ms + 1 + uint64(i/3), uint64(i % 3)}, delivered: 1_000_000 + int64(i), count: 1}
			if err := s.setPending(&g, &c, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, found := range []int{0, 10} {
		b.Run(fmt.Sprint(found), func(b *testing.B) {
			var took times
			for b.Loop() {
				x.run(b, func(s *stream) {
					g, _ := s.group([]byte("group"))
					s.setOldest(&g, 0) // or it would look at none
					var c idleScan
					now := int64(2_000_000)
					minIdle := now - 1_000_000 - int64(found) + 1
					for done := false; !done; {
						begun, steps := time.Now(), scannedAtOnce
						done = c.scan(&s.view, &g, now, minIdle, 10, &steps)
						took.add(begun)
					}
					if len(c.found) != found {
						b.Fatalf("found %d", len(c.found))
					}
				})
			}
			b.ReportMetric(took.median(scannedAtOnce), "ns/entry")
		})
	}
}
