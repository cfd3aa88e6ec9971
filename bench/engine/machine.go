package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// writeMachine prints the machine and the versions, without which the figures mean nothing to
// others.
func writeMachine(ctx context.Context, w io.Writer) {
	load, _, _ := strings.Cut(readText("/proc/loadavg"), " ")
	memory, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	fmt.Fprintf(w, "%s, %d processors %s, %.0f GiB, Linux %s, load average %s, %s, commit %s\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), field("/proc/cpuinfo", "model name"),
		float64(memory)/(1<<20), strings.TrimSpace(readText("/proc/sys/kernel/osrelease")), load,
		runtime.Version(), commit(ctx))
}

func commit(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// field returns what follows the first "name:" in a file of /proc, or "".
func field(file, name string) string {
	for line := range strings.Lines(readText(file)) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func readText(file string) string {
	text, _ := os.ReadFile(file) // if it cannot be read, the line is shorter
	return string(text)
}

// residentBytes returns the resident memory of a process. pid 0 is this process.
func residentBytes(pid int) (int64, error) {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	text, err := os.ReadFile("/proc/" + name + "/statm")
	if err != nil {
		return 0, fmt.Errorf("cannot read resident memory: %w", err)
	}
	var total, resident int64
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		return 0, fmt.Errorf("cannot read resident memory in %q: %w", text, err)
	}
	return resident * int64(os.Getpagesize()), nil
}
