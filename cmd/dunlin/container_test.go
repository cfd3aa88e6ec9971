package main

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	f := func(in string, want float64) {
		t.Helper()
		if got := memoryLimit(in); got != want {
			t.Errorf("memoryLimit(%q) = %v, want %v", in, got, want)
		}
	}
	f("1073741824", 1<<30)
	f("max", 0)
	f("9223372036854771712", 0) // how version 1 writes "no limit"
	f("-1", -1)
	f("", 0)
}

func TestContainerMemory(t *testing.T) {
	f := within(t, containerMemory)
	f("nothing to be seen", 0, nil)
	f("a container, version 2", 1000, map[string]string{
		"proc/self/cgroup":         "0::/\n",
		"sys/fs/cgroup/memory.max": "1000\n",
	})
	f("a container that is shown its path outside", 1000, map[string]string{
		"proc/self/cgroup":         "0::/kubepods/pod1/c2\n",
		"sys/fs/cgroup/memory.max": "1000\n",
	})
	f("a container, version 1", 2000, map[string]string{
		"proc/self/cgroup":                           "12:cpu,cpuacct:/\n5:memory:/\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes": "2000\n",
	})
	f("no limit, version 1", 0, map[string]string{
		"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
	})
	f("a service in a slice with a lower limit", 500, map[string]string{
		"proc/self/cgroup": "0::/system.slice/dunlin.service\n",
		"sys/fs/cgroup/system.slice/dunlin.service/memory.max": "800\n",
		"sys/fs/cgroup/system.slice/memory.max":                "500\n",
	})
	f("a user's own session", 0, map[string]string{
		"proc/self/cgroup":                          "0::/user.slice/session-1.scope\n",
		"sys/fs/cgroup/user.slice/memory.max":       "max\n",
		"sys/fs/cgroup/other.slice/d/memory.max":    "100\n",
		"sys/fs/cgroup/user.slice/memory.high":      "100\n",
		"sys/fs/cgroup/memory/user.slice/something": "",
	})
	f("a group of version 1", 700, map[string]string{
		"proc/self/cgroup": "3:hugetlb,memory:/docker/abc\n",
		"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "700\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":            "9223372036854771712\n",
	})
}

func TestContainerProcessors(t *testing.T) {
	f := within(t, containerProcessors)
	f("nothing to be seen", 0, nil)
	f("no limit, version 2", 0, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"})
	f("half a processor", 0.5, map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"})
	f("a slice allows less", 1.5, map[string]string{
		"proc/self/cgroup":                "0::/a.slice/b\n",
		"sys/fs/cgroup/a.slice/b/cpu.max": "400000 100000\n",
		"sys/fs/cgroup/a.slice/cpu.max":   "150000 100000\n",
	})
	f("no limit, version 1", 0, map[string]string{
		"proc/self/cgroup":                    "1:cpu:/\n",
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "-1\n",
		"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
	})
	f("version 1", 2, map[string]string{
		"proc/self/cgroup":                      "3:cpu,cpuacct:/d\n",
		"sys/fs/cgroup/cpu/d/cpu.cfs_quota_us":  "200000\n",
		"sys/fs/cgroup/cpu/d/cpu.cfs_period_us": "100000\n",
	})
	f("damaged", 0, map[string]string{"sys/fs/cgroup/cpu.max": "1 0 7\n"})
}

// within returns a test of what see finds in a system with some files.
func within[N int64 | float64](t *testing.T, see func(root fs.FS) N) func(what string, want N, files map[string]string) {
	return func(what string, want N, files map[string]string) {
		t.Helper()
		if got := see(system(files)); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
}

// system returns a system's root with these files.
func system(files map[string]string) fs.FS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}
