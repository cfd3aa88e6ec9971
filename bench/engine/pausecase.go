package main

import (
	"encoding/gob"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

func init() { cases["pauses"] = pauseCase }

// disturbance is an activity that may make commands wait.
type disturbance struct {
	name, title string
	run         func(r *rig) error // until r.done is closed
}

var disturbances = []disturbance{
	{"eviction", "eviction, expiry and the sweep alone", func(r *rig) error { <-r.done; return nil }},
	{"growth", "an engine that was empty, with room for all, and half of the commands new keys", func(r *rig) error { <-r.done; return nil }},
	{"writer", "another thread that stores keys as fast as it can", (*rig).writes},
	{"flush", "all partitions dropped, and filled again", (*rig).flushes},
	{"limit", "the limit lowered to half and raised again, and filled again", (*rig).limits},
	{"large", "the large value stored over small ones, read, deleted, and small ones instead", (*rig).larges},
	{"collection", "Go's garbage collector ten times a second", (*rig).collections},
}

// rig is the state of a run.
type rig struct {
	q      pauseQuestion
	e      *engine.Engine
	pacers int
	window uint32 // commands are about this many of the youngest keys
	fresh  uint64 // of 1024 commands: SETs of new keys
	begin  time.Time
	done   chan struct{} // closed when the pacers are ready
	events []pauseEvent
}

// pauseCase has as many pacers as a node has loops: one processor is left for the disturbance.
func pauseCase(in *gob.Decoder, out *gob.Encoder) error {
	r := &rig{done: make(chan struct{}), fresh: 205}
	if err := in.Decode(&r.q); err != nil {
		return err
	}
	r.window = uint32(r.q.Keys)
	r.pacers = max(1, runtime.NumCPU()-1)
	runtime.GOMAXPROCS(r.pacers + 2)
	i := slices.IndexFunc(disturbances, func(d disturbance) bool { return d.name == r.q.Disturbance })
	if err := r.open(); err != nil {
		return err
	}
	a, err := r.run(disturbances[i].run)
	if err != nil {
		return err
	}
	return out.Encode(a)
}

// open fills the engine beyond its limit. A quarter of the keys expire during the run or soon after
// it.
func (r *rig) open() (err error) {
	c := engine.Config{MaxBytes: r.q.MaxBytes, Shards: engine.ShardsFor(r.pacers, r.q.MaxBytes)}
	growth := r.q.Disturbance == "growth"
	if growth {
		c.MaxBytes *= 2
	}
	if r.e, err = engine.New(c); err != nil {
		return err
	}
	if growth {
		r.q.Keys, r.window, r.fresh = 1, math.MaxUint32, 512
		return nil
	}
	return split(runtime.NumCPU(), r.q.Keys, func(w, from, to int) error { return r.fill(from, to) })
}

// fill writes the keys from..to, with which the pacers begin.
func (r *rig) fill(from, to int) error {
	key, value := newKey(16), make([]byte, 64)
	now := time.Now().UnixMilli()
	dice := rand.New(rand.NewPCG(5, uint64(from)))
	for i := from; i < to; i++ {
		if i&1023 == 0 && r.ended() {
			return nil
		}
		at := int64(0)
		if i&3 == 0 {
			at = now + 2000 + dice.Int64N(2*r.q.Length.Milliseconds()+1)
		}
		putKey(key, uint32(i))
		t := r.e.Lock(ring.PartitionOf(key), now)
		err := t.Set(key, value, engine.TypeString, at)
		t.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// run starts the pacers and the disturbance, and waits for both.
func (r *rig) run(disturb func(*rig) error) (a pauseAnswer, err error) {
	debug.FreeOSMemory()
	pacers := make([]pacer, r.pacers)
	disturbed := make(chan error)
	go func() { disturbed <- disturb(r) }()
	r.begin = time.Now()
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		r.e.KeepSwept(r.done, func() int64 { return time.Now().UnixMilli() })
	}()
	err = split(r.pacers, r.pacers, func(w, _, _ int) error {
		p := &pacers[w]
		p.rig, p.number, p.interval = r, w, time.Second*time.Duration(r.pacers)/time.Duration(r.q.Rate)
		p.r, p.key, p.value = rand.NewPCG(uint64(w), 9), newKey(16), make([]byte, 128)
		return p.run()
	})
	close(r.done)
	err = errors.Join(err, <-disturbed)
	<-swept
	gets, hits := 1, 0
	for i := range pacers {
		a.All.Merge(&pacers[i].all)
		a.Own.Merge(&pacers[i].own)
		gets += pacers[i].gets
		hits += pacers[i].hits
	}
	a.Hit, a.Events = float64(hits)/float64(gets), r.events
	a.readRuntime()
	return a, err
}

func (r *rig) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// pause waits, and returns false when the run has ended.
func (r *rig) pause(d time.Duration) bool {
	select {
	case <-r.done:
		return false
	case <-time.After(d):
		return true
	}
}

// step calls f and records how long it took.
func (r *rig) step(name string, f func()) {
	i := slices.IndexFunc(r.events, func(e pauseEvent) bool { return e.Name == name })
	if i < 0 {
		i = len(r.events)
		r.events = append(r.events, pauseEvent{Name: name})
	}
	begin := time.Now()
	f()
	e := &r.events[i]
	e.Count++
	e.Longest = max(e.Longest, time.Since(begin))
}

func (r *rig) writes() (err error) {
	for !r.ended() && err == nil {
		err = r.fill(0, r.q.Keys)
	}
	return err
}

func (r *rig) flushes() error {
	for r.pause(r.q.Length / 20) {
		r.step("flush", func() {
			for p := range uint16(engine.Partitions) {
				r.e.Drop(p)
			}
		})
		if err := r.fill(0, r.q.Keys); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) limits() (err error) {
	for r.pause(r.q.Length/20) && err == nil {
		r.step("lowering", func() { err = r.e.SetMaxBytes(r.q.MaxBytes / 2) })
		if !r.pause(r.q.Length / 20) {
			break
		}
		r.step("raising", func() { err = errors.Join(err, r.e.SetMaxBytes(r.q.MaxBytes)) })
		err = errors.Join(err, r.fill(0, r.q.Keys))
	}
	return err
}

// larges uses the large value as a node does: it writes and reads it in pieces and holds a lock
// only for moments.
func (r *rig) larges() (err error) {
	const piece = 64 << 10
	key, buf := []byte("large"), make([]byte, piece)
	p, now := ring.PartitionOf(key), time.Now().UnixMilli()
	for r.pause(r.q.Length/20) && err == nil {
		r.step("SET", func() { err = r.storeLarge(p, now, key, buf) })
		r.step("GET", func() {
			t := r.e.Lock(p, now)
			item, _ := t.Find(key)
			pin, ok := t.Pin(item)
			t.Unlock()
			if !ok {
				return // evicted already
			}
			for v := pin.Value(); len(v) > 0; v = v[copy(buf, v):] {
			}
			pin.Release()
		})
		r.step("DEL", func() {
			t := r.e.Lock(p, now)
			t.Delete(key)
			t.Unlock()
		})
		err = errors.Join(err, r.fill(0, r.q.Keys))
	}
	return err
}

func (r *rig) storeLarge(p uint16, now int64, key, piece []byte) error {
	st, err := r.e.Stage(p, key, r.q.LargeLen)
	if err != nil {
		return err
	}
	for st.Left() > 0 {
		if err := st.Write(piece[:min(len(piece), st.Left())]); err != nil {
			st.Discard()
			return err
		}
	}
	t := r.e.Lock(p, now)
	defer t.Unlock()
	return t.SetStaged(&st, engine.TypeString, 0)
}

func (r *rig) collections() error {
	for r.pause(r.q.Length / 120) {
		r.step("collection", runtime.GC)
	}
	return nil
}

// readRuntime asks Go about its heap and its pauses since the start of the process.
func (a *pauseAnswer) readRuntime() {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	a.Heap = int64(s[0].Value.Uint64() - s[1].Value.Uint64())
	a.GCs = int(s[2].Value.Uint64())
	h := s[3].Value.Float64Histogram()
	total, seen := uint64(0), uint64(0)
	for _, n := range h.Counts {
		total += n
	}
	for i, n := range h.Counts {
		end := h.Buckets[i+1]
		if math.IsInf(end, 1) {
			end = h.Buckets[i]
		}
		if seen*100 < total*99 && (seen+n)*100 >= total*99 {
			a.GCPause99 = time.Duration(end * 1e9)
		}
		if seen += n; n > 0 {
			a.GCPause = time.Duration(end * 1e9)
		}
	}
}
