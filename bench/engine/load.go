package main

import (
	"cmp"
	"encoding/gob"
	"fmt"
	"os"
	"runtime"
	"time"
)

func init() { cases["speed"] = speedCase }

// op is what a row of the speed table measures.
type op int

const (
	opInsert op = iota
	opGet
	opGetMany
	opDel
	opSetSame
	opSetMany
	opSetOther
	opExpireFirst
	opExpireAgain
	opIncr
)

var opNames = [...]string{"SET insert", "GET", "GET of 16", "DEL", "SET same size", "SET of 16",
	"SET other size", "EXPIRE first", "EXPIRE again", "INCR"}

func (o op) String() string { return opNames[o] }

// speedOpen is the first question of a case: open an empty contender.
type speedOpen struct {
	Contender        string
	Keys             int
	KeyLen, ValueLen int
	MaxBytes         int64
	Accesses         int // keys in a sequence, which is repeated
}

// speedTask is each further question: repeat an operation and measure it.
type speedTask struct {
	Op       op
	Zipf     bool // else uniform
	Workers  int
	From, To int // of opInsert: key numbers; of others: To is how many operations
	Untimed  bool
	Counters bool // of opInsert: values are numbers
	Expire   bool // of opInsert: set expiries instead
	Settle   bool // instead of all else: wait until memory has settled
}

// speedResult is the answer to both.
type speedResult struct {
	Nanos    float64 // per operation: elapsed time divided by the operations of all workers
	Allocs   float64 // per operation
	Lost     int     // operations that did not find their key
	Keys     int
	Resident int64
}

// speedCase is one contender in a process of its own.
func speedCase(in *gob.Decoder, out *gob.Encoder) error {
	var q speedOpen
	if err := in.Decode(&q); err != nil {
		return err
	}
	l, err := newLoad(q, runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	result := speedResult{}
	for {
		if result.Resident, err = residentBytes(0); err != nil {
			return err
		}
		if err := out.Encode(result); err != nil {
			return err
		}
		var t speedTask
		if err := in.Decode(&t); err != nil {
			return err // io.EOF: the parent is done
		}
		if result, err = l.do(t); err != nil {
			return err
		}
	}
}

// load is a contender with the goroutines that use it.
type load struct {
	store   store
	many    manyStore // the same contender
	q       speedOpen
	orders  [2][]uint32 // uniform, Zipf
	workers []worker
}

// worker has what belongs to one goroutine.
type worker struct {
	l          *load
	key, value []byte
	keys       [manyAtOnce][]byte
	dst        []byte
	at         [2]int // place in the sequences
	step       uint32 // of the lengths of values
	lost       int
	took       time.Duration // the last task
	apart      time.Duration // part of took: operations that are measured separately
	_          [64]byte      // so that workers share no cache line
}

const (
	// undoAtOnce operations are measured together, and then undone.
	undoAtOnce = 64
	// This part of a task runs unmeasured first, because another process has used the caches.
	warmPart = 8
	counter  = "10000000" // initial value of counters, so large that their length stays the same
)

func newLoad(q speedOpen, cores int) (*load, error) {
	s, err := openStore(q.Contender, q.MaxBytes, cores)
	if err != nil {
		return nil, err
	}
	l := &load{store: s, q: q, workers: make([]worker, cores)}
	var ok bool
	if l.many, ok = s.(manyStore); !ok {
		l.many = oneByOne{s}
	}
	for i := range l.orders {
		l.orders[i] = accesses(q.Accesses, q.Keys, i == 1, 7)
	}
	for w := range l.workers {
		at := w * q.Accesses / cores
		l.workers[w] = worker{l: l, key: newKey(q.KeyLen), value: make([]byte, 2*q.ValueLen),
			dst: make([]byte, 0, 2*q.ValueLen), at: [2]int{at, at}}
		for i := range l.workers[w].keys {
			l.workers[w].keys[i] = newKey(q.KeyLen)
		}
	}
	return l, nil
}

// do runs a task.
func (l *load) do(t speedTask) (r speedResult, err error) {
	if t.Settle {
		settle()
		return r, nil
	}
	if t.Op != opInsert && !t.Untimed {
		warm := t
		warm.To, warm.Untimed = t.To/warmPart, true
		if _, err := l.do(warm); err != nil {
			return r, err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = split(t.Workers, t.To-t.From, func(w, from, to int) error { return l.workers[w].do(t, t.From+from, t.From+to) })
	runtime.ReadMemStats(&after)
	if t.Untimed || err != nil {
		return r, err
	}
	took := time.Duration(0)
	for w := range t.Workers {
		took += l.workers[w].took
		r.Lost += l.workers[w].lost
	}
	n := float64(t.To - t.From)
	r.Nanos = float64(took) / float64(t.Workers) / n
	r.Allocs, r.Keys = float64(after.Mallocs-before.Mallocs)/n, l.store.keys()
	return r, nil
}

// do runs the worker's part of a task. It subtracts the time in which other programs had its
// processor, in proportion to what is measured: that time would drown all figures in noise.
func (w *worker) do(t speedTask, from, to int) error {
	runtime.LockOSThread() // waitedForCPU reads the waits of a thread
	defer runtime.UnlockOSThread()
	w.apart, w.lost = 0, 0
	waited, err1 := waitedForCPU()
	begin := time.Now()
	if t.Op == opInsert {
		w.pass(t, from, to)
	} else {
		w.walk(t, to-from)
	}
	w.took = time.Since(begin)
	waitedSince, err2 := waitedForCPU()
	share := 1 - float64(waitedSince-waited)/float64(w.took)
	if w.apart > 0 {
		w.took = w.apart
	}
	w.took = time.Duration(float64(w.took) * share)
	return cmp.Or(err1, err2)
}

// settle waits while the process still gets more huge pages: the engine makes them in the
// background, for seconds.
func settle() {
	const period = 200 * time.Millisecond
	for last := ""; ; {
		now := field("/proc/self/smaps_rollup", "AnonHugePages")
		if now == last {
			return
		}
		last = now
		time.Sleep(period)
	}
}

// waitedForCPU returns how long this thread could have run but waited for a processor.
func waitedForCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0, fmt.Errorf("cannot read how long a thread waited: %w", err)
	}
	var ran, waited int64
	if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
		return 0, fmt.Errorf("cannot read how long a thread waited in %q: %w", text, err)
	}
	return time.Duration(waited), nil
}

