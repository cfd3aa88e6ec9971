package main

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// controlGroup finds the limits of a process's control groups. Limits of the groups above count too,
// as far as they are visible: in a container, the container's own group is mounted at the root.
type controlGroup struct {
	files  fs.FS             // the system's root
	own    string            // the process's group of version 2
	groups map[string]string // and of version 1, by controller
}

func findControlGroup(files fs.FS) controlGroup {
	g := controlGroup{files: files, own: ".", groups: make(map[string]string)}
	text, _ := fs.ReadFile(files, "proc/self/cgroup")
	for line := range strings.Lines(string(text)) { // number:controllers:/group
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		if controllers == "" {
			g.own = path.Join(".", group)
			continue
		}
		for controller := range strings.SplitSeq(controllers, ",") {
			g.groups[controller] = path.Join(".", group)
		}
	}
	return g
}

// least returns the lowest limit that read finds in a group's directory, among those that are above
// 0; or 0. version1 is a controller.
func (g controlGroup) least(version1 string, read func(file func(name string) string) float64) (limit float64) {
	look := func(root, group string) {
		for ; ; group = path.Dir(group) {
			n := read(func(name string) string {
				text, _ := fs.ReadFile(g.files, path.Join(root, group, name)) // no such file: no limit there
				return strings.TrimSpace(string(text))
			})
			if n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if group == "." {
				return
			}
		}
	}
	look("sys/fs/cgroup", g.own)
	look(path.Join("sys/fs/cgroup", version1), path.Join(".", g.groups[version1]))
	return limit
}

// containerMemory returns the bytes of memory that this process's control groups allow it, or 0 if
// there is no limit. files is the system's root.
func containerMemory(files fs.FS) int64 {
	limit := findControlGroup(files).least("memory", func(file func(name string) string) float64 {
		return max(memoryLimit(file("memory.max")), memoryLimit(file("memory.limit_in_bytes")))
	})
	return int64(limit)
}

// memoryLimit returns the bytes of a limit, or 0 for none, which is "max", or in version 1 a number
// near 2^63.
func memoryLimit(text string) float64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > math.MaxInt64/2 {
		return 0
	}
	return float64(n)
}

// containerProcessors returns how many processors this process's control groups allow it, or 0 if
// there is no limit. files is the system's root.
func containerProcessors(files fs.FS) float64 {
	return findControlGroup(files).least("cpu", func(file func(name string) string) float64 {
		quota, period, _ := strings.Cut(file("cpu.max"), " ")
		return max(processorLimit(quota, period), processorLimit(file("cpu.cfs_quota_us"), file("cpu.cfs_period_us")))
	})
}

// processorLimit returns the processors that a quota of time in each period is worth, or 0 if there
// is no quota, which is "max" or below 0.
func processorLimit(quota, period string) float64 {
	q, errQuota := strconv.ParseFloat(quota, 64)
	p, errPeriod := strconv.ParseFloat(period, 64)
	if errQuota != nil || errPeriod != nil || p <= 0 {
		return 0
	}
	return max(0, q/p)
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
