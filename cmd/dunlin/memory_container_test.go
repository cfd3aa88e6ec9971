package main

import (
	"testing"
	"testing/fstest"
)

func TestParseMemoryLimit(t *testing.T) {
	f := func(in string, want int64) {
		t.Helper()
		if got := parseMemoryLimit(in); got != want {
			t.Errorf("parseMemoryLimit(%q) = %d, want %d", in, got, want)
		}
	}
	f("1073741824\n", 1<<30)
	f("max\n", 0)
	f("9223372036854771712\n", 0) // how version 1 writes "no limit"
	f("-1\n", 0)
	f("", 0)
}

func TestContainerMemory(t *testing.T) {
	f := func(what string, want int64, files map[string]string) {
		t.Helper()
		system := fstest.MapFS{}
		for name, text := range files {
			system[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := containerMemory(system); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
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
