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

// Blocking commands: how long it takes from a push until the client that waits for it has the element. PING, sent by
// one client and answered, is beside it: a wake-up is one way to the server, and one to another client.
const (
	// wakeups are measured in each round.
	wakeups = 1000
	// wakeupPause passes between BLPOP and the push, so that the client surely waits, and before PING: whoever is idle
	// takes longer to wake up.
	wakeupPause = 2 * time.Millisecond
)

// waitTests name the keys that BLPOP waits for. Those of the last one have different slots.
var waitTests = []struct {
	name string
	keys []string
}{
	{"PING", nil},
	{"BLPOP of one key", []string{"queue"}},
	{"BLPOP of three keys of one slot", []string{"{queue}1", "{queue}2", "{queue}3"}},
	{"BLPOP of three slots", []string{"queue1", "queue2", "queue3"}},
}

// runWaits measures all tests on all peers in turns, and prints what they took.
func (r *race) runWaits(ctx context.Context, o typesOptions, w io.Writer) error {
	rounds, n := r.rounds, wakeups
	if o.short {
		rounds, n = 1, wakeups/4
	}
	results := map[string][]*histogram.Histogram{}
	for round := range rounds {
		for _, test := range waitTests {
			for i := range r.live {
				l := r.live[(i+round)%len(r.live)]
				fmt.Fprintf(r.say, "%s on %s\n", test.name, l.name)
				h, err := wakeupsOf(ctx, l.addr, test.keys, n)
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case err != nil && strings.Contains(err.Error(), "CROSSSLOT"): // a node by itself waits for keys of one slot
				case err != nil:
					r.notef("%s on %s failed: %v", test.name, l.name, err)
				default:
					results[l.name+test.name] = append(results[l.name+test.name], h)
				}
			}
		}
	}
	var lines []string
	for _, test := range waitTests {
		for _, l := range r.live {
			all := results[l.name+test.name]
			if len(all) == 0 {
				continue
			}
			wait := func(q float64) string {
				median := medianOf(all, func(h *histogram.Histogram) float64 { return millis(h.Quantile(q)) })
				return strconv.FormatFloat(1000*median, 'f', 0, 64)
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s", test.name, l.name, wait(0.5), wait(0.99)))
		}
	}
	fmt.Fprintf(w, "\nBlocking commands, medians of %d rounds of %d: µs from RPUSH until the client that waits has the element.\n\n", rounds, n)
	writeTable(w, "test\tpeer\tp50\tp99", lines)
	return nil
}

// wakeupsOf measures n wake-ups of a client that waits for keys, in turn; without keys the round trips of PING.
func wakeupsOf(ctx context.Context, addr string, keys []string, n int) (h *histogram.Histogram, err error) {
	h = &histogram.Histogram{}
	pusher, err := dialTalk(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer pusher.close()
	if len(keys) == 0 {
		for range n {
			time.Sleep(wakeupPause)
			begin := time.Now()
			if _, err := pusher.do("PING"); err != nil {
				return nil, err
			}
			h.Add(time.Since(begin), 1)
		}
		return h, nil
	}
	waiter, err := dialTalk(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer waiter.close()
	pop := append(append([]string{"BLPOP"}, keys...), "10")
	type woken struct {
		at  time.Time
		err error
	}
	got := make(chan woken, 1)
	for i := range n {
		waiter.send(pop...)
		if err := waiter.flush(); err != nil {
			return nil, err
		}
		go func() {
			_, err := waiter.reply(false)
			got <- woken{time.Now(), err}
		}()
		time.Sleep(wakeupPause)
		begin := time.Now()
		if _, err := pusher.do("RPUSH", keys[i%len(keys)], "element"); err != nil {
			waiter.close() // which ends the goroutine
			<-got
			return nil, err
		}
		x := <-got
		if x.err != nil {
			return nil, x.err
		}
		h.Add(x.at.Sub(begin), 1)
	}
	return h, nil
}
