package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// valueBytes is the size of every value, in the fill and in SET.
	valueBytes = 64
	// runLimit bounds one run of redis-benchmark at --requests-scale 1, where a run
	// takes two to five seconds on two processors.
	runLimit = 60 * time.Second
)

// workload is one call of redis-benchmark.
type workload struct {
	name, title       string
	clients, pipeline int
	requests          int      // at scale 1: some seconds
	command           []string // redis-benchmark's own words for what is sent
}

// keyWord becomes a random number below -r, with 12 digits, each time it is sent.
const keyWord = "key:__rand_int__"

var workloads = []workload{
	{"set1", "SET", 50, 1, 200_000, []string{"-t", "set"}},
	{"get1", "GET", 50, 1, 200_000, []string{"-t", "get"}},
	{"set16", "SET", 50, 16, 1_500_000, []string{"-t", "set"}},
	{"get16", "GET", 50, 16, 1_500_000, []string{"-t", "get"}},
	{"set64", "SET", 50, 64, 3_000_000, []string{"-t", "set"}},
	{"get64", "GET", 50, 64, 3_000_000, []string{"-t", "get"}},
	{"c1", "GET", 1, 1, 40_000, []string{"-t", "get"}},
	{"mget10", "MGET of 10", 50, 4, 100_000, append([]string{"mget"}, slices.Repeat([]string{keyWord}, 10)...)},
}

// count is how many requests a run makes: never less than what fills the
// pipelines of all clients ten times.
func (w workload) count(scale float64) int {
	return max(int(float64(w.requests)*scale), 10*w.clients*w.pipeline)
}

// arguments for redis-benchmark. A command of our own comes after all options,
// so the workload's words are last.
func (w workload) arguments(addr string, requests, keys int) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("cannot split address %q: %w", addr, err)
	}
	n := strconv.Itoa
	options := []string{"-h", host, "-p", port, "--csv", "-n", n(requests), "-c", n(w.clients),
		"-P", n(w.pipeline), "-d", n(valueBytes), "-r", n(keys)}
	return append(options, w.command...), nil
}

// speed is what redis-benchmark reports.
type speed struct {
	ops      float64 // a second
	p50, p99 float64 // milliseconds
}

// load runs redis-benchmark against addr, and returns also the processor time
// that it took itself.
func (w workload) load(ctx context.Context, tool, addr string, requests, keys int, limit time.Duration) (speed, time.Duration, error) {
	arguments, err := w.arguments(addr, requests, keys)
	if err != nil {
		return speed{}, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, arguments...)
	cmd.SysProcAttr = ownGroup()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return speed{}, 0, fmt.Errorf("redis-benchmark did not finish within %v", limit)
	case err != nil:
		return speed{}, 0, fmt.Errorf("cannot run redis-benchmark: %w: %s", err, lastLine(stderr.String()))
	}
	s, err := parseSpeed(out)
	return s, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// parseSpeed reads the output of redis-benchmark --csv: a line of titles and a
// line of figures. The columns are found by their titles, because versions
// differ in which they have.
func parseSpeed(out []byte) (speed, error) {
	in := csv.NewReader(bytes.NewReader(out))
	in.FieldsPerRecord = -1
	lines, err := in.ReadAll()
	if err != nil {
		return speed{}, fmt.Errorf("cannot read redis-benchmark's figures: %w", err)
	}
	if len(lines) != 2 || len(lines[0]) != len(lines[1]) {
		return speed{}, fmt.Errorf("redis-benchmark printed %q: want a line of titles (version 6.2 or newer) and one of figures", out)
	}
	figure := func(title string) float64 {
		column := slices.Index(lines[0], title)
		if column < 0 {
			err = errors.Join(err, fmt.Errorf("redis-benchmark printed no column %q", title))
			return 0
		}
		value, bad := strconv.ParseFloat(lines[1][column], 64)
		err = errors.Join(err, bad)
		return value
	}
	s := speed{ops: figure("rps"), p50: figure("p50_latency_ms"), p99: figure("p99_latency_ms")}
	if err == nil && s.ops <= 0 {
		err = fmt.Errorf("redis-benchmark printed %q: no requests", lines[1])
	}
	return s, err
}

// lastLine is the last line of text that says something: where programs tell
// why they gave up.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
