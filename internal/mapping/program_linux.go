//go:build !portable

package mapping

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ForgetProgram takes the pages of the program's file, of which the process has no copies of its own,
// out of its memory. What is used again comes back from the system's cache, a few microseconds for
// 64 KiB. A program that runs uses less of its file than one that starts.
func ForgetProgram() error {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("cannot find the program's file: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("cannot read the process's mappings: %w", err)
	}
	forgotten := 0
	var from, to uintptr // of the mapping that the present line is about; to 0: none to forget
	for line := range bytes.Lines(maps) {
		if from2, to2, ofProgram, header := parseMapping(line, exe); header {
			from, to = from2, 0
			if ofProgram {
				to = to2
			}
			continue
		}
		// A loader may have changed pages that nobody writes to any more: those are copies.
		var copied int
		if n, _ := fmt.Sscanf(string(line), "Anonymous: %d kB", &copied); n == 0 || copied > 0 || to == 0 {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); errno != 0 {
			return os.NewSyscallError("madvise", errno)
		}
		forgotten++
	}
	if forgotten == 0 {
		return fmt.Errorf("no mapping of %s can be given back", exe)
	}
	return nil
}

// parseMapping reads the header line of a mapping, and reports whether that is a read-only one of the
// program's file. header is false for any other line.
func parseMapping(line []byte, exe string) (from, to uintptr, ofProgram, header bool) {
	fields := bytes.Fields(line)
	if len(fields) < 5 || len(fields[1]) != len("r-xp") {
		return 0, 0, false, false
	}
	if n, _ := fmt.Sscanf(string(fields[0]), "%x-%x", &from, &to); n != 2 {
		return 0, 0, false, false
	}
	rights := string(fields[1])
	_, file, _ := bytes.Cut(line, []byte("/"))
	return from, to, "/"+string(bytes.TrimSpace(file)) == exe && (rights == "r-xp" || rights == "r--p"), true
}
