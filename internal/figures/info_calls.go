package figures

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
)

// infoCommandStats estimates usec, the time of all calls, from the sampled calls. It is 0 without a
// sample.
func (p *Process) infoCommandStats(t *text, in *Info) {
	in.eachCommand(func(name string, c *CommandCalls) {
		mean := 0.0
		if c.Times != nil {
			mean = c.Times.mean() / 1000
		}
		t.line("cmdstat_"+name, fmt.Sprintf("calls=%d,usec=%.0f,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
			c.Calls, mean*float64(c.Calls), mean, c.Rejected, c.Failed))
	})
}

func (p *Process) infoErrorStats(t *text, in *Info) {
	if in.Calls == nil {
		return
	}
	for _, code := range slices.Sorted(maps.Keys(in.Calls.Errors)) {
		t.line("errorstat_"+code, "count="+strconv.FormatInt(in.Calls.Errors[code], 10))
	}
}

func (p *Process) infoLatencyStats(t *text, in *Info) {
	in.eachCommand(func(name string, c *CommandCalls) {
		if c.Times == nil {
			return
		}
		micros := func(p float64) float64 { return float64(c.Times.percentile(p)) / 1000 }
		t.line("latency_percentiles_usec_"+name, fmt.Sprintf("p50=%.3f,p99=%.3f,p99.9=%.3f",
			micros(50), micros(99), micros(99.9)))
	})
}

// eachCommand visits the commands that were called.
func (in *Info) eachCommand(f func(name string, c *CommandCalls)) {
	if in.Calls == nil {
		return
	}
	for id := range in.Calls.Commands {
		if c := &in.Calls.Commands[id]; c.any() {
			f(command.ByID(command.ID(id)).Name, c)
		}
	}
}

// AppendLatencyHistogram answers LATENCY HISTOGRAM [command...]: how many of
// the timed calls took at most 1, 2, 4, ... microseconds.
func AppendLatencyHistogram(dst []byte, v resp.Version, args [][]byte, calls *Calls) []byte {
	var body []byte
	n := 0
	in := Info{Calls: calls}
	in.eachCommand(func(name string, c *CommandCalls) {
		if c.Times == nil || !namesCommand(args[2:], name) {
			return
		}
		n++
		body = resp.AppendBulkString(body, name)
		body = resp.AppendMap(body, v, 2)
		body = resp.AppendBulkString(body, "calls")
		body = resp.AppendInt(body, c.Times.Count)
		body = resp.AppendBulkString(body, "histogram_usec")
		body = c.Times.appendHistogram(body, v)
	})
	return append(resp.AppendMap(dst, v, n), body...)
}

// namesCommand reports whether a command, or the container of a subcommand, is
// among the names given; none means all.
func namesCommand(names [][]byte, name string) bool {
	if len(names) == 0 {
		return true
	}
	container, _, _ := strings.Cut(name, "|")
	return slices.ContainsFunc(names, func(n []byte) bool { return command.EqualFold(n, name) || command.EqualFold(n, container) })
}

func (d *Durations) appendHistogram(dst []byte, v resp.Version) []byte {
	var body []byte
	n, seen, shown, next := 0, int64(0), int64(0), 0
	for micros := int64(1); next < durationBuckets; micros *= 2 {
		for next < durationBuckets && bucketEnd(next) <= micros*1000 {
			seen += d.Buckets[next]
			next++
		}
		if seen > shown {
			body = resp.AppendInt(resp.AppendInt(body, micros), seen)
			n, shown = n+1, seen
		}
	}
	return append(resp.AppendMap(dst, v, n), body...)
}
