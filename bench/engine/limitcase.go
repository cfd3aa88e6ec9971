package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

func init() { cases["limit"] = limitCase }

// phase is a kind of writes.
type phase struct {
	name        string
	least, most int  // length of a value
	beyond      bool // sometimes a value of longestValue
	churn       bool // overwrite and delete old keys instead of writing new ones
}

var phases = []phase{
	{name: "small", least: 16, most: 200},
	{name: "large", least: 4 << 10, most: 1 << 20, beyond: true},
	{name: "mixed", least: 16, most: 1 << 20},
	{name: "small", least: 16, most: 200},
	{name: "churn", least: 16, most: 64 << 10, churn: true},
}

const (
	limitKeyLen  = 24
	longestValue = 4 << 20
)

// limitCase runs the phases, and samples its own memory meanwhile.
func limitCase(in *gob.Decoder, out *gob.Encoder) error {
	var q limitQuestion
	if err := in.Decode(&q); err != nil {
		return err
	}
	cores := runtime.GOMAXPROCS(0)
	l := &limited{q: q, value: make([]byte, longestValue), cores: cores, written: make([]uint32, cores)}
	for i := range l.value {
		l.value[i] = byte(i * 7) // resident from now on, so it does not count as growth
	}
	var a limitAnswer
	var err error
	if a.Empty, err = residentBytes(0); err != nil {
		return err
	}
	if err := l.open(engine.AllKeys); err != nil {
		return err
	}
	for i := range q.Cycles*len(phases) + 1 { // the last one: small values after churn
		r, err := l.run(phases[i%len(phases)])
		if err != nil {
			return err
		}
		a.Phases = append(a.Phases, r)
	}
	err = errors.Join(l.shrink(&a.Shrink), l.flush(&a.Flush, a.Empty), l.e.Close(),
		l.open(engine.NoEviction), l.refuse(&a.Refuse))
	if err != nil {
		return err
	}
	return out.Encode(a)
}

// limited is an engine at its limit.
type limited struct {
	e       *engine.Engine
	q       limitQuestion
	cores   int
	value   []byte   // all values are parts of it
	written []uint32 // keys by each writer: writer w's are numbers w, w+cores, w+2*cores...
}

func (l *limited) open(policy engine.Policy) (err error) {
	l.e, err = engine.New(engine.Config{MaxBytes: l.q.MaxBytes, Shards: engine.ShardsFor(l.cores, l.q.MaxBytes), Policy: policy})
	return err
}

// share returns n as a share of the limit.
func (l *limited) share(n int64) float64 { return float64(n) / float64(l.q.MaxBytes) }

// run runs one phase.
func (l *limited) run(p phase) (r phaseResult, err error) {
	r.Name = p.name
	begin := time.Now()
	watch := l.watch()
	var sets, failed, written atomic.Int64
	err = split(l.cores, l.cores, func(w, _, _ int) error {
		wr := writer{limited: l, phase: p, number: uint32(w), own: l.written[w], key: newKey(limitKeyLen)}
		wr.first, wr.r = wr.own, rand.New(rand.NewPCG(uint64(w), uint64(wr.own)))
		wr.write(2*l.q.MaxBytes/int64(l.cores), time.Now().UnixMilli())
		sets.Add(int64(wr.sets))
		failed.Add(int64(wr.failed))
		written.Add(wr.bytes)
		l.written[w] = wr.own
		return nil
	})
	r.Took = time.Since(begin)
	s := watch()
	r.Sets, r.Failed, r.Written = int(sets.Load()), int(failed.Load()), written.Load()
	r.MaxResident, r.Least = l.share(s.maxResident), s.leastLive
	st := l.e.Stats()
	r.Live, r.Data = l.share(st.Values+st.Index), l.share(l.data())
	r.Least = min(r.Least, r.Live)
	return r, errors.Join(err, s.err)
}

// writer is one goroutine of a phase.
type writer struct {
	*limited
	phase
	number       uint32
	own, first   uint32 // keys that it has written: in all, and before this phase
	r            *rand.Rand
	key          []byte
	sets, failed int
	bytes        int64
}

// write writes keys until it has written the given number of bytes.
func (w *writer) write(bytes, now int64) {
	for w.bytes < bytes {
		old := w.choose()
		n := w.length()
		t := w.e.Lock(ring.PartitionOf(w.key), now)
		if old && w.r.Uint32()&3 == 0 {
			t.Delete(w.key)
		}
		if err := t.Set(w.key, w.value[:n], engine.TypeString, 0); err != nil {
			w.failed++
		}
		t.Unlock()
		w.sets++
		w.bytes += int64(limitKeyLen + n)
		w.read(now)
	}
}

// choose makes the key to write, and reports whether it was written before.
func (w *writer) choose() (old bool) {
	const meanLen = 8 << 10 // mean length of values in a phase of churn
	churned := uint32(2 * w.q.MaxBytes / meanLen / int64(w.cores))
	if n := w.own - w.first; w.churn && n >= churned {
		w.makeKey(w.r.Uint32N(n))
		return true
	}
	w.own++
	w.makeKey(0)
	return false
}

