package main

import (
	"strings"
	"testing"

	"github.com/dunlin-cache/dunlin/bench/engine/sim"
)

// TestHitsWithRoom checks that all caches count the same hits if nothing is evicted, even with keys
// that occur twice in a batch.
func TestHitsWithRoom(t *testing.T) {
	const room = 64 << 20
	trace := sim.Workloads[0].Trace(300, 5000)
	want := sim.HitRatio(trace, sim.NewLRU(trace.Costs(0), room))
	r := hitRun{trace: trace, limit: room}
	records, err := r.runDunlin()
	if err != nil {
		t.Fatal(err)
	}
	if r.dunlin != want {
		t.Errorf("dunlin: %v, want %v", r.dunlin, want)
	}
	if keys := records / (hitKeyLen + hitHeader + sim.OneLength); keys != r.held || keys < 250 || keys > 300 {
		t.Errorf("%d bytes of records of %d keys", records, r.held)
	}
	if err := tryRedis(); err != nil {
		t.Skip(err)
	}
	h := redisHits{policy: "allkeys-lru"}
	if err := h.run(trace, room); err != nil {
		t.Fatal(err)
	}
	if h.ratio != want || h.held < 250 || h.held > 300 {
		t.Errorf("redis-server: %v with %d keys, want %v", h.ratio, h.held, want)
	}
}

func TestHitVerdict(t *testing.T) {
	r := hitRun{dunlin: 0.80, lru: 0.79, s3fifo: 0.805,
		redis: []redisHits{{policy: "allkeys-lru", ratio: 0.8}, {policy: "allkeys-lfu", ratio: 0.7}}}
	if got := r.verdict(); got != "reached" {
		t.Errorf("verdict %q", got)
	}
	r.lru, r.s3fifo, r.redis[1].ratio = 0.81, 0.83, 0.9
	if got, want := r.verdict(), "NOT reached: LRU by 1.00, S3-FIFO less 1 by 2.00, allkeys-lfu by 10.00"; got != want {
		t.Errorf("verdict %q, want %q", got, want)
	}
	if row := r.row(); strings.Count(row, "\t") != 9 {
		t.Errorf("row %q", row)
	}
}
