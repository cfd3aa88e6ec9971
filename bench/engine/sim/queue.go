package sim

// queues has doubly linked lists over the same nodes, the keys; a key is in at most one queue. A
// queue is named by its head, a node behind those of the keys. 32-bit links in two slices keep a
// simulation of millions of keys fast.
type queues struct{ newer, older []uint32 }

func newQueues(keys, n int) queues {
	q := queues{make([]uint32, keys+n), make([]uint32, keys+n)}
	for head := keys; head < keys+n; head++ {
		q.newer[head], q.older[head] = uint32(head), uint32(head)
	}
	return q
}

// push adds the key as the newest.
func (q queues) push(head, key uint32) {
	last := q.older[head]
	q.older[key], q.newer[key] = last, head
	q.newer[last], q.older[head] = key, key
}

func (q queues) remove(key uint32) {
	q.newer[q.older[key]], q.older[q.newer[key]] = q.newer[key], q.older[key]
}

// oldest returns the key that was pushed first, or the head if there is none.
func (q queues) oldest(head uint32) uint32 { return q.newer[head] }