// walk does n operations on keys of a sequence.
func (w *worker) walk(t speedTask, n int) {
	for n > 0 {
		keys := w.next(t.Zipf, n)
		n -= len(keys)
		switch t.Op {
		case opDel, opExpireFirst:
			for len(keys) > 0 {
				some := keys[:min(undoAtOnce, len(keys))]
				keys = keys[len(some):]
				begin := time.Now()
				w.run(t.Op, some)
				w.apart += time.Since(begin)
				w.run(opSetSame, some)
			}
		default:
			w.run(t.Op, keys)
		}
	}
}

// next returns the next keys of a sequence, n at most.
func (w *worker) next(zipfian bool, n int) []uint32 {
	which := 0
	if zipfian {
		which = 1
	}
	order := w.l.orders[which]
	at := w.at[which] % len(order)
	keys := order[at:min(at+n, len(order))]
	w.at[which] = at + len(keys)
	return keys
}

// run does one operation on each key. Each operation has a loop of its own, so that none pays for
// the choice.
func (w *worker) run(o op, keys []uint32) {
	s, key, same := w.l.store, w.key, w.value[:w.l.q.ValueLen]
	at := time.Now().Add(time.Hour).UnixMilli()
	switch o {
	case opGet:
		for _, i := range keys {
			putKey(key, i)
			if w.dst = s.get(key, w.dst[:0]); len(w.dst) == 0 {
				w.lost++
			}
		}
	case opGetMany, opSetMany:
		for len(keys) > 0 {
			some := w.keys[:min(manyAtOnce, len(keys))]
			for k := range some {
				putKey(some[k], keys[k])
			}
			keys = keys[len(some):]
			if o == opSetMany {
				w.l.many.setMany(some, same)
			} else {
				w.lost += w.l.many.getMany(some, w.dst)
			}
		}
	case opSetSame:
		for _, i := range keys {
			putKey(key, i)
			s.set(key, same)
		}
	case opSetOther:
		for _, i := range keys {
			putKey(key, i)
			s.set(key, w.value[:w.otherLen()])
		}
	case opDel:
		for _, i := range keys {
			putKey(key, i)
			s.del(key)
		}
	case opExpireFirst, opExpireAgain:
		for _, i := range keys {
			putKey(key, i)
			s.expire(key, at)
		}
	case opIncr:
		for _, i := range keys {
			putKey(key, i)
			s.incr(key)
		}
	default:
		panic(fmt.Sprintf("BUG: no loop for %v", o))
	}
}

// otherLen returns a length between half and one and a half times ValueLen, a different one each
// time.
func (w *worker) otherLen() int {
	w.step += 0x9E3779B9
	n := uint64(w.l.q.ValueLen)
	return int(n/2 + uint64(w.step)*(n+1)>>32)
}

// pass writes every key once.
func (w *worker) pass(t speedTask, from, to int) {
	s, key, value := w.l.store, w.key, w.value[:w.l.q.ValueLen]
	if t.Counters {
		value = []byte(counter)
	}
	at := time.Now().Add(time.Hour).UnixMilli()
	for i := from; i < to; i++ {
		putKey(key, uint32(i))
		if t.Expire {
			s.expire(key, at)
		} else {
			s.set(key, value)
		}
	}
}
