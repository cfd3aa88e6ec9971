//go:build !portable

package mapping

import (
	"os"

	"golang.org/x/sys/unix"
)

// refuseHuge gets EINVAL from a kernel without huge pages, which is what it asks for.
func refuseHuge(mem []byte) error {
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != unix.EINVAL {
		return os.NewSyscallError("madvise", err)
	}
	return nil
}

// Release returns the memory behind b, which begins at a multiple of 4 KiB, to the system. b reads
// as zeros afterwards.
func Release(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return os.NewSyscallError("madvise", unix.Madvise(b, unix.MADV_DONTNEED))
}

// Populate backs b with memory before the caller writes to it, which is faster than page by page:
// filling 64 KiB takes 56 µs instead of 88. Kernels before 5.14 ignore the call.
func Populate(b []byte) {
	_ = unix.Madvise(b, unix.MADV_POPULATE_WRITE)
}

// Collapse replaces the pages behind b, all of which are backed, by huge ones. A kernel before 6.1
// does so when it gets to it. A kernel without huge pages, or without a free one, changes nothing.
func Collapse(b []byte) {
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(b, unix.MADV_COLLAPSE)
}

// Split keeps the kernel from putting a huge page behind b, part of which is about to be released.
func Split(b []byte) {
	_ = unix.Madvise(b, unix.MADV_NOHUGEPAGE)
}
