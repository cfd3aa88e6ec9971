package node

import (
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/ring"
)

// typeNames are the answers of TYPE.
var typeNames = map[engine.Type]string{engine.TypeNone: "none", engine.TypeString: "string"}

// keyType: TYPE key
func keyType(r *request) {
	t := r.lock()
	defer t.Unlock()
	item, found := t.Peek(r.args[1])
	r.worker.count.lookup(found)
	if !found {
		r.replyStatus(typeNames[engine.TypeNone])
		return
	}
	r.replyStatus(typeNames[item.Type()])
}

// Commands over all keys. A client's command covers what this node serves; a
// proxy's (DUNLIN EACH) covers what of that it asks for.

// dbSize: DBSIZE
func dbSize(r *request) {
	wanted := allPartitions
	covered := r.view.covered(&wanted)
	r.replyInt(r.node.countKeys(&covered))
}

// countKeys returns how many keys the partitions hold.
func (n *Node) countKeys(wanted *partitionSet) int64 {
	total := 0
	for p := range uint16(ring.Partitions) {
		if wanted.has(p) {
			total += n.engine.Count(p)
		}
	}
	return int64(total)
}

// flush: FLUSHALL [ASYNC | SYNC], FLUSHDB [ASYNC | SYNC]
func flush(r *request) {
	if !flushOptionsOK(r.args[1:]) {
		r.fail(errSyntax)
		return
	}
	n, wanted := r.node, r.view.covered(&allPartitions)
	// Dropping takes milliseconds for each million keys: not on the loop, whether
	// ASYNC or not.
	r.answerLater(func() []byte { return n.dropPartitions(&wanted) })
}

func flushOptionsOK(options [][]byte) bool {
	switch len(options) {
	case 0:
		return true
	case 1:
		return is(options[0], "ASYNC") || is(options[0], "SYNC")
	}
	return false
}

// dropPartitions returns the reply to FLUSHALL for the partitions.
func (n *Node) dropPartitions(wanted *partitionSet) []byte {
	for p := range uint16(ring.Partitions) {
		if wanted.has(p) {
			n.engine.Drop(p)
		}
	}
	return []byte("+OK\r\n")
}

// countSlot returns how many keys the slot holds: CLUSTER COUNTKEYSINSLOT. It
// looks at all keys of the partition.
func (n *Node) countSlot(slot uint16) int64 {
	count := int64(0)
	n.walk(ring.Partition(slot), time.Now().UnixMilli(), func(item engine.Item) bool {
		if ring.Slot(item.Key()) == slot {
			count++
		}
		return true
	})
	return count
}

// walk visits the items of a partition, walkStep of them under one lock.
func (n *Node) walk(p uint16, now int64, visit func(engine.Item) bool) {
	for cursor, done := uint64(0), false; !done; {
		cursor, done = n.engine.Walk(p, cursor, walkStep, now, visit)
	}
}

// maxKeysReply is how many bytes of keys KEYS gathers. Redis gathers what there
// is and has been killed for it.
const maxKeysReply = 32 << 20

// walkStep is how many items are looked at under one hold of a shard's lock.
const walkStep = 256

// keys: KEYS pattern
func keys(r *request) {
	n, now := r.node, r.now
	wanted := r.view.covered(&allPartitions)
	pattern := append([]byte(nil), r.args[1]...)
	r.answerLater(func() []byte { return n.gatherKeys(&wanted, pattern, now) })
}

// gatherKeys returns the reply to KEYS for the partitions. It runs outside the
// loops, and holds a lock for walkStep items at a time.
func (n *Node) gatherKeys(wanted *partitionSet, pattern []byte, now int64) []byte {
	var body []byte
	found := 0
	collect := func(item engine.Item) bool {
		if matchGlob(pattern, item.Key()) {
			body = resp.AppendBulk(body, item.Key())
			found++
		}
		return true
	}
	for p := range uint16(ring.Partitions) {
		if !wanted.has(p) {
			continue
		}
		n.walk(p, now, collect)
		if len(body) > maxKeysReply {
			return resp.AppendError(nil, errKeysTooLarge)
		}
		if n.ctx.Err() != nil {
			return resp.AppendError(nil, errBusy)
		}
	}
	reply := resp.AppendArray(make([]byte, 0, len(body)+16), found)
	return append(reply, body...)
}
