package keys

import (
	"context"
	"math"

	"github.com/dunlin-cache/dunlin/internal/glob"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// keyType: TYPE key
func keyType(r *exec.Request) {
	t, ok := r.Lock()
	if !ok {
		return
	}
	defer t.Unlock()
	item, found := t.Peek(r.Args[1])
	r.Lookup(found, r.Args[1])
	if !found {
		r.ReplyStatus("none")
		return
	}
	r.ReplyStatus(r.Types.Of(item).Name)
}

// Commands over all keys. A client's command covers what this node serves; a proxy's (DUNLIN EACH)
// covers what of that it asks for.

// dbSize: DBSIZE
func dbSize(r *exec.Request) {
	covered := r.Keyspace.Cover()
	r.ReplyInt(Count(r.Engine, r.Database, &covered))
}

// Count returns how many keys of a database the partitions hold.
func Count(e *engine.Engine, database uint8, wanted *ring.PartitionSet) int64 {
	var counts [ring.Partitions]uint32
	e.CountsIn(database, &counts)
	return sumOf(&counts, wanted)
}

// CountAll returns how many keys of all databases the partitions hold.
func CountAll(e *engine.Engine, wanted *ring.PartitionSet) int64 {
	var counts [ring.Partitions]uint32
	e.Counts(&counts)
	return sumOf(&counts, wanted)
}

func sumOf(counts *[ring.Partitions]uint32, wanted *ring.PartitionSet) (total int64) {
	for p, n := range counts {
		if wanted.Has(uint16(p)) {
			total += int64(n)
		}
	}
	return total
}

// flush: FLUSHALL [ASYNC | SYNC], FLUSHDB [ASYNC | SYNC]
func flush(r *exec.Request) {
	if !flushOptionsOK(r.Args[1:]) {
		r.Fail(exec.ErrSyntax)
		return
	}
	// Dropping takes milliseconds for each million keys: not on the loop, whether ASYNC or not.
	r.Keyspace.DropLater()
}

func flushOptionsOK(options [][]byte) bool {
	switch len(options) {
	case 0:
		return true
	case 1:
		return exec.Is(options[0], "ASYNC") || exec.Is(options[0], "SYNC")
	}
	return false
}

// maxKeysReply limits the reply of KEYS, in bytes. Redis has no such limit and can run out of
// memory.
const maxKeysReply = 32 << 20

// walkStep is how many items are looked at under one hold of a shard's lock.
const walkStep = 256

// keys: KEYS pattern
func keys(r *exec.Request) {
	e, heap, database, now, holds := r.Engine, r.Heap, r.Database, r.Now, r.Hold != nil
	pattern, err := glob.Compile(r.Args[1])
	if err != nil {
		r.Fail(err.Error())
		return
	}
	r.Keyspace.CoverLater(func(ctx context.Context, covered *ring.PartitionSet, reply *exec.Gathered) {
		list := keyList{ctx: ctx, heap: heap, reply: reply, most: math.MaxInt, holds: holds}
		list.answer(list.gather(e, database, covered, now, func(key []byte) (cost int, matches bool) {
			return pattern.Cost(key), pattern.Match(key)
		}))
	})
}

// keyList gathers keys as a reply.
type keyList struct {
	ctx   context.Context // when it ends, nobody waits for the keys
	heap  exec.Heap
	reply *exec.Gathered
	batch []byte // keys that were found under the present lock
	size  int    // bytes of all keys
	found int
	most  int  // how many keys are wanted
	holds bool // who asks holds the partitions

	// Of the present step. A closure for each step would be garbage of megabytes in a look at all sections.
	visit func(engine.Item) (cost int, more bool)
	left  int                    // of walkStep
	look  func(engine.Item) bool // lookAt
}

// answer makes the reply, which is the keys, or what went wrong.
func (l *keyList) answer(problem string) {
	if problem != "" {
		l.reply.End()
		l.reply.Head = resp.AppendError(nil, problem)
		return
	}
	l.reply.Head = resp.AppendArray(nil, l.found)
}

// mostBatch is about how many bytes of keys are found under one lock.
const mostBatch = 32 << 10

// gather lists the keys of a database, in the partitions, that match. It runs in a goroutine, and locks a shard for
// walkStep items at a time, or for fewer if it is costly to look at one. It returns what went wrong, if
// anything did.
func (l *keyList) gather(
	e *engine.Engine, database uint8, covered *ring.PartitionSet, now int64, look func(key []byte) (cost int, matches bool),
) (problem string) {
	collect := func(item engine.Item) (cost int, more bool) {
		key := item.Key()
		cost, matches := look(key)
		if matches && l.found < l.most {
			l.batch = resp.AppendBulk(l.batch, key)
			l.found++
		}
		return cost, l.ctx.Err() == nil && len(l.batch) < mostBatch && l.found < l.most
	}
	for p := range uint16(ring.Partitions) {
		if !covered.Has(p) {
			continue
		}
		for cursor, done := uint64(0), false; !done && l.found < l.most; {
			cursor, done = l.step(e, engine.Section(p, database), cursor, now, collect)
			l.size += len(l.batch)
			switch {
			case exec.Step(l.ctx) != nil:
				return exec.ErrBusy
			case l.size > maxKeysReply:
				return errKeysTooLarge
			case !l.reply.Append(l.heap, l.batch):
				return exec.ErrOOM
			}
			l.batch = l.batch[:0]
		}
	}
	return ""
}

// step visits items of a section under one lock, until visit returns false or the costs that it
// returns add up to walkStep. If somebody holds the partition, step waits for the end of that.
func (l *keyList) step(e *engine.Engine, section uint16, cursor uint64, now int64, visit func(engine.Item) (cost int, more bool)) (next uint64, done bool) {
	if l.visit, l.left = visit, walkStep; l.look == nil {
		l.look = l.lookAt
	}
	if l.holds {
		return e.Walk(section, cursor, walkStep, now, l.look)
	}
	next, done, held := e.WalkUnheld(section, cursor, walkStep, now, l.look)
	if held != nil {
		select {
		case <-held.Ended():
		case <-l.ctx.Done():
		}
	}
	return next, done
}

// lookAt visits an item, and reports whether the step goes on.
func (l *keyList) lookAt(item engine.Item) (goesOn bool) {
	cost, more := l.visit(item)
	l.left -= cost
	return more && l.left > 0
}
