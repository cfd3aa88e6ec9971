package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
)

// trackingTest is a GET of redis-benchmark, by clients that track what they read or do not.
type trackingTest struct {
	name    string
	random  int // the range of __rand_int__
	tracked bool
}

// Keys that are read again and again have their marks already. Of many, nearly each is read once.
var trackingTests = []trackingTest{
	{"GET again", 1_000, false}, {"GET again, tracked", 1_000, true},
	{"GET once", 1_000_000, false}, {"GET once, tracked", 1_000_000, true},
}

// trackingRequests is how many requests a run has, by its pipeline.
var trackingRequests = map[int]int{1: 50_000, 16: 400_000}

// runTracking compares GETs of clients that track with those of others, on all peers in turns.
func (r *race) runTracking(ctx context.Context, o typesOptions, w io.Writer) error {
	tool, err := findTool(redisBenchmark)
	if err != nil {
		return err
	}
	pipelines, rounds, part := []int{1, 16}, max(r.rounds, 5), 1
	if o.short {
		rounds, part = 1, 4
	}
	results := testCosts{}
	for round := range rounds {
		for _, pipeline := range pipelines {
			for i := range r.live {
				l := r.live[(i+round)%len(r.live)]
				for _, test := range trackingTests { // neighbours in time are compared
					c, err := r.runTracked(ctx, tool, l, test, pipeline, trackingRequests[pipeline]/part)
					if err := results.add(ctx, r, test.name, pipeline, l, c, err); err != nil {
						return err
					}
				}
			}
		}
	}
	var lines []string
	header := "test\tpipeline"
	for _, l := range r.live {
		header += "\t" + l.name + "\ttracked/not"
	}
	for _, pipeline := range pipelines {
		for i, test := range trackingTests {
			line := fmt.Sprintf("%s\t%d", test.name, pipeline)
			for _, l := range r.live {
				costs := results.of(test.name, pipeline, l.name)
				if line += "\t" + shownCost(costs) + "\t"; test.tracked {
					line += ratioOf(costs, results.of(trackingTests[i-1].name, pipeline, l.name))
				}
			}
			lines = append(lines, line)
		}
	}
	fmt.Fprintf(w, "\nTracking: redis-benchmark -3 -c 50 GET, with and without --enable-tracking, "+
		"medians of %d rounds. kops/s, and µs of processor time\nan operation; "+
		"then ratios of these two within a round, medians.\n\n", rounds)
	writeTable(w, header, lines)
	return nil
}

// runTracked runs one test once, on a peer that has the keys that are read again and no others.
func (r *race) runTracked(
	ctx context.Context, tool string, l *live, test trackingTest, pipeline, n int,
) (c cost, err error) {
	fmt.Fprintf(r.say, "%s at pipeline %d on %s\n", test.name, pipeline, l.name)
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return c, err
	}
	defer t.close()
	if _, err := t.do("FLUSHALL"); err != nil {
		return c, err
	}
	if err := setDrawn(ctx, t, trackingTests[0].random, tokenValue); err != nil {
		return c, err
	}
	arguments := []string{"-r", strconv.Itoa(test.random), "-3"}
	if test.tracked {
		arguments = append(arguments, "--enable-tracking")
	}
	return costOfBenchmark(ctx, tool, l, pipeline, n, append(arguments, "GET", randomKey)...)
}
