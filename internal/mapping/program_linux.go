//go:build !portable

package mapping

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// ForgetProgram takes the pages of the program's file, of which the process has no copies of its own,
// out of its memory. What is used again comes back from the system's cache, a few microseconds for
// 64 KiB. A program that runs uses less of its file than one that starts.
func ForgetProgram() error {
	parts, err := programParts()
	for _, p := range parts {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_DONTNEED); errno != 0 {
			return os.NewSyscallError("madvise", errno)
		}
	}
	return err
}

// ProgramMemory returns how many bytes of files are in the process's memory: its program's, as it maps no other.
func ProgramMemory() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("cannot read the process's memory: %w", err)
	}
	var size, resident, ofFiles int64
	if _, err := fmt.Sscan(string(text), &size, &resident, &ofFiles); err != nil {
		return 0, fmt.Errorf("cannot read the process's memory in %q: %w", text, err)
	}
	return ofFiles * int64(os.Getpagesize()), nil
}

// part is an address range.
type part struct{ from, to uintptr }

// programParts returns the mappings of the program's file that can be given back. It looks once: a look goes through
// all memory of the process.
var programParts = sync.OnceValues(func() (parts []part, err error) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("cannot find the program's file: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("cannot read the process's mappings: %w", err)
	}
	var at part // of the mapping that the present line is about; to 0: none to forget
	for line := range bytes.Lines(maps) {
		if from, to, ofProgram, header := parseMapping(line, exe); header {
			if at = (part{from: from}); ofProgram {
				at.to = to
			}
			continue
		}
		// A loader may have changed pages that nobody writes to any more: those are copies.
		var copied int
		if n, _ := fmt.Sscanf(string(line), "Anonymous: %d kB", &copied); n > 0 && copied == 0 && at.to > 0 {
			parts = append(parts, at)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("no mapping of %s can be given back", exe)
	}
	return parts, nil
})

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
