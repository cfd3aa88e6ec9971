package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dunlin-cache/dunlin/bench/engine/sim"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

const (
	hitKeyLen   = 36
	hitOverhead = densityTarget // bytes per key beside key and value, from which the limits follow
	hitHeader   = 8             // bytes of a record without expiry that Sums.Values counts
	hitSamples  = 16            // times that the engine's records are counted
	hitMargin   = 0.01
)

// hitScale is the size of the runs.
type hitScale struct {
	keys, readsPerKey int
	parts             []float64 // sizes of the caches, as shares of the bytes of all keys
}

var hitScales = [sizes]hitScale{
	{1_000_000, 8, []float64{0.02, 0.1}},
	{200_000, 6, []float64{0.1}},
	{20_000, 3, []float64{0.1}},
}

const hitNotes = `Hits in 100 reads by one client; a miss is followed by a SET. %d reads of %d keys (and new ones where the set moves), of which
the first %d are not counted. Keys of %d bytes, values of %d. cache: part of the bytes that all keys take with %d beside each.
dunlin has that as its limit, and shards as a node of one loop, and redis-server too, beyond what it counts when empty. redis-server knows ages to the
second and forgets uses by the minute: in runs as short as these that is coarse.
LRU, S3-FIFO and Belady are simulated with the bytes of the records that dunlin held, each costing as much: they compare policies.
Keys held, in thousands, say what density is worth. The target is to be at least LRU and redis-server, and S3-FIFO less one point.

`

func printHits(ctx context.Context, out io.Writer, o options) error {
	s := hitScales[o.size]
	if o.keys > 0 {
		s.keys = o.keys
	}
	policies := []string{"allkeys-lru", "allkeys-lfu"}
	if err := tryRedis(); err != nil {
		fmt.Fprintf(out, "redis-server is left out: %v\n", err)
		policies = nil
	}
	reads := s.keys * s.readsPerKey
	fmt.Fprintf(out, hitNotes, reads, s.keys, int(sim.WarmUpPart*float64(reads)), hitKeyLen, sim.OneLength, hitOverhead)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "workload\tcache\tMiB\tdunlin\tLRU\tS3-FIFO\tBelady\tredis lru\tredis lfu\tkeys held\tredis lru's\ttarget\t")
	notes := ""
	for _, w := range sim.Workloads {
		if !strings.Contains(w.Name, o.rows) {
			continue
		}
		notes += fmt.Sprintf("%s: %s.\n", w.Name, w.Title)
		trace := w.Trace(s.keys, reads)
		all := float64(s.keys) * trace.MeanCost(hitKeyLen+hitOverhead)
		for _, part := range s.parts {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(o.say, "hits: %s, %v\n", w.Name, part)
			r := hitRun{trace: trace, limit: int64(part * all)}
			for _, policy := range policies {
				r.redis = append(r.redis, redisHits{policy: policy})
			}
			if err := r.all(); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
			fmt.Fprintf(t, "%s\t%.0f %%\t%.1f\t%s\n", w.Name, 100*part, float64(r.limit)/(1<<20), r.row())
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprint(out, "\n", notes)
	return nil
}

// hitRun is one row: one trace through all caches.
type hitRun struct {
	trace *sim.Trace
	limit int64

	dunlin, lru, s3fifo, belady float64
	held                        int64 // keys
	redis                       []redisHits
}

func (r *hitRun) all() error {
	records, err := r.runDunlin()
	if err != nil {
		return err
	}
	costs := r.trace.Costs(hitKeyLen + hitHeader)
	r.lru = sim.HitRatio(r.trace, sim.NewLRU(costs, records))
	r.s3fifo = sim.HitRatio(r.trace, sim.NewS3FIFO(costs, records))
	r.belady = sim.Optimum(r.trace, costs, records)
	for i := range r.redis {
		if err := r.redis[i].run(r.trace, r.limit); err != nil {
			return err
		}
	}
	return nil
}

// row returns the columns behind the limit.
func (r *hitRun) row() string {
	redis, held := "-\t-\t", "-\t"
	if r.redis != nil {
		redis = fmt.Sprintf("%.2f\t%.2f\t", 100*r.redis[0].ratio, 100*r.redis[1].ratio)
		held = fmt.Sprintf("%d\t", r.redis[0].held/1000)
	}
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f\t%s%d\t%s%s\t", 100*r.dunlin, 100*r.lru, 100*r.s3fifo, 100*r.belady, redis,
		r.held/1000, held, r.verdict())
}

func (r *hitRun) verdict() string {
	var missed []string
	reach := func(name string, ratio float64) {
		if r.dunlin < ratio {
			missed = append(missed, fmt.Sprintf("%s by %.2f", name, 100*(ratio-r.dunlin)))
		}
	}
	reach("LRU", r.lru)
	reach("S3-FIFO less 1", r.s3fifo-hitMargin)
	for _, h := range r.redis {
		reach(h.policy, h.ratio)
	}
	if missed == nil {
		return "reached"
	}
	return "NOT reached: " + strings.Join(missed, ", ")
}

// runDunlin returns how many bytes of records the engine held on average.
func (r *hitRun) runDunlin() (records int64, err error) {
	e, err := engine.New(engine.Config{MaxBytes: r.limit, Shards: shardsFor(r.limit)})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	c := dunlinCache{e: e, trace: r.trace, key: newKey(hitKeyLen), value: make([]byte, sim.MaxLength)}
	counted := len(r.trace.Keys) - r.trace.WarmUp
	hits, samples := 0, int64(0)
	for i, key := range r.trace.Keys {
		hit, err := c.read(key)
		if err != nil {
			return 0, err
		}
		if i < r.trace.WarmUp {
			continue
		}
		if hit {
			hits++
		}
		if (i-r.trace.WarmUp)%(counted/hitSamples) == 0 {
			st := e.Stats()
			records += st.Values
			r.held += st.Keys
			samples++
		}
	}
	r.dunlin = float64(hits) / float64(counted)
	r.held /= samples
	return records / samples, nil
}

// dunlinCache is the engine as a look-aside cache.
type dunlinCache struct {
	e          *engine.Engine
	trace      *sim.Trace
	key, value []byte
}

func (c *dunlinCache) read(key uint32) (hit bool, err error) {
	putKey(c.key, key)
	p := ring.PartitionOf(c.key)
	x := c.e.Lock(p, 0)
	_, hit = x.Find(c.key)
	x.Unlock()
	if hit {
		return true, nil
	}
	x = c.e.Lock(p, 0)
	defer x.Unlock()
	return false, x.Set(c.key, c.value[:c.trace.Values[key]], engine.TypeString, 0)
}

// shardsFor returns how many shards an engine of one loop has, or fewer if the limit is very low.
func shardsFor(limit int64) int {
	if limit < 2<<20 {
		return 1
	}
	return engine.ShardsFor(1, limit)
}
