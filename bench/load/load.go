package load

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
)

// Protocol is what a server speaks.
type Protocol int

// The protocols.
const (
	RESP Protocol = iota
	Memcached
)

// Config says what to send, and where.
type Config struct {
	Addr     string // IP address and port
	Protocol Protocol
	Clients  int // connections
	Pipeline int // commands in a batch
	Threads  int // threads of this program; 0: one

	Sets, Gets int     // proportions of SET and GET; 1 and 10: one SET, then ten GETs, and so on
	KeysPerGet int     // above 1: MGET
	Prefix     string  // of every key; 12 digits follow
	Keys       int     // numbers of keys are below this
	ValueBytes int     // of every value, sent and expected
	Hot        float64 // share of key 0 among all keys sent

	Duration time.Duration // time during which commands are sent
	Rate     float64       // commands a second, by schedule; 0: closed loop
}

// Result is what a run measured.
type Result struct {
	Commands int           // answered
	Missed   int           // requested keys that did not exist
	Elapsed  time.Duration // from the first command to the last reply
	Latency  histogram.Histogram
	// Late is how much later than intended this program sent the batches of an open loop.
	Late histogram.Histogram
}

// PerSecond returns the throughput.
func (r *Result) PerSecond() float64 { return float64(r.Commands) / r.Elapsed.Seconds() }

func (c *Config) check() error {
	switch {
	case c.Clients < 1 || c.Pipeline < 1 || c.Keys < 1 || c.Threads < 0 || c.Threads > c.Clients:
		return fmt.Errorf("cannot load with %d clients, pipeline %d, %d keys and %d threads",
			c.Clients, c.Pipeline, c.Keys, c.Threads)
	case c.Sets < 0 || c.Gets < 0 || c.Sets+c.Gets == 0 || c.Rate < 0 || c.Hot < 0 || c.Hot > 1:
		return fmt.Errorf("cannot load with %d:%d SET:GET, rate %g and a hot share of %g", c.Sets, c.Gets, c.Rate, c.Hot)
	}
	return nil
}

// Run loads a server for c.Duration. If ctx ends, it returns the context's cause.
func Run(ctx context.Context, c Config) (*Result, error) { return run(ctx, c, 0) }

// fillPipeline is how many SETs Fill has outstanding.
const fillPipeline = 1000

// Fill sets every key of c once, over one connection. It gives up after limit.
func Fill(ctx context.Context, c Config, limit time.Duration) error {
	c.Clients, c.Threads, c.Pipeline, c.Sets, c.Gets, c.Rate, c.Hot, c.Duration = 1, 1, fillPipeline, 1, 0, 0, 0, limit
	r, err := run(ctx, c, c.Keys)
	if err == nil && r.Commands < c.Keys {
		err = fmt.Errorf("only %d of %d keys were set in %v", r.Commands, c.Keys, limit)
	}
	return err
}

// run does what Run does or, if inOrder is not 0, sets that many keys in order.
func run(ctx context.Context, c Config, inOrder int) (*Result, error) {
	c.Threads, c.KeysPerGet = max(c.Threads, 1), max(c.KeysPerGet, 1)
	if err := c.check(); err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddrPort(c.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot load %q: %w", c.Addr, err)
	}
	var stopped atomic.Bool
	defer context.AfterFunc(ctx, func() { stopped.Store(true) })()
	workers := make([]*worker, c.Threads)
	for i := range workers {
		workers[i] = newWorker(&c, i, inOrder, &stopped)
		defer workers[i].close()
		if err := workers[i].connect(addr); err != nil {
			return nil, err
		}
	}
	errs := make([]error, len(workers))
	var running sync.WaitGroup
	begin := time.Now()
	for i, w := range workers {
		running.Go(func() {
			// The thread is never unlocked: its timer slack has changed, so it ends with the
			// worker.
			runtime.LockOSThread()
			if errs[i] = w.run(begin); errs[i] != nil {
				stopped.Store(true)
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", c.Addr, err)
	}
	total := &workers[0].result
	for _, w := range workers[1:] {
		total.merge(&w.result)
	}
	return total, nil
}

func (r *Result) merge(o *Result) {
	r.Commands += o.Commands
	r.Missed += o.Missed
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.Latency.Merge(&o.Latency)
	r.Late.Merge(&o.Late)
}
