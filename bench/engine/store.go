package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// store is what the contenders of the speed table have in common. They copy key and value, which
// may be changed after the call. Methods panic if the contender has no room, because it gets
// enough.
type store interface {
	get(key, dst []byte) []byte // appends a copy of the value to dst
	set(key, value []byte)
	del(key []byte)
	expire(key []byte, at int64) // in unix milliseconds
	incr(key []byte)             // a decimal number
	keys() int
}

// manyStore is a store that learns of several keys before it uses them, as a node's engine does
// with the keys of a pipeline.
type manyStore interface {
	getMany(keys [][]byte, dst []byte) (lost int) // copies each value over dst
	setMany(keys [][]byte, value []byte)
}

const manyAtOnce = 16

// oneByOne makes any other store a manyStore.
type oneByOne struct{ store }

func (s oneByOne) getMany(keys [][]byte, dst []byte) (lost int) {
	for _, key := range keys {
		if len(s.get(key, dst[:0])) == 0 {
			lost++
		}
	}
	return lost
}

func (s oneByOne) setMany(keys [][]byte, value []byte) {
	for _, key := range keys {
		s.set(key, value)
	}
}

// Contenders.
const (
	dunlin  = "dunlin"
	goMap   = "map"
	fastc   = "fastcache"
	harness = "harness" // stores nothing: the cost of measuring
)

var contenders = []string{dunlin, goMap, fastc, harness}

// openStore opens the contender of that name with maxBytes of memory.
func openStore(name string, maxBytes int64, cores int) (store, error) {
	switch name {
	case dunlin:
		e, err := engine.New(engine.Config{MaxBytes: maxBytes, Shards: engine.ShardsFor(cores, maxBytes)})
		return &engineStore{e: e, now: time.Now().UnixMilli()}, err
	case goMap:
		return newMapStore(maxBytes), nil
	case fastc:
		return newFastStore(maxBytes), nil
	case harness:
		return noStore{}, nil
	}
	return nil, fmt.Errorf("no contender %q", name)
}

// engineStore uses the engine as a node does: it computes the partition from the key, and each
// command is one Txn. All commands see the time of the start, because a node reads its clock once
// for many commands.
type engineStore struct {
	e   *engine.Engine
	now int64
}

func (s *engineStore) lock(key []byte) engine.Txn { return s.e.Lock(ring.PartitionOf(key), s.now) }

func (s *engineStore) get(key, dst []byte) []byte {
	t := s.lock(key)
	item, ok := t.Find(key)
	if ok {
		dst = append(dst, item.Value()...)
	}
	t.Unlock()
	return dst
}

func (s *engineStore) set(key, value []byte) {
	t := s.lock(key)
	err := t.Set(key, value, engine.TypeString, 0)
	t.Unlock()
	if err != nil {
		panic(err)
	}
}

func (s *engineStore) del(key []byte) {
	t := s.lock(key)
	t.Delete(key)
	t.Unlock()
}

// expire looks up the key before it changes it, as the node's EXPIRE does for its conditions.
func (s *engineStore) expire(key []byte, at int64) {
	t := s.lock(key)
	if _, ok := t.Find(key); ok && !t.SetExpire(key, at) {
		panic(engine.ErrMemory)
	}
	t.Unlock()
}

func (s *engineStore) incr(key []byte) {
	t := s.lock(key)
	item, ok := t.Find(key)
	if !ok {
		panic("the counter is not there")
	}
	var buf [20]byte
	text := strconv.AppendInt(buf[:0], parseInt(item.Value())+1, 10)
	err := t.Set(key, text, engine.TypeString, item.ExpireAt())
	t.Unlock()
	if err != nil {
		panic(err)
	}
}

// touch computes the partitions, once for both uses.
func (s *engineStore) touch(probes []engine.Probe, keys [][]byte) []engine.Probe {
	for i, key := range keys {
		probes[i] = engine.Probe{Section: ring.PartitionOf(key), Key: key}
	}
	s.e.Touch(probes[:len(keys)])
	return probes[:len(keys)]
}

func (s *engineStore) getMany(keys [][]byte, dst []byte) (lost int) {
	var probes [manyAtOnce]engine.Probe
	for _, p := range s.touch(probes[:], keys) {
		t := s.e.Lock(p.Section, s.now)
		if item, ok := t.Find(p.Key); ok {
			_ = append(dst[:0], item.Value()...)
		} else {
			lost++
		}
		t.Unlock()
	}
	return lost
}

func (s *engineStore) setMany(keys [][]byte, value []byte) {
	var probes [manyAtOnce]engine.Probe
	for _, p := range s.touch(probes[:], keys) {
		t := s.e.Lock(p.Section, s.now)
		err := t.Set(p.Key, value, engine.TypeString, 0)
		t.Unlock()
		if err != nil {
			panic(err)
		}
	}
}

func (s *engineStore) keys() int { return sumCounts(s.e) }

// parseInt reads digits. strconv.ParseInt needs a string.
func parseInt(digits []byte) (n int64) {
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	return n
}

// noStore stores nothing.
type noStore struct{}

func (noStore) get(_, dst []byte) []byte { return append(dst, 0) }
func (noStore) set(_, _ []byte)          {}
func (noStore) del([]byte)               {}
func (noStore) expire([]byte, int64)     {}
func (noStore) incr([]byte)              {}
func (noStore) keys() int                { return 0 }
