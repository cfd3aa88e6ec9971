package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
)

// checkedValue fills buf with bytes that follow from the key and a number, so that a reader can
// tell whether it was given one value, whole, and this key's. buf is returned.
func checkedValue(buf []byte, key uint64, number uint32) []byte {
	if len(buf) < 8 {
		return buf
	}
	binary.LittleEndian.PutUint32(buf, number)
	for i := 4; i < len(buf); i++ {
		buf[i] = byte(uint64(number) + key + uint64(i))
	}
	return buf
}

func checkValue(value []byte, key uint64) bool {
	if len(value) < 8 {
		return true
	}
	number := binary.LittleEndian.Uint32(value)
	for i := 4; i < len(value); i++ {
		if value[i] != byte(uint64(number)+key+uint64(i)) {
			return false
		}
	}
	return true
}

// TestConcurrentUsers lets several goroutines do everything at once on an engine that is always
// full, so that they take memory from each other's shards. No value may ever be torn, another
// key's, or over the limit.
func TestConcurrentUsers(t *testing.T) {
	const users, steps = 4, 15_000
	e := open(t, Config{MaxBytes: 6 << 20, Shards: 8})
	var wg sync.WaitGroup
	for u := range users {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(u)))
			buf := make([]byte, 300_000)
			for range steps {
				concurrentStep(t, e, r, buf)
			}
		})
	}
	wg.Wait()
	e.checkSums(t)
}

func concurrentStep(t *testing.T, e *Engine, r *rand.Rand, buf []byte) {
	p, number := Section(uint16(r.IntN(64)), uint8(r.IntN(3)*7)), uint64(r.IntN(3000))
	key := binary.LittleEndian.AppendUint64(nil, number)
	switch op := r.IntN(1011); {
	case op < 500:
		n := r.IntN(400)
		if op < 3 {
			n = r.IntN(len(buf))
		}
		value := checkedValue(buf[:n], number, r.Uint32())
		with(e, p, 1, func(x Txn) {
			if err := x.Set(key, value, TypeString, int64(op%2)*1000); err != nil {
				t.Errorf("cannot set %d bytes: %v", n, err)
			}
		})
	case op < 900:
		e.Touch([]Probe{{p, key}, {uint16(r.IntN(64)), key}})
		with(e, p, 1, func(x Txn) {
			if item, ok := x.Find(key); ok && !checkValue(item.Value(), number) {
				t.Errorf("a torn value of key %d", number)
			}
		})
	case op < 980:
		with(e, p, 1, func(x Txn) { x.Delete(key) })
	case op < 990:
		for cursor, done := uint64(0), false; !done; {
			cursor, done = e.Walk(p, cursor, 100, 1, func(item Item) bool {
				return checkValue(item.Value(), binary.LittleEndian.Uint64(item.Key()))
			})
		}
	case op < 997:
		e.Sweep(int64(r.IntN(2))*1001, 10)
	case op < 998:
		e.Drop(PartitionOf(p))
	case op < 999:
		e.Clear(p)
	case op < 1010:
		concurrentLarge(t, e, r, buf, p, number)
	default:
		if st := e.Stats(); st.Used > st.Max {
			t.Errorf("%d bytes are used of %d", st.Used, st.Max)
		}
		if r.IntN(4) == 0 {
			e.Reset(r.Uint64())
		}
	}
}

// concurrentLarge stages a value, mostly to publish it, and reads one from a pin without the lock.
func concurrentLarge(t *testing.T, e *Engine, r *rand.Rand, buf []byte, p uint16, number uint64) {
	number %= 10
	key := binary.LittleEndian.AppendUint64([]byte("large"), number)
	value := checkedValue(buf[:10_000+r.IntN(len(buf)-10_000)], number, r.Uint32())
	if st, err := e.Stage(p, key, len(value)); err == nil {
		for err == nil && st.Left() > 0 {
			err = st.Write(value[len(value)-st.Left():][:min(st.Left(), 70_000)])
		}
		x := e.Lock(p, 1)
		if err != nil || r.IntN(4) == 0 || x.SetStaged(&st, TypeString, 0) != nil {
			st.Discard()
		}
		x.Unlock()
	}
	var pin Pin
	with(e, p, 1, func(x Txn) {
		if item, ok := x.Find(key); ok {
			pin, _ = x.Pin(item)
		}
	})
	if pin.Live() {
		if !checkValue(pin.Value(), number) {
			t.Errorf("a torn pinned value of key %d", number)
		}
		pin.Release()
	}
}
