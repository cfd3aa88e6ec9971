package main

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

const wantReport = `
Medians (least..most of the rounds), runs of 1s. CPU: microseconds per operation; RSS: megabytes; by role. load is the load generator.

get16: GET, values of 64 bytes, clients 50, pipeline 16
                kops/s                  p50 ms   p99 ms   CPU node            proxy   load   RSS node   proxy
  redis         500.0 (400.0..600.0)    1.500    3.000    1.500 (1.250..1.750) - 0.500 150        -
  twemproxy+3   not measured
  dunlin+3      1000.0 (900.0..1100.0)* 0.750    1.500    0.750 1.000 0.500 200        30

get16 in an open loop, at shares of each peer's own throughput above; ms from the time at which a batch was to leave.
late: the p99 of what is the load generator's own doing.
  peer    at     kops/s   p50 ms   p99 ms             p99.9 ms   late ms
  redis   70 %   350.0    0.100    1.50 (1.00..2.00)   3.00       0.05

Ratios within a round, medians
  ops/s, and CPU/op of the same two   node vs redis   CPU   node vs memcached   CPU   proxy vs twemproxy   CPU   proxy vs one redis
  get16                               -               -     -                   -     -                    -     2.04

Targets
  get16   proxy vs one redis, ops/s   >= 1.2   2.04 (1.83..2.25)   reached

* the load generator took over 95 % of its threads: the peer may be faster (--threads).

twemproxy+3 had a bad day

load average at the end, ours included: `

func TestReport(t *testing.T) {
	work, err := pick("workload", "get16,set64", workloads, workloadName)
	if err != nil {
		t.Fatal(err)
	}
	redis := func(ops, cpu float64) *sample {
		return &sample{ops: ops, p50: 1.5, p99: 3, cpu: [roles]float64{cpu, 0, 0.5}, rss: [roles]float64{150}}
	}
	dunlin := func(ops, busy float64) *sample {
		return &sample{ops: ops, p50: 0.75, p99: 1.5, cpu: [roles]float64{0.75, 1, 0.5},
			rss: [roles]float64{200, 30}, busy: busy}
	}
	r := &race{work: work, length: time.Second, notes: []string{"twemproxy+3 had a bad day"},
		live: []*live{{name: "redis"}, {name: "twemproxy+3"}, {name: "dunlin+3"}},
		results: map[cell][]*sample{
			{"get16", "redis"}:       {redis(400_000, 1.25), redis(600_000, 1.75)},
			{"get16", "twemproxy+3"}: {nil, nil},
			{"get16", "dunlin+3"}:    {dunlin(900_000, 0.96), dunlin(1_100_000, 0)},
		},
		steady: map[pace][]*calm{{cell{"get16", "redis"}, 70}: {
			{rate: 350_000, p50: 0.1, p99: 1, p999: 3, late: 0.05}, {rate: 350_000, p50: 0.1, p99: 2, p999: 3, late: 0.05}}},
	}
	var out strings.Builder // without set64, which was never measured
	r.write(&out)
	// The widths of columns do not matter: compare with single spaces.
	report, load, _ := strings.Cut(out.String(), "included: ")
	if _, err := strconv.ParseFloat(strings.TrimSpace(load), 64); err != nil {
		t.Errorf("the load average is %q", load)
	}
	if got, want := squeeze(report+"included: "), squeeze(wantReport); got != want {
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
