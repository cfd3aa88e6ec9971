package engine

// A body of medium size that dies leaves its memory behind: the extent stays warm, charged, for the
// next body of about its size. A Set of 64 KiB in a full engine thereby takes 6 µs of a processor
// instead of 31, which the system needs to take memory back and give it out again.

const (
	// warmShift is the logarithm of the size of the largest extents that are kept warm. Such a body
	// is charged at once when it is staged; to make room for more takes longer than others should
	// wait.
	warmShift = 17
	// maxWarmBytes and warmShare bound what all of them have: so much, and such a part of the
	// limit.
	maxWarmBytes = 8 << 20
	warmShare    = 64
)

// keep makes the extent of a dead body of n bytes warm, if there is not too much of that.
func (l *largeSpace) keep(size int, number uint32, x *extent, n int64) bool {
	limit := l.pool.max.Load()
	if minExtentShift+size > warmShift || l.pool.used.Load() > limit {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.warmBytes.Load()+n > min(maxWarmBytes, limit/warmShare) {
		return false
	}
	x.next = l.warm[size]
	l.warm[size] = number + 1
	l.warmBytes.Add(n)
	l.leaving.Add(-n)
	return true
}

// takeWarm is take for an extent that has memory already, up to what a body of n bytes needs. What
// is in there is not zeros, and stays charged.
func (l *largeSpace) takeWarm(n int) (off uint64, ok bool) {
	size := extentShift(n) - minExtentShift
	if minExtentShift+size > warmShift || l.warmBytes.Load() == 0 {
		return 0, false
	}
	l.mu.Lock()
	if l.warm[size] == 0 {
		l.mu.Unlock()
		return 0, false
	}
	number := l.warm[size] - 1
	x := l.extentAt(size, number)
	l.warm[size] = x.next
	l.warmBytes.Add(-int64(x.pages) * osPage)
	l.mu.Unlock()

	off = l.offsetOf(size, number)
	x.refs.Store(ownerBit)
	if more := int64(x.pages)*osPage - largeCost(n); more > 0 {
		l.shrink(off, largeCost(n))
		l.pool.refund(more)
	}
	return off, true
}

// chill gives back the memory of a warm extent. It returns false if there is none.
func (l *largeSpace) chill() bool {
	if l.warmBytes.Load() == 0 {
		return false
	}
	l.mu.Lock()
	size, ok := firstListed(&l.warm)
	if !ok {
		l.mu.Unlock()
		return false
	}
	number := l.warm[size] - 1
	x := l.extentAt(size, number)
	n := int64(x.pages) * osPage
	l.warm[size] = x.next
	l.warmBytes.Add(-n)
	l.releasing++
	l.mu.Unlock()

	l.shrink(l.offsetOf(size, number), 0)
	l.mu.Lock()
	l.putFree(size, number, x)
	l.pool.refund(n)
	l.releasing--
	l.mu.Unlock()
	return true
}

// reclaim gives back what memory it can without evicting anything, a piece of it at a time.
func (l *largeSpace) reclaim() bool { return l.collect() || l.chill() }
