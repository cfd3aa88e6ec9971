package node

import (
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/engine"
	"github.com/dunlin-cache/dunlin/node/ownership"
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
	covered := served(r.view, &wanted)
	r.replyInt(r.node.countKeys(&covered))
}

// countKeys returns how many keys the partitions hold.
func (n *Node) countKeys(wanted *ring.PartitionSet) int64 {
	total := 0
	for p := range uint16(ring.Partitions) {
		if wanted.Has(p) {
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
	n, wanted := r.node, served(r.view, &allPartitions)
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

// dropPartitions returns the reply to FLUSHALL for the partitions. It is outside the loops, and no barrier waits for it: so
// each partition is dropped between two tables. One that was lost meanwhile may be a copy by now, which must stay as it is.
func (n *Node) dropPartitions(wanted *ring.PartitionSet) []byte {
	for p := range uint16(ring.Partitions) {
		if wanted.Has(p) {
			n.dropServed(p)
		}
	}
	return []byte("+OK\r\n")
}

func (n *Node) dropServed(p uint16) {
	n.tableMu.Lock()
	defer n.tableMu.Unlock()
	if n.view.Load().Standing[p] == ownership.Serving {
		n.engine.Drop(p)
	}
}

// countSlot returns how many keys the slot holds: CLUSTER COUNTKEYSINSLOT. It
// looks at all keys of the partition.
func (n *Node) countSlot(slot uint16) int64 {
	count := int64(0)
	n.walk(ring.Partition(slot), n.cfg.Group.UnixMilli(), func(item engine.Item) (int, bool) {
		if ring.Slot(item.Key()) == slot {
			count++
		}
		return 1, true
	})
	return count
}

// walk visits the items of a partition until visit returns false, so many of them under
// one lock that what visit says they cost comes to walkStep.
func (n *Node) walk(p uint16, now int64, visit func(engine.Item) (cost int, more bool)) {
	more := true
	for cursor, done := uint64(0), false; more && !done; {
		left := walkStep
		cursor, done = n.engine.Walk(p, cursor, walkStep, now, func(item engine.Item) bool {
			cost, goOn := visit(item)
			left, more = left-cost, goOn && more
			return more && left > 0
		})
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
	wanted := served(r.view, &allPartitions)
	pattern := append([]byte(nil), r.args[1]...)
	r.answerLater(func() []byte { return n.gatherKeys(&wanted, pattern, now) })
}

// gatherKeys returns the reply to KEYS for the partitions. It runs outside the
// loops, and holds a lock for walkStep items at a time, for fewer if the pattern is costly.
func (n *Node) gatherKeys(wanted *ring.PartitionSet, pattern []byte, now int64) []byte {
	list := keyList{node: n}
	defer list.refund()
	collect := func(item engine.Item) (cost int, more bool) {
		return globCost(pattern, item.Key()), !matchGlob(pattern, item.Key()) || list.add(item.Key())
	}
	for p := range uint16(ring.Partitions) {
		if !wanted.Has(p) {
			continue
		}
		n.walk(p, now, collect)
		if list.problem != "" {
			return resp.AppendError(nil, list.problem)
		}
		if n.ctx.Err() != nil {
			return resp.AppendError(nil, errBusy)
		}
	}
	return list.reply()
}

// keyList gathers keys as a reply. What it takes counts towards the node's limit.
type keyList struct {
	node    *Node
	text    []byte // room for the header, then the keys
	found   int
	problem string // why it is not complete
}

// listHeader is room for the header of an array.
const listHeader = 16

// add appends a key. It is called with a shard locked.
func (l *keyList) add(key []byte) bool {
	n := len(key) + lineRoom
	switch {
	case l.problem != "":
		return false
	case len(l.text)+n > maxKeysReply:
		l.problem = errKeysTooLarge
		return false
	case len(l.text)+n > cap(l.text) && !l.grow(n):
		l.problem = errOOM
		return false
	}
	l.text = resp.AppendBulk(l.text, key)
	l.found++
	return true
}

func (l *keyList) grow(n int) bool {
	size := max(2*cap(l.text), len(l.text)+n, listHeader+4<<10)
	if !l.node.chargeHeap(int64(size)) {
		return false
	}
	text := make([]byte, max(len(l.text), listHeader), size)
	copy(text, l.text)
	l.refund()
	l.text = text
	return true
}

func (l *keyList) refund() { l.node.refundHeap(int64(cap(l.text))) }

// reply is all that was gathered, with the header in front.
func (l *keyList) reply() []byte {
	header := resp.AppendArray(make([]byte, 0, listHeader), l.found)
	if l.found == 0 {
		return header
	}
	start := listHeader - len(header)
	copy(l.text[start:], header)
	return l.text[start:]
}
