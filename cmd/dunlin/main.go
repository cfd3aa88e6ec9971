package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameRequest is how long after the first signal a further one counts as the same request.
const sameRequest = 500 * time.Millisecond

func main() {
	ctx, cancel := stopSignals()
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process: tests call it with a context of their own.
// It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(stderr, "dunlin: %v\n", err)
		return 1
	}
	return 0
}

// stopSignals returns a context that ends with the first SIGTERM or SIGINT, which starts an orderly
// stop. The second signal ends the process at once: an operator who asks twice does not want to
// wait for the drain. One request may arrive as two signals, though: timeout(1) signals its child
// and then the whole group, and so do some supervisors.
func stopSignals() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() { // runs as long as the process
		<-signals
		first := time.Now()
		cancel()
		for time.Since(first) < sameRequest {
			<-signals
		}
		fmt.Fprintln(os.Stderr, "dunlin: second signal, quitting at once")
		os.Exit(1)
	}()
	return ctx, cancel
}
