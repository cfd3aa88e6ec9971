package main

import (
	"fmt"
	"math"
	"slices"
)

// target is a figure that one peer should reach in a workload, relative to another peer.
type target struct {
	work string
	ratio
	bound  float64
	atMost bool // else at least
	unit   string
}

// speedTargets are the target ratios by the pipeline of a workload.
var speedTargets = []struct {
	works            []string
	nodeOps, nodeCPU float64 // node, against redis
	// A proxy with three nodes, against twemproxy with three redis-servers, and against one
	// redis-server.
	proxyTwemproxyOps, proxyRedOps float64
}{
	{[]string{"set1", "get1"}, 1.0, 1.0, 1.15, 0.85},
	{[]string{"set16", "get16"}, 1.7, 0.6, 2.2, 1.2},
	{[]string{"set64", "get64"}, 2.3, 0.5, 4, 1.6},
}

// hopMicros is how many microseconds a proxy may add to the median latency of one client.
const hopMicros = 20

// relayRatio is how many times as long as behind a bare relay one client may wait behind a proxy.
const relayRatio = 1.05

// ratio compares two peers.
type ratio struct {
	text     string
	of, than string
	measure  func(of, than *sample) float64
}

// The ratios that every workload shows; four of them have targets in some workloads.
var (
	nodeOps  = ratio{"node vs redis, ops/s", "dunlin-node", "redis", opsRatio}
	nodeCPU  = ratio{"node vs redis, CPU/op", "dunlin-node", "redis", cpuRatio}
	proxyOps = ratio{"proxy vs twemproxy, ops/s", "dunlin+3", "twemproxy+3", opsRatio}
	proxyOne = ratio{"proxy vs one redis, ops/s", "dunlin+3", "redis", opsRatio}

	ratios = []ratio{
		nodeOps, nodeCPU,
		{"node vs memcached, ops/s", "dunlin-node", "memcached", opsRatio},
		{"node vs memcached, CPU/op", "dunlin-node", "memcached", cpuRatio},
		proxyOps,
		{"proxy vs twemproxy, CPU/op", "dunlin+3", "twemproxy+3", cpuRatio},
		proxyOne,
	}
)

func targets() (all []target) {
	for _, t := range speedTargets {
		for _, w := range t.works {
			all = append(all,
				target{work: w, ratio: nodeOps, bound: t.nodeOps},
				target{work: w, ratio: nodeCPU, bound: t.nodeCPU, atMost: true},
				target{work: w, ratio: proxyOps, bound: t.proxyTwemproxyOps},
				target{work: w, ratio: proxyOne, bound: t.proxyRedOps})
		}
	}
	hop := ratio{"proxy adds to a node's p50", "dunlin+3", "dunlin-node", addedMicros}
	bare := ratio{"proxy's p50 vs a relay's", "dunlin+3", "relay+1", p50Ratio}
	return append(all, target{work: "get1-c1", ratio: hop, bound: hopMicros, atMost: true, unit: " µs"},
		target{work: "get1-c1", ratio: bare, bound: relayRatio, atMost: true})
}

func opsRatio(of, than *sample) float64    { return of.ops / than.ops }
func p50Ratio(of, than *sample) float64    { return of.p50 / than.p50 }
func cpuRatio(of, than *sample) float64    { return of.serverCPU() / than.serverCPU() }
func addedMicros(of, than *sample) float64 { return (of.p50 - than.p50) * 1000 }

// serverCPU returns the processor time of all processes of the peer, in microseconds per operation.
func (x *sample) serverCPU() float64 { return x.cpu[roleNode] + x.cpu[roleProxy] }

// values pairs the samples of two peers round by round, and leaves out rounds in
// which one failed, or was too short for the kernel's clock to see.
func (t ratio) values(of, than []*sample) (all []float64) {
	for i := range min(len(of), len(than)) {
		if of[i] == nil || than[i] == nil {
			continue
		}
		if v := t.measure(of[i], than[i]); !math.IsNaN(v) && !math.IsInf(v, 0) {
			all = append(all, v)
		}
	}
	return all
}

// verdict says whether a figure reaches the bound, or by how much it misses it.
func (t target) verdict(v float64) string {
	switch {
	case t.atMost && v <= t.bound || !t.atMost && v >= t.bound:
		return "reached"
	case t.unit != "":
		return fmt.Sprintf("NOT by %.0f%s", v-t.bound, t.unit)
	default:
		return fmt.Sprintf("NOT by %.0f %%", 100*math.Abs(v/t.bound-1))
	}
}

// spread summarizes a figure over the rounds.
type spread struct{ median, least, most float64 }

// spreadOf sorts values in place. There must be at least one.
func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{median: (values[(n-1)/2] + values[n/2]) / 2, least: values[0], most: values[n-1]}
}

// text shows the spread with a format for one figure; of one round, the figure alone.
func (s spread) text(format string) string {
	median := fmt.Sprintf(format, s.median)
	if s.least == s.most {
		return median
	}
	return fmt.Sprintf("%s ("+format+".."+format+")", median, s.least, s.most)
}

// medianOf returns the median of a figure. There must be at least one sample.
func medianOf[T any](samples []T, figure func(T) float64) float64 {
	return spreadFrom(samples, figure).median
}

func spreadFrom[T any](samples []T, figure func(T) float64) spread {
	var values []float64
	for _, x := range samples {
		values = append(values, figure(x))
	}
	return spreadOf(values)
}
