package main

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// containerMemory returns the memory that this process's control groups allow
// it, or 0 when there is no limit. A limit of any group above counts, too, as
// far as they can be seen: in a container, its own group is mounted at the root.
// files are those of the system.
func containerMemory(files fs.FS) (limit int64) {
	for _, file := range limitFiles(files) {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			continue
		}
		if n := parseMemoryLimit(string(text)); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// limitFiles are where limits may stand: of version 2 and of version 1 groups,
// from the process's own group up to the root.
func limitFiles(files fs.FS) (all []string) {
	add := func(root, group, name string) {
		for ; group != "." && group != "/"; group = path.Dir(group) {
			all = append(all, path.Join(root, group, name))
		}
		all = append(all, path.Join(root, name))
	}
	text, err := fs.ReadFile(files, "proc/self/cgroup")
	if err != nil {
		text = nil // no groups, or none to be seen: only the roots are tried
	}
	own, v1 := ".", "."
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:/group
		if len(fields) < 3 {
			continue
		}
		switch group := path.Join(".", fields[2]); {
		case fields[1] == "":
			own = group
		case strings.Contains(","+fields[1]+",", ",memory,"):
			v1 = group
		}
	}
	add("sys/fs/cgroup", own, "memory.max")
	add("sys/fs/cgroup/memory", v1, "memory.limit_in_bytes")
	return all
}

// parseMemoryLimit reads "max" and version 1's "no limit" (a number near
// 2^63) as 0.
func parseMemoryLimit(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0
	}
	return n
}
