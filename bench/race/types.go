package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// The types mode (--types) compares collections (hashes, sets, sorted sets and lists), streams, scripts, tracked reads,
// pub/sub, blocking commands, and keys of several slots. It has nine parts.
//
//	elements   what an element takes in memory, and an operation on it in processor time, for values of
//	           10 to a million elements: a node beside redis-server, one connection, pipelines of 64
//	commands   the tests of redis-benchmark: all peers, 50 clients, pipelines of 1, 16 and 64
//	beside     what clients of small keys wait while a hash of 10 million fields is read, copied, deleted,
//	           evicted and moved
//	streams    what entries and pending entries take, and commands on one stream: a node beside redis-server,
//	           50 clients, pipelines of 1 and 16
//	scripts    short and long ones: a node beside redis-server, 50 clients, pipelines of 1 and 16
//	tracking   GETs of clients that track beside those of others: 50 clients, pipelines of 1 and 16
//	publish    PUBLISH to 1, 100 and 10,000 subscribers, at one server, at three and at nine, of Dunlin through a
//	           proxy and at the nodes
//	waits      from RPUSH until a client has the element that waited in BLPOP for one key, or for three
//	slots      commands with keys of several slots beside those of one, and in a spread and a pinned database
//	           beside database 0: a proxy with three nodes, 50 clients, pipelines of 1 and 16
//
// redis-benchmark is one thread, and slower than most servers: see the processor time.

// typesPart is one part of the types mode.
type typesPart struct {
	name  string
	peers []string
	own   []peer // which no other part has
	run   func(r *race, ctx context.Context, o typesOptions, w io.Writer) error
}

// typesOptions say how much is measured.
type typesOptions struct {
	short bool
	huge  bool // values of 10 million elements, too
	crowd int  // clients that wait in BLPOP
}

var typesParts = []typesPart{
	{"elements", []string{"redis", "dunlin-node"}, nil, (*race).runElements},
	{"commands", []string{"redis", "dunlin-node", "twemproxy+3", "dunlin+3"}, nil, (*race).runCommands},
	{"beside", []string{"redis", "dunlin-node", moving}, nil, (*race).runBeside},
	{"streams", []string{"redis", "dunlin-node"}, nil, (*race).runStreams},
	{"scripts", []string{"redis", "dunlin-node"}, nil, (*race).runScripts},
	{"tracking", []string{"redis", "dunlin-node", "dunlin+3"}, nil, (*race).runTracking},
	{"publish", []string{"redis", "dunlin-node", "dunlin+3"}, publishPeers, (*race).runPublish},
	{"waits", []string{"redis", "dunlin-node", "dunlin+3"}, nil, (*race).runWaits},
	{"crowd", []string{"redis", "dunlin-node", "dunlin+3"}, nil, (*race).runCrowd},
	{"slots", nil, slotsPeers, (*race).runSlots},
}

func typesPartName(p typesPart) string { return p.name }

// runTypes measures parts one after the other and prints each, even if it ended early.
func (r *race) runTypes(ctx context.Context, s *stable, picked []typesPart, o typesOptions, w io.Writer) (err error) {
	for _, part := range picked {
		var entered []peer
		for _, p := range peers {
			if slices.Contains(part.peers, p.name) {
				entered = append(entered, p)
			}
		}
		bad := r.prepare(ctx, s, append(entered, part.own...))
		if bad == nil {
			bad = r.awaitCollections(ctx)
		}
		if bad == nil {
			bad = part.run(r, ctx, o, w)
		}
		for _, l := range r.live {
			l.end()
		}
		r.live = nil
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = errors.Join(err, bad) // the other part does not depend on it
	}
	r.writeNotes(w, false)
	return err
}

// awaitCollections waits until all peers execute commands on collections: a cluster of Dunlin does when
// its protocol level has risen.
func (r *race) awaitCollections(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, l := range r.live {
		t, err := dialTalk(ctx, l.addr)
		if err != nil {
			return err
		}
		for _, err = t.do("SADD", "ready", "1"); err != nil; _, err = t.do("SADD", "ready", "1") {
			select {
			case <-ctx.Done():
				t.close()
				return fmt.Errorf("%s executes no commands on collections after %v: %w", l.name, readyLimit, err)
			case <-time.After(pollInterval):
			}
		}
		t.close()
	}
	return nil
}

// cost is what one run took of a peer's servers.
type cost struct {
	ops float64 // a second
	cpu float64 // nanoseconds per operation, of all its processes
}

// costOf measures f, which does so many operations as it returns.
func costOf(l *live, f func() (done int, err error)) (c cost, err error) {
	before, err := l.fineTime()
	if err != nil {
		return c, err
	}
	begin := time.Now()
	done, err := f()
	if err != nil {
		return c, err
	}
	if done == 0 {
		return c, errors.New("nothing was done")
	}
	c.ops = float64(done) / time.Since(begin).Seconds()
	after, err := l.fineTime()
	c.cpu = float64((after - before).Nanoseconds()) / float64(done)
	return c, err
}

// fineTime is the processor time of all threads that the peer's processes have. It is finer than usage,
// whose ticks are as long as some runs, and lacks threads that have ended.
func (l *live) fineTime() (sum time.Duration, err error) {
	for _, p := range l.procs {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
		if err != nil || len(files) == 0 {
			return 0, errors.Join(err, fmt.Errorf("cannot read the time of %s", p.name))
		}
		for _, file := range files {
			first, _, _ := strings.Cut(readText(file), " ") // proc_pid_schedstat(5); empty: it has just ended
			ran, _ := strconv.ParseInt(first, 10, 64)
			sum += time.Duration(ran)
		}
	}
	return sum, nil
}

// medianCost is the medians of some runs, and false if there are none.
func medianCost(all []cost) (c cost, ok bool) {
	if len(all) == 0 {
		return c, false
	}
	return cost{
		ops: medianOf(all, func(c cost) float64 { return c.ops }),
		cpu: medianOf(all, func(c cost) float64 { return c.cpu }),
	}, true
}

// writeTable prints lines whose cells are separated by tabs.
func writeTable(w io.Writer, header string, lines []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, header)
	fmt.Fprintln(t, strings.Join(lines, "\n"))
	_ = t.Flush() // text for people
}
