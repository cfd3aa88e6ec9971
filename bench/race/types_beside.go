package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dunlin-cache/dunlin/bench/histogram"
	"github.com/dunlin-cache/dunlin/bench/load"
)

// What clients of small keys wait beside work on one big hash: an open loop, far below what the peer can
// do, while another client has the peer do the work. So the figures are waits and not queues.
const (
	besideFields  = 10_000_000
	besideShort   = 1_000_000
	besideAtOnce  = 50 // fields in a command that fills the hash
	besideClients = 20
	besideKeys    = 10_000
	besideRate    = 2000 // commands a second
	// besideRoom is the memory that strings find before something is evicted for them, and besideFill how
	// many are set until the next look.
	besideRoom = 8 << 20
	besideFill = 2048
	// besideLeast is how long clients are measured beside a work at least: what goes on behind its reply
	// counts.
	besideLeast = 3 * time.Second
	// movesLimit bounds the departure of a node.
	movesLimit = time.Minute
	// evictLimit bounds filling a peer until the hash is evicted. None promises to evict it.
	evictLimit = 30 * time.Second
)

// besideWork is what a peer is asked for, by the connection of another client.
type besideWork struct {
	name string
	only string // the one peer that does it; empty: all but moving, which only shows nothing beside it
	do   func(ctx context.Context, l *live, t *talk) error
}

var besideWorks = []besideWork{
	{name: "nothing", do: func(context.Context, *live, *talk) error { return nil }},
	{name: "HGETALL", do: doing("HGETALL", "big")},
	{name: "COPY", do: doing("COPY", "big", "second{big}")},
	{name: "DEL", do: doing("DEL", "second{big}")},
	{name: "COPY again", do: doing("COPY", "big", "second{big}")},
	{name: "expiry", do: doing("PEXPIRE", "second{big}", "1")},
	{name: "its owner leaves", only: moving, do: ownerLeaves},
	{name: "eviction", do: evict},
}

// moving is the peer in which a partition can move.
const moving = "dunlin+3"

func doing(words ...string) func(context.Context, *live, *talk) error {
	return func(_ context.Context, _ *live, t *talk) error {
		_, err := t.do(words...)
		return err
	}
}

var errNotEvicted = fmt.Errorf("the hash is not evicted after %v", evictLimit)

// evict fills the peer with strings until the hash is gone.
func evict(ctx context.Context, _ *live, t *talk) error {
	info, err := t.do("INFO", "memory")
	if err != nil {
		return err
	}
	_, text, _ := strings.Cut(info, "\r\nused_memory:")
	used, err := strconv.Atoi(text[:max(0, strings.IndexByte(text, '\r'))])
	if err != nil {
		return fmt.Errorf("cannot read the memory used: %w", err)
	}
	if _, err := t.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"); err != nil {
		return err
	}
	if _, err := t.do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+besideRoom)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, evictLimit, errNotEvicted)
	defer cancel()
	value := strings.Repeat("x", 1000)
	for done := 0; ; done += besideFill {
		_, err := t.run(ctx, 0, func(i int) []string {
			if i == besideFill {
				return nil
			}
			return []string{"SET", "filler:" + strconv.Itoa(done+i), value}
		})
		if err != nil {
			return err
		}
		if there, err := t.do("EXISTS", "big"); err != nil || there == "0" {
			return err
		}
	}
}

// ownerLeaves ends the node that has the hash, in order, and waits until it has handed it over.
func ownerLeaves(ctx context.Context, l *live, _ *talk) error {
	ctx, cancel := context.WithTimeout(ctx, movesLimit)
	defer cancel()
	for _, p := range l.procs {
		if p.role != roleNode {
			continue
		}
		args := p.cmd.Args
		t, err := dialTalk(ctx, args[slices.Index(args, "--listen")+1])
		if err != nil {
			return err
		}
		_, err = t.do("HLEN", "big")
		t.close()
		if err != nil && strings.HasPrefix(err.Error(), "MOVED ") {
			continue
		}
		if err == nil {
			err = p.cmd.Process.Signal(syscall.SIGTERM)
		}
		if err != nil {
			return err
		}
		select {
		case <-p.exited:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%s has not left after %v", p.name, movesLimit)
		}
	}
	return errors.New("no node has the hash")
}

