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
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/bench/load"
)

type options struct {
	rounds, threads int
	work, only      string // comma-separated names; empty: the usual ones, all
	full, open      bool
	length          time.Duration
	keys            int
	binary, picture string
	curves, types   string
	amount          typesOptions
	limit           time.Duration
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == relayCommand {
		fmt.Fprintln(os.Stderr, "relay:", runRelay(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 3, "how often every workload runs on every peer")
	flag.StringVar(&o.work, "work", "", "workloads, separated by commas; empty: "+strings.Join(usual, ",")+"; there are also, and with --full all are run: "+strings.Join(namesOf(unusual(), workloadName), ","))
	flag.BoolVar(&o.full, "full", false, "run the whole matrix of workloads: ten minutes a round")
	flag.BoolVar(&o.open, "open", true, "after the rounds, load every peer in an open loop at 50, 70 and 90 % of what it did in get1 and get16")
	flag.StringVar(&o.only, "only", "", "peers, separated by commas: "+strings.Join(namesOf(peers, peerName), ","))
	flag.DurationVar(&o.length, "time", 1500*time.Millisecond, "how long a run loads a peer")
	flag.IntVar(&o.threads, "threads", 1, "threads of the load generator")
	flag.IntVar(&o.keys, "keys", 1_000_000, "keys of 64 bytes that every peer is filled with; a tenth of it of 256 and of 1,024")
	flag.StringVar(&o.binary, "binary", "", "a dunlin binary; empty: build one from this checkout")
	flag.StringVar(&o.curves, "curves", "", "no race, but what a command costs as one thing grows; some of: all,"+strings.Join(namesOf(curves, curveName), ","))
	flag.StringVar(&o.types, "types", "", "no race, but collections, streams, scripts, tracking, pub/sub and blocking commands: all, or some of "+strings.Join(namesOf(typesParts, typesPartName), ","))
	flag.BoolVar(&o.amount.short, "short", false, "of collections, fewer and shorter runs: two minutes")
	flag.BoolVar(&o.amount.huge, "huge", false, "of collections, values of 10 million elements, too")
	flag.IntVar(&o.amount.crowd, "crowd", 10_000, "clients that wait in BLPOP at once; needs one descriptor for each")
	flag.StringVar(&o.picture, "picture", "", "write an SVG picture of the results to this file")
	flag.DurationVar(&o.limit, "limit", 0, "end the race after this time, with what was measured; 0: 30 minutes, with --types 45, with --full two hours")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "race:", err)
		os.Exit(1)
	}
}

// errLimit is the cause when a race ends for --limit.
var errLimit = errors.New("the race ran into --limit: the figures are those of the rounds before")

func (o *options) check() (work []workload, entered []peer, err error) {
	work = usualWorkloads()
	if o.full {
		work = workloads
	}
	if o.work != "" {
		if work, err = pick("workload", o.work, workloads, workloadName); err != nil {
			return nil, nil, err
		}
	}
	if entered, err = pick("peer", o.only, peers, peerName); err != nil {
		return nil, nil, err
	}
	if o.rounds < 1 || o.keys < 1 || o.threads < 1 || o.length <= 0 || flag.NArg() > 0 {
		return nil, nil, fmt.Errorf("--rounds, --keys, --threads and --time must be above 0, and there are no arguments; got %q", os.Args[1:])
	}
	if o.limit == 0 {
		o.limit = 30 * time.Minute
		if o.types != "" {
			o.limit = 45 * time.Minute
		}
		if o.full {
			o.limit = 2 * time.Hour
		}
	}
	return work, entered, nil
}

// run runs the race. However it ends, the servers end with it.
func run(o options) error {
	work, entered, err := o.check()
	if err != nil {
		return err
	}
	picked, err := pick("curve", strings.TrimPrefix(o.curves, "all"), curves, curveName)
	if err != nil {
		return err
	}
	parts, err := pick("part", strings.TrimPrefix(o.types, "all"), typesParts, typesPartName)
	if err != nil {
		return err
	}
	// Workers of package load keep their processor while they wait.
	runtime.GOMAXPROCS(max(runtime.NumCPU(), o.threads+1))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second ctrl-C ends this process at once, and the kernel ends the servers
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errLimit)
	defer cancel()

	s, err := newStable(o.amount.crowd)
	if err != nil {
		return err
	}
	defer s.close()
	r := &race{work: work, rounds: o.rounds, length: o.length, keys: o.keys, threads: o.threads, say: os.Stderr,
		load: load.Run, tools: map[string]string{}, results: map[cell][]*sample{}, steady: map[pace][]*calm{}}
	if r.tools[dunlin], err = dunlinBinary(ctx, o.binary, s.dir); err != nil {
		return err
	}
	r.writeMachine(ctx, os.Stdout, os.Args[1:])
	var picture []byte
	switch {
	case o.types != "":
		r.keys = 1 // of strings, which are not measured
		err = r.runTypes(ctx, s, parts, o.amount, os.Stdout)
	case o.curves != "":
		picture, err = r.allCurves(ctx, s, picked)
	default:
		picture, err = r.whole(ctx, s, entered, o.open)
	}
	if o.picture != "" && picture != nil {
		err = errors.Join(err, os.WriteFile(o.picture, picture, 0o644))
	}
	return err
}

// whole runs a race and prints it, even if it ended early.
func (r *race) whole(ctx context.Context, s *stable, entered []peer, open bool) (picture []byte, err error) {
	if err := r.prepare(ctx, s, entered); err != nil {
		return nil, err
	}
	err = r.run(ctx)
	if err == nil && open {
		err = r.runOpen(ctx)
	}
	r.write(os.Stdout)
	return r.draw(), err
}

// allCurves measures curves and prints them, even if it ended early.
func (r *race) allCurves(ctx context.Context, s *stable, picked []curve) (picture []byte, err error) {
	err = r.runCurves(ctx, s, picked)
	r.writeCurves(os.Stdout, picked)
	return r.drawCurves(picked), err
}

// dunlinBinary returns the absolute path of the given binary, or of a new one in dir, built as
// releases are.
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

// pick returns the elements of all that a comma-separated list names, in the order of all. An empty
// list names every element.
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
