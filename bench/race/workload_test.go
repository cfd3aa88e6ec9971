package main

import (
	"slices"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/bench/load"
)

func TestWorkloadNamesDiffer(t *testing.T) {
	names := namesOf(workloads, workloadName)
	if slices.Sort(names); len(slices.Compact(names)) != len(workloads) {
		t.Errorf("two workloads have one name: %v", names)
	}
	if got := namesOf(usualWorkloads(), workloadName); !slices.Equal(got, usual) {
		t.Errorf("the usual workloads are %v: want %v", got, usual)
	}
}

func TestWorkloadConfig(t *testing.T) {
	f := func(name string, want load.Config) {
		t.Helper()
		w, err := pick("workload", name, workloads, workloadName)
		if err != nil {
			t.Fatal(err)
		}
		want.Addr, want.Protocol, want.Duration = "here", load.Memcached, time.Second
		if got := w[0].config(&live{addr: "here", protocol: load.Memcached}, 5000, 2, time.Second); got != want {
			t.Errorf("the load of %s is %+v: want %+v", name, got, want)
		}
	}
	f("set16", load.Config{Clients: 50, Pipeline: 16, Threads: 2, Sets: 1, Prefix: "key:", Keys: 5000, ValueBytes: 64})
	f("get10000-c10", load.Config{Clients: 10, Pipeline: 10_000, Threads: 2, Gets: 1, Prefix: "key:",
		Keys: 5000, ValueBytes: 64})
	f("get1-c1", load.Config{Clients: 1, Pipeline: 1, Threads: 1, Gets: 1, Prefix: "key:", Keys: 5000, ValueBytes: 64})
	f("mget64-1k-c1000", load.Config{Clients: 1000, Pipeline: 64, Threads: 2, Gets: 1, KeysPerGet: 10,
		Prefix: "big:", Keys: 500, ValueBytes: 1024})
	f("mix30", load.Config{Clients: 50, Pipeline: 30, Threads: 2, Sets: 1, Gets: 10, Prefix: "mid:",
		Keys: 500, ValueBytes: 256})
}