// beside is what clients waited beside a work.
type beside struct {
	took  time.Duration // by the work
	waits histogram.Histogram
}

// runBeside has all peers do the works, one after the other, and prints what clients waited meanwhile.
func (r *race) runBeside(ctx context.Context, o typesOptions, w io.Writer) error {
	fields := besideFields
	if o.short {
		fields = besideShort
	}
	var lines []string
	for _, l := range r.live {
		t, err := dialTalk(ctx, l.addr)
		if err != nil {
			return err
		}
		defer t.close()
		fmt.Fprintf(r.say, "a hash of %d fields on %s\n", fields, l.name)
		done, err := t.run(ctx, fillLimit, bigHash(fields))
		if err == nil && done*besideAtOnce < fields {
			err = fmt.Errorf("%s has set only %d of %d fields in %v", l.name, done*besideAtOnce, fields, fillLimit)
		}
		if err != nil {
			return err
		}
		c := load.Config{Addr: l.addr, Clients: besideClients, Pipeline: 1, Sets: 1, Gets: 3, Prefix: "small:",
			Keys: besideKeys, ValueBytes: 64, Rate: besideRate, Duration: besideLeast / 3}
		if err := load.Fill(ctx, c, fillLimit); err != nil {
			return err
		}
		for _, work := range besideWorks {
			if work.only != "" && work.only != l.name || l.name == moving && work.only == "" && work.name != "nothing" {
				continue
			}
			fmt.Fprintf(r.say, "%s on %s\n", work.name, l.name)
			b, err := r.runWork(ctx, work, l, t, c)
			if err != nil {
				r.notef("%s on %s failed: %v", work.name, l.name, err)
				break
			}
			at := func(q float64) string { return fmt.Sprintf("%.2f", b.waits.Quantile(q).Seconds()*1000) }
			lines = append(lines, fmt.Sprintf("%s\t%s\t%.2f\t%s\t%s\t%s\t%.2f", l.name, work.name, b.took.Seconds(),
				at(0.5), at(0.99), at(0.999), b.waits.Max.Seconds()*1000))
		}
	}
	fmt.Fprintf(w, "\nWhat clients of small keys wait beside work on a hash of %d fields: %d commands a second, ms\n\n",
		fields, besideRate)
	writeTable(w, "peer\twork\tits s\tp50\tp99\tp99.9\tlongest", lines)
	return nil
}

// bigHash are the commands that fill the hash.
func bigHash(fields int) func(i int) []string {
	return func(i int) []string {
		if i*besideAtOnce >= fields {
			return nil
		}
		words := []string{"HSET", "big"}
		for n := range besideAtOnce {
			words = append(words, strconv.Itoa(i*besideAtOnce+n), "v")
		}
		return words
	}
}

// runWork measures clients in short runs until the work is done and besideLeast has passed.
func (r *race) runWork(ctx context.Context, work besideWork, l *live, t *talk, c load.Config) (b beside, err error) {
	begin, took, done := time.Now(), time.Duration(0), make(chan error, 1)
	go func() { // ends at the latest when the caller closes t
		err := work.do(ctx, l, t)
		took = time.Since(begin)
		done <- err
	}()
	for worked := false; !worked || time.Since(begin) < besideLeast; {
		result, err := r.load(ctx, c)
		if err != nil {
			return b, err
		}
		b.waits.Merge(&result.Latency)
		select {
		case err := <-done:
			if worked, b.took = true, took; err != nil {
				return b, err
			}
		default:
		}
	}
	return b, nil
}
