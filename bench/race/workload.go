package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/bench/load"
)

// data is a set of keys with which every peer is filled.
type data struct {
	prefix     string
	share      float64 // of --keys
	valueBytes int
}

var (
	small  = data{"key:", 1, 64}
	middle = data{"mid:", 0.1, 256}
	large  = data{"big:", 0.1, 1024}
)

// config returns a load of the keys. keys is the value of --keys.
func (d data) config(l *live, keys int) load.Config {
	return load.Config{Addr: l.addr, Protocol: l.protocol, Prefix: d.prefix,
		Keys: max(1, int(float64(keys)*d.share)), ValueBytes: d.valueBytes}
}

// workload is what a peer's clients do in one run.
type workload struct {
	name, title       string
	clients, pipeline int
	sets, gets        int     // proportions
	keysPerGet        int     // above 1: MGET
	hot               float64 // share of one key among the keys sent
	data              data
}

// config returns the load of one run.
func (w workload) config(l *live, keys, threads int, length time.Duration) load.Config {
	c := w.data.config(l, keys)
	c.Clients, c.Pipeline, c.Threads, c.Duration = w.clients, w.pipeline, min(threads, w.clients), length
	c.Sets, c.Gets, c.KeysPerGet, c.Hot = w.sets, w.gets, w.keysPerGet, w.hot
	return c
}

// usual names the workloads of every race; the rest of the matrix is for --full.
var usual = []string{
	"set1", "get1", "set16", "get16", "set64", "get64", "get1-c1", "mget16", "set16-1k", "get16-1k",
	"get16-c1000", "mix30", "set10000-c10", "get10000-c10",
}

// workloads is the whole matrix. A name is the command, the pipeline, and what
// differs from values of 64 bytes and 50 clients.
var workloads = matrix()

func matrix() (all []workload) {
	add := func(w workload) { all = append(all, w) }
	for _, d := range []data{small, large} {
		for _, clients := range []int{50, 1, 1000} {
			for _, pipeline := range []int{1, 16, 64} {
				at := fmt.Sprint(pipeline)
				if d == large {
					at += "-1k"
				}
				if clients != 50 {
					at += fmt.Sprintf("-c%d", clients)
				}
				add(workload{name: "set" + at, title: "SET", clients: clients, pipeline: pipeline, sets: 1, data: d})
				add(workload{name: "get" + at, title: "GET", clients: clients, pipeline: pipeline, gets: 1, data: d})
				add(workload{name: "mget" + at, title: "MGET of 10", clients: clients,
					pipeline: pipeline, gets: 1, keysPerGet: 10, data: d})
			}
		}
	}
	add(workload{name: "mix30", title: "one SET to ten GETs", clients: 50, pipeline: 30, sets: 1, gets: 10, data: middle})
	// These are last, because twemproxy keeps the memory that it takes for them: gigabytes with 50
	// clients.
	add(workload{name: "set10000-c10", title: "SET", clients: 10, pipeline: 10_000, sets: 1, data: small})
	add(workload{name: "get10000-c10", title: "GET", clients: 10, pipeline: 10_000, gets: 1, data: small})
	return all
}

func usualWorkloads() (picked []workload) {
	for _, name := range usual {
		i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
		picked = append(picked, workloads[i])
	}
	return picked
}

func unusual() (left []workload) {
	for _, w := range workloads {
		if !slices.Contains(usual, w.name) {
			left = append(left, w)
		}
	}
	return left
}
