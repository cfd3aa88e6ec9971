package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
)

// Crowds: many clients wait in BLPOP. Beside a crowd that waits for another key, a wake-up takes what it takes without
// one; and a crowd that waits for one key gets an element each.
const (
	// The answer to PING shows that the server has accepted the connection: its queue of those is short.
	crowdRequest = "*1\r\n$4\r\nPING\r\n*3\r\n$5\r\nBLPOP\r\n$5\r\ncrowd\r\n$1\r\n0\r\n"
	crowdAnswer  = "+PONG\r\n"
	crowdReply   = "*2\r\n$5\r\ncrowd\r\n$1\r\nx\r\n"
	// crowdPush is how many elements one RPUSH has for a crowd.
	crowdPush = 100
	// crowdLook is the pause between two looks at how many wait.
	crowdLook = 10 * time.Millisecond
)

// crowded is what one run measured.
type crowded struct {
	beside histogram.Histogram // wake-ups beside the crowd
	all    time.Duration       // from the first RPUSH until the last client of the crowd has its element
	cpu    float64             // microseconds of the servers' processor time for each of them
}

// runCrowd measures a crowd of waiters on all peers in turns, and prints what it took.
func (r *race) runCrowd(ctx context.Context, o typesOptions, w io.Writer) error {
	rounds, n := r.rounds, wakeups
	if o.short {
		rounds, n = 1, wakeups/4
	}
	results := map[string][]*crowded{}
	for round := range rounds {
		for i := range r.live {
			l := r.live[(i+round)%len(r.live)]
			fmt.Fprintf(r.say, "%d waiters on %s\n", o.crowd, l.name)
			x, err := crowd(ctx, l, o.crowd, n)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				r.notef("%d waiters on %s failed: %v", o.crowd, l.name, err)
			default:
				results[l.name] = append(results[l.name], x)
			}
		}
	}
	var lines []string
	for _, l := range r.live {
		all := results[l.name]
		if len(all) == 0 {
			continue
		}
		micros := func(q float64) string {
			median := medianOf(all, func(x *crowded) float64 { return millis(x.beside.Quantile(q)) })
			return strconv.FormatFloat(1000*median, 'f', 0, 64)
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%.0f\t%.1f", l.name, micros(0.5), micros(0.99),
			medianOf(all, func(x *crowded) float64 { return millis(x.all) }),
			medianOf(all, func(x *crowded) float64 { return x.cpu })))
	}
	fmt.Fprintf(w, "\n%d clients wait in BLPOP, medians of %d rounds: µs of a wake-up beside them, for another key;\n"+
		"ms until each of them has an element, and µs of the servers' processor time for each.\n\n", o.crowd, rounds)
	writeTable(w, "peer\tp50\tp99\tall\tµs", lines)
	return nil
}

// crowd has waiters wait, measures n wake-ups beside them, and then gives each an element.
func crowd(ctx context.Context, l *live, waiters, n int) (*crowded, error) {
	a, err := seat(ctx, []string{l.addr}, waiters, crowdRequest, crowdAnswer)
	if err != nil {
		return nil, err
	}
	defer a.close()
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := awaitBlocked(ctx, t, waiters); err != nil {
		return nil, err
	}
	beside, err := wakeupsOf(ctx, l.addr, []string{"queue"}, n)
	if err != nil {
		return nil, err
	}
	x := &crowded{beside: *beside}
	a.want.Store(int64(waiters * len(crowdReply)))
	c, err := costOf(l, func() (int, error) {
		begin := time.Now()
		if _, err := t.run(ctx, 0, pushes(waiters)); err != nil {
			return 0, err
		}
		err := a.await(ctx)
		x.all = time.Since(begin)
		return waiters, err
	})
	x.cpu = c.cpu / 1000
	return x, err
}

// pushes returns the commands that push so many elements.
func pushes(elements int) func(i int) []string {
	return func(i int) []string {
		left := elements - i*crowdPush
		if left <= 0 {
			return nil
		}
		return append([]string{"RPUSH", "crowd"}, strings.Split(strings.Repeat("x", min(left, crowdPush)), "")...)
	}
}

// awaitBlocked waits until so many clients of a server wait.
func awaitBlocked(ctx context.Context, t *talk, clients int) error {
	want := fmt.Sprintf("blocked_clients:%d\r\n", clients)
	for end := time.Now().Add(seatLimit); ; {
		info, err := t.do("INFO", "clients")
		switch {
		case err != nil:
			return err
		case strings.Contains(info, want):
			return nil
		case time.Now().After(end):
			return fmt.Errorf("after %v INFO has no %q", seatLimit, want)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(crowdLook):
		}
	}
}