// makeKey makes the key that was written back keys ago.
func (w *writer) makeKey(back uint32) {
	putKey(w.key, (w.own-1-back)*uint32(w.cores)+w.number)
}

// read looks up a key that was written some time ago, more often a recent one.
func (w *writer) read(now int64) {
	w.makeKey(uint32(math.Exp(w.r.Float64()*math.Log(float64(w.own)))) - 1)
	t := w.e.Lock(ring.PartitionOf(w.key), now)
	t.Find(w.key)
	t.Unlock()
}

// length returns the length of the next value.
func (w *writer) length() int {
	if w.beyond && w.r.Uint32()%64 == 0 {
		return longestValue
	}
	return int(float64(w.least) * math.Exp(w.r.Float64()*math.Log(float64(w.most)/float64(w.least))))
}

// data returns the bytes of all keys and values.
func (l *limited) data() (sum int64) {
	now := time.Now().UnixMilli()
	for p := range uint16(engine.Partitions) {
		for cursor, done := uint64(0), false; !done; {
			cursor, done = l.e.Walk(p, cursor, 64, now, func(i engine.Item) bool {
				sum += int64(len(i.Key()) + len(i.Value()))
				return true
			})
		}
	}
	return sum
}

// samples has the extremes of what watch saw.
type samples struct {
	maxResident int64
	leastLive   float64 // after memory has been full once
	err         error
}

// watch samples the process's memory until stop is called.
func (l *limited) watch() (stop func() samples) {
	const period = 5 * time.Millisecond
	done, result := make(chan struct{}), make(chan samples)
	go func() { // ends when done is closed
		s := samples{leastLive: 1}
		tick := time.NewTicker(period)
		defer tick.Stop()
		for full := false; ; {
			n, err := residentBytes(0)
			s.maxResident, s.err = max(s.maxResident, n), errors.Join(s.err, err)
			st := l.e.Stats()
			full = full || l.share(st.Used) > 0.98
			if full {
				s.leastLive = min(s.leastLive, l.share(st.Values+st.Index))
			}
			select {
			case <-done:
				result <- s
				return
			case <-tick.C:
			}
		}
	}()
	return func() samples { close(done); return <-result }
}

// shrink lowers the limit to half.
func (l *limited) shrink(r *changeResult) error {
	return r.measure(int64(residentTarget*float64(l.q.MaxBytes/2)), func() error { return l.e.SetMaxBytes(l.q.MaxBytes / 2) })
}

// flush drops everything. The engine keeps some pages for later: a sixteenth of the limit is
// allowed.
func (l *limited) flush(r *changeResult, empty int64) error {
	return r.measure(empty+l.q.MaxBytes/16, func() error {
		for p := range uint16(engine.Partitions) {
			l.e.Drop(p)
		}
		return nil
	})
}

func (r *changeResult) measure(maxBytes int64, change func() error) error {
	r.MaxBytes = maxBytes
	begin := time.Now()
	err := change()
	r.Took = time.Since(begin)
	debug.FreeOSMemory() // memory that Go has kept does not belong to the engine
	n, err2 := residentBytes(0)
	r.Resident = n
	return errors.Join(err, err2)
}

// refuse fills an engine that evicts nothing, and checks what still works then.
func (l *limited) refuse(r *refuseResult) error {
	key, now := newKey(limitKeyLen), time.Now().UnixMilli()
	w := writer{limited: l, phase: phases[2], r: rand.New(rand.NewPCG(1, 1))}
	watch := l.watch()
	fill := func(from uint32) (i uint32, bytes int64, err error) {
		for i = from; err == nil; i++ {
			putKey(key, i)
			n := w.length() / 16
			t := l.e.Lock(ring.PartitionOf(key), now)
			err = t.Set(key, l.value[:n], engine.TypeString, 0)
			t.Unlock()
			bytes += int64(limitKeyLen + n)
		}
		if errors.Is(err, engine.ErrMemory) {
			err = nil
		}
		return i - 1, bytes, err
	}
	end, _, err := fill(0)
	if err != nil {
		return fmt.Errorf("a SET fails with %w", err)
	}
	r.Keys, r.Data = int(end), l.share(l.data())
	for i := range end {
		putKey(key, i)
		t := l.e.Lock(ring.PartitionOf(key), now)
		item, ok := t.Find(key)
		switch {
		case !ok:
			r.Failed++
		case i%4 == 0:
			r.Deleted += int64(limitKeyLen + len(item.Value()))
			t.Delete(key)
		}
		t.Unlock()
	}
	_, r.Again, err = fill(end + 1)
	s := watch()
	r.MaxResident = l.share(s.maxResident)
	return errors.Join(err, s.err)
}
