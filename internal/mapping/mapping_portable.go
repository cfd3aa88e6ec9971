//go:build !linux || portable

package mapping

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageSize is 16 KiB on some systems, where callers count in 4 KiB.
var pageSize = os.Getpagesize()

func refuseHuge([]byte) error { return nil }

// Release returns the memory behind b to the system and clears what shares a page with neighbours.
// b reads as zeros afterwards. A fresh mapping takes the place of the pages, because the meaning of
// MADV_DONTNEED differs between systems: elsewhere than on Linux it keeps the bytes.
func Release(b []byte) error {
	from, to := wholePages(uintptr(unsafe.Pointer(unsafe.SliceData(b))), len(b), pageSize)
	clear(b[:from])
	clear(b[to:])
	if from == to {
		return nil
	}
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&b[from]), uintptr(to-from), access, private|unix.MAP_FIXED)
	return os.NewSyscallError("mmap", err)
}

// wholePages returns the part [from, to) of n bytes at address that consists of whole pages; it is
// empty if there is none.
func wholePages(address uintptr, n, page int) (from, to int) {
	from = int(-address & uintptr(page-1))
	to = n - int((address+uintptr(n))&uintptr(page-1))
	if from >= to {
		return 0, 0
	}
	return from, to
}

// Populate is a hint that this form ignores.
func Populate([]byte) {}

// Collapse is a hint that this form ignores.
func Collapse([]byte) {}

// Split is a hint that this form ignores.
func Split([]byte) {}
