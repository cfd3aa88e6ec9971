package mapping

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Space is a range of addresses, divided into steps. A step is writable while something in it is in
// use.
type Space struct {
	mem    []byte
	mapped []byte // mem, and what lies beside it
	step   int
	keep   int // the most bytes of idle steps

	mu    sync.Mutex // innermost lock; held while the system changes steps
	idle  int        // bytes of steps that are writable, and in which nothing is in use
	runs  int64      // of writable steps
	table []byte     // behind steps, outside the Go heap: most of it is never touched
	steps []uint32   // how many ranges are in use in the step, and writable
	deny  bool       // see Deny
}

// writable, in a Space's steps, says that the step may be written to.
const writable = 1 << 31

const (
	reserved = unix.PROT_READ
	access   = unix.PROT_READ | unix.PROT_WRITE
	private  = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
)

// runs is how many runs of writable steps the process has. Each is a mapping of its own, and so is
// each gap. Linux allows a process 65,530 mappings, and Go's runtime does not survive the last one.
var runs atomic.Int64

const (
	maxRuns = 16 << 10
	// Beyond fewRuns idle steps stay writable where a gap would make one run two.
	fewRuns = maxRuns / 2
)

var errRuns = errors.New("too many mappings")

// Reserve returns n bytes of address space that begin at a multiple of align, a power of two. They
// become writable in steps of step bytes, and up to keep bytes stay writable with nothing in use in
// them. The kernel puts no huge pages behind them on its own: it would back neighbours that nobody
// has written, and resident memory would exceed what the caller counts.
func Reserve(n, align, step, keep int) (*Space, error) {
	count := (n + step - 1) / step
	s := &Space{step: step, keep: keep}
	var err error
	if s.mapped, err = unix.Mmap(-1, 0, count*step+align, reserved, private); err != nil {
		return nil, fmt.Errorf("cannot reserve %d bytes of address space: %w", n, os.NewSyscallError("mmap", err))
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(s.mapped)))) & (align - 1)
	s.mem = s.mapped[skip : skip+n]
	if err = refuseHuge(s.mapped); err == nil {
		s.table, err = unix.Mmap(-1, 0, count*int(unsafe.Sizeof(s.steps[0])), access, private)
	}
	if err != nil {
		_ = unix.Munmap(s.mapped)
		return nil, fmt.Errorf("cannot prepare %d bytes of address space: %w", n, err)
	}
	s.steps = unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s.table))), count)
	return s, nil
}

// Bytes is all of the space. Only what is in use may be written to.
func (s *Space) Bytes() []byte { return s.mem }

// Free returns the addresses, and all memory behind them, to the system. Access to any part of them
// faults from now on.
func (s *Space) Free() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs.Add(-s.runs)
	s.steps, s.runs = nil, 0
	return os.NewSyscallError("munmap", errors.Join(unix.Munmap(s.table), unix.Munmap(s.mapped)))
}

// Writable is how many bytes the system has committed.
func (s *Space) Writable() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.steps {
		if s.isWritable(i) {
			n += s.step
		}
	}
	return n
}

