package main

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// containerMemory returns the bytes of memory that this process's control groups allow it, or 0 if
// there is no limit. Limits of the groups above count too, as far as they are visible: in a
// container, the container's own group is mounted at the root. files is the system's root.
func containerMemory(files fs.FS) (limit int64) {
	own, v1 := ".", "." // the process's group, of version 2 and of version 1
	text, _ := fs.ReadFile(files, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) { // number:controllers:/group
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		switch {
		case controllers == "":
			own = path.Join(".", group)
		case strings.Contains(","+controllers+",", ",memory,"):
			v1 = path.Join(".", group)
		}
	}
	least := func(root, group, name string) {
		for ; ; group = path.Dir(group) {
			text, _ := fs.ReadFile(files, path.Join(root, group, name)) // no such file: no limit there
			if n := parseMemoryLimit(string(text)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if group == "." {
				return
			}
		}
	}
	least("sys/fs/cgroup", own, "memory.max")
	least("sys/fs/cgroup/memory", v1, "memory.limit_in_bytes")
	return limit
}

// machineMemory returns the bytes of memory of the machine, or 0 if the system does not say. files is
// as for containerMemory.
func machineMemory(files fs.FS) int64 {
	text, _ := fs.ReadFile(files, "proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if of, found := strings.CutPrefix(line, "MemTotal:"); found {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(of), "kB")), 10, 64)
			return max(0, kib) << 10
		}
	}
	return 0
}

// parseMemoryLimit returns the bytes of a limit, or 0 for "max" and for version 1's "no limit", a
// number near 2^63.
func parseMemoryLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0
	}
	return n
}
