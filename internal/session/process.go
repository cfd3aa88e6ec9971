package session

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// FillProcess stores a node's part of what the operating system counts of this
// process, which has so many of them: resident memory and processor time. All
// parts are alike, so that their sum over a cluster is right. It reads a file of
// /proc; call it for an INFO, not for a request.
func FillProcess(c *Counters, nodes int) {
	of := int64(max(nodes, 1))
	c.RSS = residentBytes() / of
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		c.CPUSysMicros = u.Stime.Nano() / 1000 / of
		c.CPUUserMicros = u.Utime.Nano() / 1000 / of
	}
}

// residentBytes is 0 where /proc cannot be read.
func residentBytes() int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm) // total, resident, ... in pages
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
