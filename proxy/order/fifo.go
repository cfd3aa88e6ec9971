package order

// fifo is a queue of requests. Its ring grows as needed and never shrinks.
type fifo struct {
	ring       []Request // its length is a power of two
	head, size int
}

func (q *fifo) len() int { return q.size }

// front returns the oldest request, valid until pop or push.
func (q *fifo) front() *Request { return &q.ring[q.head] }

// at returns the i-th oldest request, valid until pop or push.
func (q *fifo) at(i int) *Request { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *fifo) push(r *Request) {
	if q.size == len(q.ring) {
		q.grow()
	}
	q.ring[(q.head+q.size)&(len(q.ring)-1)] = *r
	q.size++
}

func (q *fifo) pop() {
	q.ring[q.head].Session, q.ring[q.head].Part = nil, nil // let them be collected
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.size--
}

func (q *fifo) grow() {
	ring := make([]Request, max(64, 2*len(q.ring)))
	for i := range q.size {
		ring[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
	}
	q.ring, q.head = ring, 0
}

// endsAt reports whether some queued request ends at the stream offset: a binary search, since ends
// grow.
func (q *fifo) endsAt(offset uint64) bool {
	lo, hi := 0, q.size
	for lo < hi {
		mid := (lo + hi) / 2
		if q.ring[(q.head+mid)&(len(q.ring)-1)].end < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < q.size && q.ring[(q.head+lo)&(len(q.ring)-1)].end == offset
}
