package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

type options struct {
	rounds     int
	work, only string // comma-separated names; empty: all
	scale      float64
	keys       int
	binary     string
	limit      time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 3, "how often every workload runs on every peer")
	flag.StringVar(&o.work, "work", "", "workloads, separated by commas: "+strings.Join(namesOf(workloads, workloadName), ","))
	flag.StringVar(&o.only, "only", "", "peers, separated by commas: "+strings.Join(namesOf(peers, peerName), ","))
	flag.Float64Var(&o.scale, "requests-scale", 1, "multiplies the number of requests of every run")
	flag.IntVar(&o.keys, "keys", 1_000_000, "keys that every peer is filled with")
	flag.StringVar(&o.binary, "binary", "", "a dunlin binary; empty: build one from this checkout")
	flag.DurationVar(&o.limit, "limit", 30*time.Minute, "end the race after this time, with what was measured")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "race:", err)
		os.Exit(1)
	}
}

// errLimit is the cause when a race ends for --limit.
var errLimit = errors.New("the race ran into --limit: the figures are those of the rounds before")

// run is the race. Whatever way it ends, servers end with it.
func run(o options) error {
	work, err := pick("workload", o.work, workloads, workloadName)
	if err != nil {
		return err
	}
	entered, err := pick("peer", o.only, peers, peerName)
	if err != nil {
		return err
	}
	if o.rounds < 1 || o.keys < 1 || o.scale <= 0 || flag.NArg() > 0 {
		return fmt.Errorf("--rounds, --keys and --requests-scale must be above 0, and there are no arguments; got %q", os.Args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second ctrl-C ends us at once, and the kernel the servers
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errLimit)
	defer cancel()

	s, err := newStable()
	if err != nil {
		return err
	}
	defer s.close()
	r := &race{work: work, rounds: o.rounds, scale: o.scale, keys: o.keys, say: os.Stderr,
		tools: map[string]string{}, results: map[cell][]*sample{}}
	if r.tools[redisBenchmark], err = findTool(redisBenchmark); err != nil {
		return err // nothing can be measured without
	}
	if r.tools[dunlin], err = dunlinBinary(ctx, o.binary, s.dir); err != nil {
		return err
	}
	if err := r.prepare(ctx, s, entered); err != nil {
		return err
	}
	r.writeMachine(ctx, os.Stdout, os.Args[1:])
	err = r.run(ctx)
	r.inspect(ctx)
	r.write(os.Stdout)
	return err
}

// dunlinBinary is the absolute name of the given binary, or of a new one in
// dir, built as releases are.
func dunlinBinary(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	fmt.Fprintln(os.Stderr, "building dunlin")
	file := filepath.Join(dir, "dunlin")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", file, "github.com/dunlin-cache/dunlin/cmd/dunlin")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build dunlin: %w\n%s", err, out)
	}
	return file, nil
}

func workloadName(w workload) string { return w.name }
func peerName(p peer) string         { return p.name }

func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, x := range all {
		names = append(names, name(x))
	}
	return names
}

// pick returns those of all that a comma-separated list names, in the order of
// all; every one for the empty list.
func pick[T any](kind, list string, all []T, name func(T) string) ([]T, error) {
	if list == "" {
		return all, nil
	}
	asked := map[string]bool{}
	for word := range strings.SplitSeq(list, ",") {
		asked[word] = true
	}
	var picked []T
	for _, x := range all {
		if asked[name(x)] {
			picked = append(picked, x)
			delete(asked, name(x))
		}
	}
	for word := range asked {
		return nil, fmt.Errorf("unknown %s %q: want some of %s", kind, word, strings.Join(namesOf(all, name), ","))
	}
	return picked, nil
}
