package keys

import (
	"bytes"
	"context"

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
	r.Worker.Count.Lookup(found)
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
	r.ReplyInt(Count(r.Engine, &covered))
}

// Count returns how many keys the partitions hold.
func Count(e *engine.Engine, wanted *ring.PartitionSet) int64 {
	total := 0
	for p := range uint16(ring.Partitions) {
		if wanted.Has(p) {
			total += e.Count(p)
		}
	}
	return int64(total)
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

// CountSlot returns how many keys the slot holds, for CLUSTER COUNTKEYSINSLOT. It visits all keys
// of the slot's partition.
func CountSlot(e *engine.Engine, slot uint16, now int64) int64 {
	count := int64(0)
	p := ring.Partition(slot)
	for cursor, done := uint64(0), false; !done; {
		cursor, done = e.Walk(p, cursor, walkStep, now, func(item engine.Item) bool {
			if ring.Slot(item.Key()) == slot {
				count++
			}
			return true
		})
	}
	return count
}

// maxKeysReply limits the reply of KEYS, in bytes. Redis has no such limit and can run out of
// memory.
const maxKeysReply = 32 << 20

// walkStep is how many items are looked at under one hold of a shard's lock.
const walkStep = 256

// keys: KEYS pattern
func keys(r *exec.Request) {
	e, heap, now := r.Engine, r.Heap, r.Now
	pattern, err := glob.Compile(bytes.Clone(r.Args[1]))
	if err != nil {
		r.Fail(err.Error())
		return
	}
	r.Keyspace.CoverLater(func(ctx context.Context, covered *ring.PartitionSet) []byte {
		list := keyList{ctx: ctx, heap: heap}
		defer list.refund()
		return list.gather(e, covered, pattern, now)
	})
}

// gather returns the reply to KEYS for the partitions. It runs in a goroutine, and locks a shard
// for walkStep items at a time, or for fewer if the pattern is costly.
func (l *keyList) gather(e *engine.Engine, covered *ring.PartitionSet, pattern *glob.Pattern, now int64) []byte {
	collect := func(item engine.Item) (cost int, more bool) {
		more = l.ctx.Err() == nil && (!pattern.Match(item.Key()) || l.add(item.Key()))
		return pattern.Cost(item.Key()), more
	}
	for p := range uint16(ring.Partitions) {
		if !covered.Has(p) {
			continue
		}
		l.walk(e, p, now, collect)
		if l.problem != "" {
			return resp.AppendError(nil, l.problem)
		}
		if l.ctx.Err() != nil {
			return resp.AppendError(nil, exec.ErrBusy)
		}
	}
	return l.reply()
}

// walk visits the items of a partition until visit returns false. It releases the lock each time the
// costs that visit returns add up to walkStep. While somebody holds the partition it waits.
func (l *keyList) walk(e *engine.Engine, p uint16, now int64, visit func(engine.Item) (cost int, more bool)) {
	more := true
	for cursor, done := uint64(0), false; more && !done; {
		left := walkStep
		step := func(item engine.Item) bool {
			cost, goOn := visit(item)
			left, more = left-cost, goOn && more
			return more && left > 0
		}
		var held *engine.Hold
		if cursor, done, held = e.WalkUnheld(p, cursor, walkStep, now, step); held != nil {
			select {
			case <-held.Ended():
			case <-l.ctx.Done():
				return
			}
		}
	}
}

// keyList gathers keys as a reply, and charges its memory to heap.
type keyList struct {
	ctx     context.Context // when it ends, nobody waits for the keys
	heap    exec.Heap
	text    []byte // room for the header, then the keys
	found   int
	problem string // the error if not all keys were gathered
}

// listHeader is room for the header of an array.
const listHeader = 16

// add appends a key. It is called with a shard locked.
func (l *keyList) add(key []byte) bool {
	n := len(key) + exec.LineRoom
	switch {
	case l.problem != "":
		return false
	case len(l.text)+n > maxKeysReply:
		l.problem = errKeysTooLarge
		return false
	case len(l.text)+n > cap(l.text) && !l.grow(n):
		l.problem = exec.ErrOOM
		return false
	}
	l.text = resp.AppendBulk(l.text, key)
	l.found++
	return true
}

func (l *keyList) grow(n int) bool {
	size := max(2*cap(l.text), len(l.text)+n, listHeader+4<<10)
	if !l.heap.Charge(int64(size)) {
		return false
	}
	text := make([]byte, max(len(l.text), listHeader), size)
	copy(text, l.text)
	l.refund()
	l.text = text
	return true
}

func (l *keyList) refund() { l.heap.Refund(int64(cap(l.text))) }

// reply returns the gathered keys with the array's header in front: a view of l.text.
func (l *keyList) reply() []byte {
	header := resp.AppendArray(make([]byte, 0, listHeader), l.found)
	if l.found == 0 {
		return header
	}
	start := listHeader - len(header)
	copy(l.text[start:], header)
	return l.text[start:]
}
