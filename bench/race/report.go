package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// saturated is the share of its processors above which the load generator itself may limit the
// speed.
const saturated = 0.95

// writeMachine prints the machine and the versions, without which the figures mean nothing to
// others. It keeps a short form for the picture.
func (r *race) writeMachine(ctx context.Context, w io.Writer, commandLine []string) {
	checkout := firstLine(ctx, "git", "describe", "--always", "--dirty")
	processors := fmt.Sprintf("%d processors %s", runtime.NumCPU(), processorName(readText("/proc/cpuinfo")))
	r.machine = fmt.Sprintf("%s, commit %s", processors, checkout)
	fmt.Fprintf(w, "%s, %s, load average %s, %s\n",
		time.Now().UTC().Format(time.DateOnly), processors, loadAverage(), runtime.Version())
	fmt.Fprintf(w, "race %s\n", strings.Join(commandLine, " "))
	fmt.Fprintf(w, "checkout: %s\n", checkout)
	for _, tool := range []string{dunlin, redisServer, memcached, nutcracker} {
		path := r.tools[tool]
		if path == "" {
			path, _ = findTool(tool) // if it is missing, the peer that needs it says so
		}
		if path != "" {
			fmt.Fprintf(w, "%s: %s\n", tool, firstLine(ctx, path, "--version"))
		}
	}
}

// firstLine returns the first line that a command prints on either output: nutcracker prints its
// version on the second.
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

// loadAverage returns the load average of the last minute.
func loadAverage() string {
	load, _, _ := strings.Cut(readText("/proc/loadavg"), " ")
	return load
}

func readText(file string) string {
	text, _ := os.ReadFile(file) // if it cannot be read, the line is shorter
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

// row is a line of a table and a bar of a picture.
type row struct {
	label, class string    // class: its colour in the picture
	samples      []*sample // empty: all runs failed
}

// group has rows that are compared with each other.
type group struct {
	title string
	rows  []row
}

// groupOf returns the rows of the peers in a workload.
func (r *race) groupOf(w workload) group {
	g := group{title: fmt.Sprintf("%s: %s, values of %d bytes, clients %d, pipeline %d",
		w.name, w.title, w.data.valueBytes, w.clients, w.pipeline)}
	for _, l := range r.live {
		g.rows = append(g.rows, row{l.name, colorOf(l.name), succeeded(r.results[cell{w.name, l.name}])})
	}
	return g
}

// write prints everything that was measured.
func (r *race) write(w io.Writer) {
	limited := false
	r.writeLegend(w)
	for _, work := range r.work {
		if r.measured(work) { // otherwise the race ended before it; failures are in the notes
			limited = writeGroup(w, r.groupOf(work)) || limited
		}
	}
	r.writeOpen(w)
	r.writeRatios(w)
	r.writeTargets(w)
	r.writeNotes(w, limited)
}

func (r *race) writeLegend(w io.Writer) {
	fmt.Fprintf(w, "\nMedians (least..most of the rounds), runs of %v. CPU: microseconds per operation; RSS: megabytes; by role. load is the load generator.\n", r.length)
}

func (r *race) writeNotes(w io.Writer, limited bool) {
	if limited {
		fmt.Fprintf(w, "\n* the load generator took over %.0f %% of its threads: the peer may be faster (--threads).\n", 100*saturated)
	}
	if len(r.notes) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(r.notes, "\n"))
	}
	fmt.Fprintf(w, "\nload average at the end, ours included: %s\n", loadAverage())
}

// writeGroup prints a table, and reports whether the load generator may have limited the speed.
func writeGroup(w io.Writer, g group) (limited bool) {
	fmt.Fprintf(w, "\n%s\n", g.title)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "  \tkops/s\tp50 ms\tp99 ms\tCPU node\tproxy\tload\tRSS node\tproxy")
	for _, x := range g.rows {
		if len(x.samples) == 0 {
			fmt.Fprintf(t, "  %s\tnot measured\n", x.label)
			continue
		}
		star := ""
		if slices.ContainsFunc(x.samples, func(s *sample) bool { return s.busy > saturated }) {
			limited, star = true, "*"
		}
		x.write(t, star)
	}
	_ = t.Flush() // text for people
	return limited
}

