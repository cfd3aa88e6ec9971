package main

import (
	"fmt"
	"strconv"

	"github.com/dunlin-cache/dunlin/bench/engine/sim"
)

const (
	// How many reads go to redis-server at once; fewer if their values are long, because
	// redis-server counts waiting replies as memory.
	redisReads      = 64
	redisReplyBytes = 32 << 10
)

// tryRedis returns why there is no redis-server, or nil.
func tryRedis() error {
	server, err := startRedis()
	if err == nil {
		server.close()
	}
	return err
}

// redisHits has the result of a trace at a redis-server.
type redisHits struct {
	policy string
	ratio  float64
	held   int64 // keys at the end
}

func (h *redisHits) run(trace *sim.Trace, limit int64) error {
	server, err := startRedis("--maxmemory-policy", h.policy)
	if err != nil {
		return err
	}
	defer server.close()
	c, err := server.dial()
	if err != nil {
		return err
	}
	defer c.close()
	empty, err := c.usedMemory()
	if err != nil {
		return err
	}
	if _, err := c.do("CONFIG", "SET", "maxmemory", strconv.FormatInt(empty+limit, 10)); err != nil {
		return err
	}
	r := redisReader{c: c, trace: trace, key: newKey(hitKeyLen), value: make([]byte, sim.MaxLength),
		written: make([]int32, len(trace.Values))}
	hits := 0
	for from := 0; from < len(trace.Keys); from += r.batch {
		if err := r.read(from); err != nil {
			return err
		}
		for i, hit := range r.hit[:r.batch] {
			if hit && from+i >= trace.WarmUp {
				hits++
			}
		}
	}
	h.ratio = float64(hits) / float64(len(trace.Keys)-trace.WarmUp)
	size, err := c.do("DBSIZE")
	if err != nil {
		return err
	}
	h.held, err = strconv.ParseInt(size, 10, 64)
	return err
}

// redisReader reads in batches that give the same ratio as single reads.
type redisReader struct {
	c          *redisClient
	trace      *sim.Trace
	key, value []byte
	batch      int              // reads of the last batch
	hit        [redisReads]bool // which of these reads hit
	number     int32            // of the batch
	written    []int32          // the last batch in which each key was written
}

// read sends the reads from one on, and then the writes of those that missed. A key that is read
// again before its write would find it if each read waited for the one before: it counts as a hit
// and is read behind the write.
func (r *redisReader) read(from int) error {
	keys := r.take(from)
	for _, key := range keys {
		r.get(key)
	}
	if err := r.flush(); err != nil {
		return err
	}
	for i := range keys {
		reply, err := r.c.receive()
		if err != nil {
			return err
		}
		r.hit[i] = reply != nil
	}
	r.number++
	sent := 0
	for i, key := range keys {
		if r.hit[i] {
			continue
		}
		sent++
		if r.written[key] == r.number {
			r.hit[i] = true
			r.get(key)
			continue
		}
		r.written[key] = r.number
		putKey(r.key, key)
		r.c.send([]byte("SET"), r.key, r.value[:r.trace.Values[key]])
	}
	if err := r.flush(); err != nil {
		return err
	}
	for range sent {
		if _, err := r.c.receive(); err != nil {
			return err
		}
	}
	return nil
}

// take returns the next batch.
func (r *redisReader) take(from int) []uint32 {
	bytes := 0
	r.batch = 0
	for from+r.batch < len(r.trace.Keys) && r.batch < redisReads && bytes < redisReplyBytes {
		bytes += int(r.trace.Values[r.trace.Keys[from+r.batch]])
		r.batch++
	}
	return r.trace.Keys[from : from+r.batch]
}

func (r *redisReader) get(key uint32) {
	putKey(r.key, key)
	r.c.send([]byte("GET"), r.key)
}

func (r *redisReader) flush() error {
	if err := r.c.flush(); err != nil {
		return fmt.Errorf("cannot write to redis-server: %w", err)
	}
	return nil
}
