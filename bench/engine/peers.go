package main

import (
	"hash/maphash"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/fastcache"
)

// mapStore stores keys as well-known Redis servers in Go do: in maps behind RWMutexes, with
// expiries in a second map, so that keys without an expiry do not pay for it.
type mapStore struct {
	seed   maphash.Seed
	now    int64
	shards [256]mapShard
}

type mapShard struct {
	mu     sync.RWMutex
	values map[string][]byte
	expiry map[string]int64
	_      [64]byte // puts the next lock on another cache line
}

// newMapStore lets the garbage collector use as much memory as the others may use, instead of twice
// the live memory. Where that is more, there are fewer collections.
func newMapStore(maxBytes int64) *mapStore {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(maxBytes)
	s := &mapStore{seed: maphash.MakeSeed(), now: time.Now().UnixMilli()}
	for i := range s.shards {
		s.shards[i].values, s.shards[i].expiry = map[string][]byte{}, map[string]int64{}
	}
	return s
}

func (s *mapStore) shard(key []byte) *mapShard {
	return &s.shards[maphash.Bytes(s.seed, key)%uint64(len(s.shards))]
}

func (s *mapStore) get(key, dst []byte) []byte {
	sh := s.shard(key)
	sh.mu.RLock()
	if at := sh.expiry[string(key)]; at == 0 || at > s.now {
		dst = append(dst, sh.values[string(key)]...)
	}
	sh.mu.RUnlock()
	return dst
}

func (s *mapStore) set(key, value []byte) {
	sh := s.shard(key)
	sh.mu.Lock()
	sh.values[string(key)] = append([]byte(nil), value...)
	delete(sh.expiry, string(key))
	sh.mu.Unlock()
}

func (s *mapStore) del(key []byte) {
	sh := s.shard(key)
	sh.mu.Lock()
	delete(sh.values, string(key))
	delete(sh.expiry, string(key))
	sh.mu.Unlock()
}

func (s *mapStore) expire(key []byte, at int64) {
	sh := s.shard(key)
	sh.mu.Lock()
	if _, ok := sh.values[string(key)]; ok {
		sh.expiry[string(key)] = at
	}
	sh.mu.Unlock()
}

func (s *mapStore) incr(key []byte) {
	sh := s.shard(key)
	sh.mu.Lock()
	value, ok := sh.values[string(key)]
	if !ok {
		panic("the counter is not there")
	}
	sh.values[string(key)] = strconv.AppendInt(nil, parseInt(value)+1, 10)
	sh.mu.Unlock()
}

func (s *mapStore) keys() (n int) {
	for i := range s.shards {
		n += len(s.shards[i].values)
	}
	return n
}

// fastStore is VictoriaMetrics/fastcache: hash buckets over rings of memory. It has no expiry and
// no commands that read and write at once. A deleted value keeps its memory, and the ring
// overwrites the oldest values.
type fastStore struct{ c *fastcache.Cache }

func newFastStore(maxBytes int64) fastStore { return fastStore{fastcache.New(int(maxBytes))} }

func (s fastStore) get(key, dst []byte) []byte { return s.c.Get(dst, key) }
func (s fastStore) set(key, value []byte)      { s.c.Set(key, value) }
func (s fastStore) del(key []byte)             { s.c.Del(key) }
func (fastStore) expire([]byte, int64)         { panic("BUG: fastcache has no expiry") }
func (fastStore) incr([]byte)                  { panic("BUG: fastcache has no counters") }

func (s fastStore) keys() int {
	var st fastcache.Stats
	s.c.UpdateStats(&st)
	return int(st.EntriesCount)
}
