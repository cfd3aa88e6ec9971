// Package mapping provides memory outside the Go heap: address space that is reserved once, and
// whose pages come from the operating system at the first write and go back on request.
//
//	Reserve ─> [ addresses only │ written: backed by pages │ addresses only ]
//	                                  │
//	              Release ────────────┘  the pages go back, the addresses stay
//
// It also gives back the pages of the program's own file (ForgetProgram).
//
// Invariants:
//
//   - Fresh and released memory reads as zeros. Access never faults before Free.
//   - The garbage collector neither scans nor moves a mapping, so it must not hold Go pointers.
//   - The calls are safe for concurrent use on ranges that do not overlap.
//
// On Linux the package uses what that kernel offers. The portable form, for every other system and
// for Linux with the build tag portable, replaces pages by fresh ones and ignores hints about huge
// pages.
package mapping

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	access  = unix.PROT_READ | unix.PROT_WRITE
	private = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
)

// Reserve returns n bytes of address space that begin at a page. The kernel puts no huge pages
// behind them on its own: it would back neighbours that nobody has written, and resident memory
// would exceed what the caller counts. The caller returns the same slice to Free.
func Reserve(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, access, private)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %d bytes of address space: %w", n, os.NewSyscallError("mmap", err))
	}
	if err := refuseHuge(mem); err != nil {
		_ = unix.Munmap(mem)
		return nil, fmt.Errorf("cannot refuse huge pages for %d bytes: %w", n, err)
	}
	return mem, nil
}

// Free returns the addresses, and all memory behind them, to the system. mem is what Reserve
// returned; access to any part of it faults from now on.
func Free(mem []byte) error {
	return os.NewSyscallError("munmap", unix.Munmap(mem))
}
