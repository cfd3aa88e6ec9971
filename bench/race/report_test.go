package main

import (
	"strings"
	"testing"
	"time"
)

const wantReport = `
Medians (least..most of the rounds). CPU: microseconds per operation, by role; load is redis-benchmark.

get16: GET, clients 50, pipeline 16, requests 1500000
  peer          kops/s                  p50 ms   p99 ms                CPU node           CPU proxy   CPU load   RSS MB
  redis         500.0 (400.0..600.0)    1.500    3.000                 1.50 (1.25..1.75)  -           0.50       150
  twemproxy+3   not measured
  dunlin+3      1000.0 (900.0..1100.0)* 0.750    1.500                 0.75               1.00        0.50       200

Targets: ratios within a round
  get16   proxy vs one redis, ops/s   >= 1.2   2.04 (1.83..2.25)   reached

* redis-benchmark took over 95 % of one processor, and has one thread: the peer may be faster.

Some runs took less than 1s: their figures are rough.

twemproxy+3 had a bad day
`

func TestReport(t *testing.T) {
	single := []*process{{role: roleNode}}
	r := &race{work: workloads[3:5], scale: 1, notes: []string{"twemproxy+3 had a bad day"},
		live: []*live{{name: "redis", procs: single}, {name: "twemproxy+3"},
			{name: "dunlin+3", procs: []*process{{role: roleNode}, {role: roleProxy}}}},
		results: map[cell][]*sample{
			{"get16", "redis"}: {
				{speed: speed{400_000, 1.5, 3}, cpu: [roles]float64{1.25, 0, 0.5}, rss: 150, took: 2 * time.Second},
				{speed: speed{600_000, 1.5, 3}, cpu: [roles]float64{1.75, 0, 0.5}, rss: 150, took: 2 * time.Second},
			},
			{"get16", "twemproxy+3"}: {nil, nil},
			{"get16", "dunlin+3"}: {
				{speed: speed{900_000, 0.75, 1.5}, cpu: [roles]float64{0.75, 1, 0.5}, rss: 200, took: 2 * time.Second, busy: 0.96},
				{speed: speed{1_100_000, 0.75, 1.5}, cpu: [roles]float64{0.75, 1, 0.5}, rss: 200, took: time.Second / 2},
			},
		}}
	var out strings.Builder // has no set64: nobody came to it
	r.write(&out)
	// How wide columns are is not the point: compare with single spaces.
	if got, want := squeeze(out.String()), squeeze(wantReport); got != want {
		t.Errorf("the report is\n%s\nwant (apart from spaces)\n%s", out.String(), wantReport)
	}
}

func squeeze(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestProcessorName(t *testing.T) {
	f := func(cpuinfo, want string) {
		t.Helper()
		if got := processorName(cpuinfo); got != want {
			t.Errorf("the processor is %q: want %q", got, want)
		}
	}
	f("processor\t: 0\nmodel name\t: Fast: 9000\nmodel name\t: other\n", "Fast: 9000")
	f("processor\t: 0\n", "of unknown make") // as on some ARM machines
	f("", "of unknown make")
}
