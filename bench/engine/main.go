package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// size says how much a table measures.
type size int

const (
	full  size = iota
	quick      // a few minutes for all tables
	tiny       // for the tests of this program: the figures mean nothing
	sizes      // how many
)

// options are the settings of a table.
type options struct {
	size     size
	keys     int    // instead of the table's own number, if above 0
	maxBytes int64  // instead of the table's own limit of memory, if above 0
	rows     string // of the hits and pauses: those whose name contains this
	say      io.Writer
}

// table answers one question.
type table struct {
	name, title string
	print       func(ctx context.Context, out io.Writer, o options) error
}

// tables lists all tables in the order in which they are printed.
var tables = []table{
	{"speed", "operations beside a map behind locks and fastcache", printSpeed},
	{"density", "what a key costs beyond its bytes and those of its value", printDensity},
	{"limit", "memory at its limit while sizes of values change", printLimit},
	{"pauses", "how long commands wait", printPauses},
	{"hits", "how many reads find their key, at equal bytes", printHits},
}

func main() {
	if actAsCase() {
		return
	}
	o := options{say: os.Stderr}
	var names []string
	for _, t := range tables {
		names = append(names, t.name)
	}
	list := flag.String("tables", strings.Join(names, ","), "which, separated by commas")
	less := flag.Bool("quick", false, "smaller and fewer runs: about three minutes in all")
	flag.IntVar(&o.keys, "keys", 0, "number of keys, for the tables that have one; 0: theirs")
	mib := flag.Int64("mib", 0, "limit of memory in MiB, for the tables that run at one; 0: theirs")
	flag.StringVar(&o.rows, "rows", "", "of the hits and pauses, only the rows whose name contains this")
	flag.Parse()
	if *less {
		o.size = quick
	}
	o.maxBytes = *mib << 20
	if err := run(os.Stdout, *list, o); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

// run prints the tables that a comma-separated list names, in its order.
func run(out io.Writer, list string, o options) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second ctrl-C ends this process at once, and the kernel ends the cases
	picked, err := pick(list)
	if err != nil {
		return err
	}
	for _, t := range picked {
		fmt.Fprintf(out, "\n%s: %s\n", t.name, t.title)
		writeMachine(ctx, out)
		if err := t.print(ctx, out, o); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}

func pick(list string) (picked []table, err error) {
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, t := range tables {
			if t.name == name {
				picked = append(picked, t)
				continue next
			}
		}
		return nil, fmt.Errorf("there is no table %q", name)
	}
	return picked, nil
}
