package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// saturated is the share of a processor from which on redis-benchmark, which
	// has one thread, may be what limits the speed.
	saturated = 0.95
	// shortRun is the time under which ticks of 10 ms and the machine's other work
	// make up much of a figure.
	shortRun = time.Second
)

// writeMachine says where and with what the figures were taken: without that
// they mean nothing to others.
func (r *race) writeMachine(ctx context.Context, w io.Writer, commandLine []string) {
	load, _, _ := strings.Cut(readText("/proc/loadavg"), " ")
	fmt.Fprintf(w, "%s, %d processors %s, load average %s, %s\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), processorName(readText("/proc/cpuinfo")), load, runtime.Version())
	fmt.Fprintf(w, "race %s\n", strings.Join(commandLine, " "))
	fmt.Fprintf(w, "checkout: %s\n", firstLine(ctx, "git", "describe", "--always", "--dirty"))
	for _, tool := range []string{dunlin, redisServer, nutcracker, redisBenchmark} {
		if path := r.tools[tool]; path != "" {
			fmt.Fprintf(w, "%s: %s\n", tool, firstLine(ctx, path, "--version"))
		}
	}
}

// firstLine of what a command prints, on either output: nutcracker's version is
// on the second.
func firstLine(ctx context.Context, command string, arguments ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, command, arguments...).CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil && line == "" {
		return "unknown"
	}
	return line
}

func readText(file string) string {
	text, _ := os.ReadFile(file) // without it the line is shorter
	return string(text)
}

func processorName(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "of unknown make"
}

// write prints all that was measured.
func (r *race) write(w io.Writer) {
	fmt.Fprint(w, "\nMedians (least..most of the rounds). CPU: microseconds per operation, by role; load is redis-benchmark.\n")
	limited, short := false, false
	for _, work := range r.work {
		if !r.measured(work) {
			continue // interrupted before; failures are in the notes
		}
		l, s := r.writeWorkload(w, work)
		limited, short = limited || l, short || s
	}
	r.writeTargets(w)
	if limited {
		fmt.Fprintf(w, "\n* redis-benchmark took over %.0f %% of one processor, and has one thread: the peer may be faster.\n", 100*saturated)
	}
	if short {
		fmt.Fprintf(w, "\nSome runs took less than %v: their figures are rough.\n", shortRun)
	}
	if len(r.notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(r.notes, "\n"))
	}
}

// writeWorkload prints a table with a line for each peer. It returns whether the
// load generator was a limit, and whether runs were too short.
func (r *race) writeWorkload(w io.Writer, work workload) (limited, short bool) {
	fmt.Fprintf(w, "\n%s: %s, clients %d, pipeline %d, requests %d\n",
		work.name, work.title, work.clients, work.pipeline, work.count(r.scale))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "  peer\tkops/s\tp50 ms\tp99 ms\tCPU node\tCPU proxy\tCPU load\tRSS MB")
	for _, l := range r.live {
		ok := succeeded(r.results[cell{work.name, l.name}])
		if len(ok) == 0 {
			fmt.Fprintf(t, "  %s\tnot measured\n", l.name)
			continue
		}
		star := ""
		for _, x := range ok {
			short = short || x.took < shortRun
			if x.busy > saturated {
				limited, star = true, "*"
			}
		}
		writeSamples(t, l, ok, star)
	}
	_ = t.Flush() // text for people
	return limited, short
}

// writeSamples prints a peer's line; star marks its speed.
func writeSamples(w io.Writer, l *live, samples []*sample, star string) {
	show := func(format string, figure func(*sample) float64) string {
		var values []float64
		for _, x := range samples {
			values = append(values, figure(x))
		}
		return spreadOf(values).text(format)
	}
	cpu := func(of role) string {
		if of == roleProxy && !l.has(roleProxy) {
			return "-"
		}
		return show("%.2f", func(x *sample) float64 { return x.cpu[of] })
	}
	fmt.Fprintf(w, "  %s\t%s%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.name,
		show("%.1f", func(x *sample) float64 { return x.ops / 1000 }), star,
		show("%.3f", func(x *sample) float64 { return x.p50 }),
		show("%.3f", func(x *sample) float64 { return x.p99 }),
		cpu(roleNode), cpu(roleProxy), cpu(roleLoad),
		show("%.0f", func(x *sample) float64 { return x.rss }))
}

// writeTargets prints every target whose two peers took part.
func (r *race) writeTargets(w io.Writer) {
	title := "\nTargets: ratios within a round\n"
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, goal := range targets() {
		values := goal.values(r.results[cell{goal.work, goal.of}], r.results[cell{goal.work, goal.than}])
		if len(values) == 0 {
			continue
		}
		fmt.Fprint(w, title)
		title = "" // once, and not above nothing
		sign := ">="
		if goal.atMost {
			sign = "<="
		}
		s := spreadOf(values)
		fmt.Fprintf(t, "  %s\t%s\t%s %g%s\t%s\t%s\n",
			goal.work, goal.text, sign, goal.bound, goal.unit, s.text("%.2f"), goal.verdict(s.median))
	}
	_ = t.Flush() // text for people
}

func (r *race) measured(work workload) bool {
	for _, l := range r.live {
		if len(succeeded(r.results[cell{work.name, l.name}])) > 0 {
			return true
		}
	}
	return false
}

func (l *live) has(r role) bool {
	for _, p := range l.procs {
		if p.role == r {
			return true
		}
	}
	return false
}

func succeeded(all []*sample) (ok []*sample) {
	for _, x := range all {
		if x != nil {
			ok = append(ok, x)
		}
	}
	return ok
}
