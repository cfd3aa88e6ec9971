package engine

import (
	"bytes"
	"fmt"
	"testing"
)

// deny makes the system commit no more memory to the engine, or commit it again.
func (e *Engine) deny(yes bool) {
	for _, a := range []*arena{&e.cells.arena, &e.pool.table, &e.ghosts, &e.feeds.arena, &e.large.arena, &e.large.table} {
		a.space.Deny(yes)
	}
}

// TestNoMoreIsCommitted: where the system commits no more memory to the process, values are refused,
// or others make room. Nothing faults, nothing stays charged, and what is there stays as it is.
func TestNoMoreIsCommitted(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	large := pattern(100_000, 1)
	mustSet(t, e, 1, "large", large)
	for i := range 1000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint(i), large[:100])
	}
	e.deny(true)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s has memory that nobody committed", what)
		}
	}
	set := func(p uint16, key string, value []byte) (err error) {
		with(e, p, 1, func(x Txn) { err = x.Set([]byte(key), value, TypeString, 0) })
		return err
	}
	used := e.Used()
	for _, n := range []int{300_000, 3 << 20, 40 << 20} {
		refused(fmt.Sprint("a value of ", n), set(2, "huge", make([]byte, n)))
		st, err := e.Stage(0, []byte("staged"), n)
		if err == nil {
			err = st.Skip(n)
			st.Discard()
		}
		refused(fmt.Sprint("a staged value of ", n), err)
		with(e, 1, 1, func(x Txn) {
			_, err = x.Resize([]byte("large"), n)
		})
		refused(fmt.Sprint("a value that grows to ", n), err)
	}
	if e.Used() > used {
		t.Errorf("%d bytes are used after what was refused, %d before", e.Used(), used)
	}
	with(e, 1, 1, func(x Txn) {
		if item, ok := x.Find([]byte("large")); !ok || !bytes.Equal(item.Value(), large) {
			t.Error("a value has changed that could not grow")
		}
	})
	stored := 0
	for i := range 50_000 {
		if set(uint16(i%Partitions), fmt.Sprint("new", i), large[:100]) == nil {
			stored++
		}
	}
	if stored == 0 || stored == 50_000 && e.Stats().Keys > 40_000 {
		t.Errorf("%d small values were stored, %d keys are there", stored, e.Stats().Keys)
	}
	e.checkSums(t)

	e.deny(false)
	for i := range 50_000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint("new", i), large[:100])
	}
	mustSet(t, e, 2, "huge", make([]byte, 20<<20))
	e.checkSums(t)
	e.Reset(1)
	e.checkSums(t)
}

// TestResetUncommits: after a Reset the system has committed no more to the engine than before.
func TestResetUncommits(t *testing.T) {
	oneGoroutine(t)
	e := open(t, Config{MaxBytes: 64 << 20, Shards: 4})
	mustSet(t, e, 2, "large", make([]byte, 30<<20))
	for i := range 200_000 {
		mustSet(t, e, uint16(i%Partitions), fmt.Sprint("new", i), make([]byte, 100))
	}
	e.Reset(1)
	for name, a := range map[string]*arena{"cells": &e.cells.arena, "large": &e.large.arena, "ghosts": &e.ghosts} {
		if n, most := a.space.Writable(), max(minStep, cap(a.mem)/keptShare); n > most {
			t.Errorf("%s: %d bytes are writable, want at most %d", name, n, most)
		}
	}
}