// write prints the row; star marks its speed.
func (x row) write(w io.Writer, star string) {
	show := func(format string, figure func(*sample) float64) string {
		return spreadFrom(x.samples, figure).text(format)
	}
	ofProxy := func(format string, figure func(*sample) float64) string {
		if x.samples[0].rss[roleProxy] == 0 {
			return "-" // there is none
		}
		return show(format, figure)
	}
	fmt.Fprintf(w, "  %s\t%s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.label,
		show("%.1f", func(s *sample) float64 { return s.ops / 1000 }), star,
		show("%.3f", func(s *sample) float64 { return s.p50 }),
		show("%.3f", func(s *sample) float64 { return s.p99 }),
		show("%.3f", func(s *sample) float64 { return s.cpu[roleNode] }),
		ofProxy("%.3f", func(s *sample) float64 { return s.cpu[roleProxy] }),
		show("%.3f", func(s *sample) float64 { return s.cpu[roleLoad] }),
		show("%.0f", func(s *sample) float64 { return s.rss[roleNode] }),
		ofProxy("%.0f", func(s *sample) float64 { return s.rss[roleProxy] }))
}

// writeOpen prints the results of the open loops.
func (r *race) writeOpen(w io.Writer) {
	for _, name := range openWork {
		title := fmt.Sprintf("\n%s in an open loop, at shares of each peer's own throughput above; ms from the time at which a batch was to leave."+
			"\nlate: the p99 of what is the load generator's own doing.\n", name)
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		for _, l := range r.live {
			for _, share := range shares {
				runs := r.steady[pace{cell{name, l.name}, share}]
				if len(runs) == 0 {
					continue
				}
				if title != "" {
					fmt.Fprint(w, title)
					fmt.Fprintln(t, "  peer\tat\tkops/s\tp50 ms\tp99 ms\tp99.9 ms\tlate ms")
				}
				title = "" // once, and not above nothing
				show := func(format string, figure func(*calm) float64) string { return spreadFrom(runs, figure).text(format) }
				fmt.Fprintf(t, "  %s\t%d %%\t%.1f\t%s\t%s\t%s\t%s\n", l.name, share, runs[0].rate/1000,
					show("%.3f", func(x *calm) float64 { return x.p50 }), show("%.2f", func(x *calm) float64 { return x.p99 }),
					show("%.2f", func(x *calm) float64 { return x.p999 }), show("%.2f", func(x *calm) float64 { return x.late }))
			}
		}
		_ = t.Flush() // text for people
	}
}

// writeRatios prints a line for each workload with the medians of all ratios.
func (r *race) writeRatios(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	header := "  ops/s, and CPU/op of the same two"
	for _, c := range ratios {
		who, isOps := strings.CutSuffix(c.text, ", ops/s")
		if !isOps {
			who = "CPU"
		}
		header += "\t" + who
	}
	fmt.Fprintln(t, header)
	lines := 0
	for _, work := range r.work {
		line, any := "", false
		for _, c := range ratios {
			shown := "-"
			if v := c.values(r.results[cell{work.name, c.of}], r.results[cell{work.name, c.than}]); len(v) > 0 {
				shown, any = fmt.Sprintf("%.2f", spreadOf(v).median), true
			}
			line += "\t" + shown
		}
		if any {
			fmt.Fprintf(t, "  %s%s\n", work.name, line)
			lines++
		}
	}
	if lines > 0 {
		fmt.Fprintln(w, "\nRatios within a round, medians")
		_ = t.Flush() // text for people
	}
}

// writeTargets prints every target whose two peers took part.
func (r *race) writeTargets(w io.Writer) {
	title := "\nTargets\n"
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

func succeeded(all []*sample) (ok []*sample) {
	for _, x := range all {
		if x != nil {
			ok = append(ok, x)
		}
	}
	return ok
}