// Grow says that the range which begins at base, and is in use up to from bytes behind that, will be
// in use up to to. The new part can be written from then on. It fails if the system has no memory to
// commit; then no more is in use than before, though some more steps may be writable, and idle.
func (s *Space) Grow(base, from, to int) error {
	first, end := s.between(base, from, to)
	if first == end {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := first; i < end; {
		if s.isWritable(i) {
			i++
			continue
		}
		run := i
		for i++; i < end && !s.isWritable(i); i++ {
		}
		if err := s.open(run, i); err != nil {
			return err
		}
	}
	for i := first; i < end; i++ {
		if s.steps[i] == writable {
			s.idle -= s.step
		}
		s.steps[i]++
	}
	return nil
}

// Shrink says that the range which begins at base, and is in use up to from bytes behind that, is in
// use up to to only. The memory behind the rest, which consists of multiples of 4 KiB, returns to the
// system.
func (s *Space) Shrink(base, from, to int) error {
	if err := Release(s.mem[base+to : base+from]); err != nil {
		return err
	}
	s.Leave(base, from, to)
	return nil
}

// Leave is Shrink for a range whose memory the caller has released, or another range's takes over.
func (s *Space) Leave(base, from, to int) {
	first, end := s.between(base, to, from)
	if first == end {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := first; i < end; i++ {
		if s.steps[i]--; s.steps[i] == writable {
			s.idle += s.step
		}
	}
	for i := first; i < end && s.idle > s.keep; {
		run := i
		for i < end && s.steps[i] == writable && s.idle-(i-run)*s.step > s.keep {
			i++
		}
		if run == i {
			i++
			continue
		}
		s.shut(run, i)
	}
}

// between is the steps that the range from base on touches up to to, but not up to from.
func (s *Space) between(base, from, to int) (first, end int) {
	if from >= to {
		return 0, 0
	}
	first, end = base/s.step, (base+to+s.step-1)/s.step
	if from > 0 {
		first = (base + from + s.step - 1) / s.step
	}
	return first, end
}

func (s *Space) isWritable(i int) bool {
	return i >= 0 && i < len(s.steps) && s.steps[i]&writable != 0
}

// neighbours is how many of the steps beside [first, end) are writable.
func (s *Space) neighbours(first, end int) (n int64) {
	if s.isWritable(first - 1) {
		n++
	}
	if s.isWritable(end) {
		n++
	}
	return n
}

// Deny has Grow fail from now on, or no longer, as if the system had no memory to commit. It is for
// tests.
func (s *Space) Deny(yes bool) {
	s.mu.Lock()
	s.deny = yes
	s.mu.Unlock()
}

// open makes steps writable, none of which is.
func (s *Space) open(first, end int) error {
	if s.deny {
		return unix.ENOMEM
	}
	more := 1 - s.neighbours(first, end)
	if runs.Add(more) > maxRuns && more > 0 {
		runs.Add(-more)
		return errRuns
	}
	b := s.bytesOf(first, end)
	err := leavesCushion(len(b))
	if err == nil {
		err = os.NewSyscallError("mprotect", unix.Mprotect(b, access))
	}
	if err != nil {
		runs.Add(-more)
		return err
	}
	s.runs += more
	for i := first; i < end; i++ {
		s.steps[i] = writable
	}
	s.idle += (end - first) * s.step
	return nil
}

// cushion is what the system must still be ready to commit after a Grow. Go's heap needs it, which
// does not survive a refusal.
const cushion = 64 << 20

// leavesCushion returns an error unless the system commits n bytes and the cushion. It asks for
// them and gives them back, a few microseconds for a step. If so little is left that Go's heap is
// refused memory within these, the process dies all the same. /proc/meminfo shows what is left
// without asking, but not what Linux keeps for root and for each process.
func leavesCushion(n int) error {
	b, err := unix.Mmap(-1, 0, cushion+n, access, private)
	if err == nil {
		err = unix.Munmap(b)
	}
	return os.NewSyscallError("mmap", err)
}

// shut makes steps read-only in which nothing is in use. Linux does not take back what it has
// committed to pages that are made read-only, so fresh ones take their place.
func (s *Space) shut(first, end int) {
	more := s.neighbours(first, end) - 1
	if more > 0 && runs.Load() >= fewRuns {
		return
	}
	b := s.bytesOf(first, end)
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), reserved, private|unix.MAP_FIXED)
	if err != nil {
		return // no mapping to spare: the steps stay as they are
	}
	runs.Add(more)
	s.runs += more
	_ = refuseHuge(b)
	for i := first; i < end; i++ {
		s.steps[i] = 0
	}
	s.idle -= (end - first) * s.step
}

// bytesOf is the bytes of the steps. The last one may reach beyond the end of the space.
func (s *Space) bytesOf(first, end int) []byte {
	return s.mem[first*s.step : end*s.step : cap(s.mem)]
}
