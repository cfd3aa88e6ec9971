package keys

import (
	"context"
	"slices"
	"unsafe"

	"github.com/dunlin-cache/dunlin/internal/cluster"
	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// Commands about the keys of slots. The engine knows partitions only, so a goroutine looks at all keys of
// the slots' partitions.

const slotsPerPartition = ring.Slots / ring.Partitions

// slotsCounted: CLUSTER COUNTKEYSINSLOT slot, CLUSTER SLOT-STATS SLOTSRANGE first last, and ORDERBY
// KEY-COUNT [LIMIT n] [ASC | DESC]. count makes the reply of the figures.
func slotsCounted(count func(r *exec.Request, q *cluster.SlotQuery) slotReply) exec.Handler {
	return func(r *exec.Request) {
		q, refusal := cluster.ParseSlotQuery(r.Cmd, r.Args)
		if refusal != "" {
			r.Fail(refusal)
			return
		}
		e, heap, now, answer, placement := r.Engine, r.Heap, r.Now, count(r, &q), r.Placement
		databases := []uint8{r.Database}
		if r.Cmd.ID == command.ClusterSlotStats { // which is about all of a slot
			databases = allDatabases
		}
		r.Keyspace.CoverLater(func(ctx context.Context, covered *ring.PartitionSet, to *exec.Gathered) {
			size := int64(q.Last-q.First+1) * slotKeysBytes
			if !heap.Charge(size) {
				to.Head = resp.AppendError(nil, exec.ErrOOM)
				return
			}
			defer heap.Refund(size)
			all, err := countSlots(ctx, e, placement, databases, covered, &q, now)
			if err != nil {
				to.Head = resp.AppendError(nil, exec.ErrBusy)
				return
			}
			if !answer(heap, to, all) {
				to.End()
				to.Head = resp.AppendError(nil, exec.ErrOOM)
			}
		})
	}
}

// slotReply makes the reply of the figures. It reports false if there is no memory.
type slotReply func(heap exec.Heap, to *exec.Gathered, all []cluster.SlotKeys) (ok bool)

const slotKeysBytes = int64(unsafe.Sizeof(cluster.SlotKeys{}))

var allDatabases = func() (all []uint8) {
	for database := range uint8(engine.Databases) {
		all = append(all, database)
	}
	return all
}()

// countSlots counts the keys in databases of those slots that are covered.
func countSlots(
	ctx context.Context, e *engine.Engine, placement ring.Placement, databases []uint8, covered *ring.PartitionSet,
	q *cluster.SlotQuery, now int64,
) (all []cluster.SlotKeys, err error) {
	all = make([]cluster.SlotKeys, 0, q.Last-q.First+1)
	list := keyList{ctx: ctx}
	var counts [slotsPerPartition]int64
	database := uint8(0)
	count := func(item engine.Item) (cost int, more bool) {
		counts[placement.SlotOf(database, item.Key())%slotsPerPartition]++
		return 1, true
	}
	for p := ring.Partition(q.First); p <= ring.Partition(q.Last); p++ {
		if !covered.Has(p) {
			continue
		}
		clear(counts[:])
		for _, database = range databases {
			for cursor, done := uint64(0), false; !done; {
				cursor, done = list.step(e, engine.Section(p, database), cursor, now, count)
				if err = exec.Step(ctx); err != nil {
					return nil, err
				}
			}
		}
		for i, n := range counts {
			if slot := p*slotsPerPartition + uint16(i); q.First <= slot && slot <= q.Last {
				all = append(all, cluster.SlotKeys{Slot: slot, Keys: n})
			}
		}
	}
	return all, nil
}

// sumOfSlots answers how many keys there are.
func sumOfSlots(*exec.Request, *cluster.SlotQuery) slotReply {
	return func(_ exec.Heap, to *exec.Gathered, all []cluster.SlotKeys) (ok bool) {
		sum := int64(0)
		for _, s := range all {
			sum += s.Keys
		}
		to.Head = resp.AppendInt(nil, sum)
		return true
	}
}

// statsAtOnce is of how many slots the reply is made at once.
const statsAtOnce = 256

// statsOfSlots answers each slot's figures. A part of the reply is pairs of numbers.
func statsOfSlots(r *exec.Request, q *cluster.SlotQuery) slotReply {
	part, v, query := r.Part, r.Version(), *q
	return func(heap exec.Heap, to *exec.Gathered, all []cluster.SlotKeys) (ok bool) {
		all = query.Arrange(all)
		to.Head = resp.AppendArray(nil, len(all))
		if part {
			to.Head = resp.AppendArray(nil, 2*len(all))
		}
		var text []byte
		for some := range slices.Chunk(all, statsAtOnce) {
			if text = text[:0]; !part {
				text = cluster.AppendSlotFigures(text, v, some)
			} else {
				for _, s := range some {
					text = resp.AppendInt(resp.AppendInt(text, int64(s.Slot)), s.Keys)
				}
			}
			if !to.Append(heap, text) {
				return false
			}
		}
		return true
	}
}

// keysInSlot: CLUSTER GETKEYSINSLOT slot count
func keysInSlot(r *exec.Request) {
	q, refusal := cluster.ParseSlotQuery(r.Cmd, r.Args)
	if refusal != "" {
		r.Fail(refusal)
		return
	}
	e, heap, database, now, placement := r.Engine, r.Heap, r.Database, r.Now, r.Placement
	r.Keyspace.CoverLater(func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered) {
		var wanted ring.PartitionSet
		if p := ring.Partition(q.First); covered.Has(p) && q.Most > 0 {
			wanted.Add(p)
		}
		list := keyList{ctx: ctx, heap: heap, reply: reply, most: q.Most}
		list.answer(list.gather(e, database, &wanted, now, func(key []byte) (cost int, matches bool) {
			return 1, placement.SlotOf(database, key) == q.First
		}))
	})
}
