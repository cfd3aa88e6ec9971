package engine

import "runtime"

const (
	// releasePiece is how much is given back to the system at once: 10 µs (4 MiB at once: 140 µs,
	// and 512 MiB take 45 ms in all instead of 35).
	releasePiece = 256 << 10
	// A body of up to releaseAtOnce is given back where it dies, and not left to the collector.
	releaseAtOnce = 64 << 10
)

// collector gives back the memory of dead bodies, piece by piece and without any shard's lock.
// Whoever needs memory does the same on the way (see makeRoom). The budget has each piece when the system
// is about to get it.
type collector struct {
	wake chan struct{} // something died
	stop chan struct{}
	done chan struct{}
}

func (l *largeSpace) startCollector() {
	l.collector = collector{make(chan struct{}, 1), make(chan struct{}), make(chan struct{})}
	go l.runCollector()
}

func (l *largeSpace) runCollector() {
	c := &l.collector
	defer close(c.done)
	for {
		select {
		case <-c.wake:
		case <-c.stop:
			return
		}
		for l.collect() {
		}
	}
}

func (l *largeSpace) stopCollector() {
	if l.collector.stop != nil {
		close(l.collector.stop)
		<-l.collector.done
	}
}

// dispose ends a body that nobody has any more.
func (l *largeSpace) dispose(off uint64, x *extent) {
	size, number := l.place(off)
	n := int64(x.pages) * osPage
	switch {
	case n > releaseAtOnce:
		l.bury(off, x)
		return
	case n > 0 && l.keep(size, number, x, n):
		return
	}
	l.shrink(off, 0)
	l.mu.Lock()
	l.putFree(size, number, x)
	l.mu.Unlock()
	l.refund(n)
}

// bury is dispose of a body that the collector gives back.
func (l *largeSpace) bury(off uint64, x *extent) {
	size, number := l.place(off)
	if n := int64(x.pages) * osPage; l.keep(size, number, x, n) {
		return
	}
	l.mu.Lock()
	x.next = l.dead[size]
	l.dead[size] = number + 1
	l.deads.Add(1)
	l.mu.Unlock()
	select {
	case l.collector.wake <- struct{}{}:
	default: // it is awake
	}
}

// collect gives back a piece of a dead body. It returns false if there is none.
func (l *largeSpace) collect() bool {
	if l.deads.Load() == 0 {
		return false
	}
	l.mu.Lock()
	size, ok := firstListed(&l.dead)
	if !ok {
		l.mu.Unlock()
		return false
	}
	number := l.dead[size] - 1
	x := l.extentAt(size, number)
	had := int64(x.pages) * osPage
	n := min(had, releasePiece)
	x.pages -= uint32(n / osPage)
	x.releasing++
	l.releasing++
	if x.pages == 0 {
		l.dead[size] = x.next
		l.deads.Add(-1)
	}
	// The piece is refunded before the system has it. Otherwise, while the system does not run this thread,
	// others would find neither memory nor anything to give back, and be refused what there is.
	l.refund(n)
	l.mu.Unlock()

	l.arena.shrink(l.offsetOf(size, number), had, had-n)
	l.mu.Lock()
	if x.releasing--; x.releasing == 0 && x.pages == 0 {
		l.putFree(size, number, x)
	}
	l.releasing--
	l.mu.Unlock()
	return true
}

// firstListed is the smallest size of which a list has an extent.
func firstListed(lists *[largeSizes]uint32) (size int, ok bool) {
	for size, number := range lists {
		if number != 0 {
			return size, true
		}
	}
	return 0, false
}

// putFree makes the extent one for take. l.mu is held, and no memory is behind it.
func (l *largeSpace) putFree(size int, number uint32, x *extent) {
	x.next = l.free[size]
	l.free[size] = number + 1
	l.taken--
}

// refund ends the charge for n bytes that a body had which left.
func (l *largeSpace) refund(n int64) {
	l.leaving.Add(-n)
	l.pool.refund(n)
}

// isReleasing reports whether somebody is just giving memory back.
func (l *largeSpace) isReleasing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.releasing > 0
}

// settle returns when all bodies that were dead before the call are given back.
func (l *largeSpace) settle() {
	for {
		if l.collect() {
			continue
		}
		if !l.isReleasing() {
			return
		}
		runtime.Gosched()
	}
}
