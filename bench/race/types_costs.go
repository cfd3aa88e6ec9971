package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// testCosts are what the runs of tests have cost, by test, pipeline and peer. All peers run a test in turns, round
// after round.
type testCosts map[string][]cost

func testKey(test string, pipeline int, peer string) string {
	return fmt.Sprint(test, " ", pipeline, " ", peer)
}

func (x testCosts) of(test string, pipeline int, peer string) []cost {
	return x[testKey(test, pipeline, peer)]
}

// add adds what a run has cost, or notes once why it failed. The only error is that the race is over.
func (x testCosts) add(ctx context.Context, r *race, test string, pipeline int, l *live, c cost, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		failed := fmt.Sprintf("%s at pipeline %d on %s failed: %v", test, pipeline, l.name, err)
		if !slices.Contains(r.notes, failed) {
			r.notef("%s", failed)
		}
	default:
		key := testKey(test, pipeline, l.name)
		x[key] = append(x[key], c)
	}
	return nil
}

// setDrawn sets the first keys that redis-benchmark draws.
func setDrawn(ctx context.Context, t *talk, count int, value string) error {
	_, err := t.run(ctx, 0, func(i int) []string {
		if i == count {
			return nil
		}
		return []string{"SET", fmt.Sprintf("key:%012d", i), value}
	})
	return err
}

// costOfBenchmark runs redis-benchmark and returns what that has cost, without the tool's start.
func costOfBenchmark(ctx context.Context, tool string, l *live, pipeline, n int, what ...string) (c cost, err error) {
	perSecond := 0.0
	c, err = costOf(l, func() (done int, err error) {
		perSecond, err = benchmark(ctx, tool, l.addr, pipeline, n, what...)
		if perSecond == 0 && err == nil {
			err = errors.New("redis-benchmark counts nothing")
		}
		return n, err
	})
	c.ops = perSecond
	return c, err
}

// compareWithRedis runs tests of redis-benchmark at pipelines of 1 and 16 on a node and
// redis-server in turns, and prints them. run runs the test of that number once; of its requests
// one part in so many is enough.
func (r *race) compareWithRedis(
	ctx context.Context, o typesOptions, w io.Writer, title, note string, tests []string, run func(l *live, test, pipeline, part int) (cost, error),
) error {
	pipelines, rounds, part := []int{1, 16}, max(r.rounds, 5), 1
	if o.short {
		rounds, part = 1, 4
	}
	results := testCosts{}
	for round := range rounds {
		for number, test := range tests {
			for _, pipeline := range pipelines {
				for i := range r.live {
					l := r.live[(i+round)%len(r.live)]
					c, err := run(l, number, pipeline, part)
					if err := results.add(ctx, r, test, pipeline, l, c, err); err != nil {
						return err
					}
				}
			}
		}
	}
	var lines []string
	for _, pipeline := range pipelines {
		for _, test := range tests {
			line := fmt.Sprintf("%s\t%d", test, pipeline)
			for _, l := range r.live {
				line += "\t" + shownCost(results.of(test, pipeline, l.name))
			}
			lines = append(lines, line+"\t"+ratioOf(results.of(test, pipeline, "dunlin-node"), results.of(test, pipeline, "redis")))
		}
	}
	fmt.Fprintf(w, "\n%s: redis-benchmark -c 50, medians of %d rounds. kops/s, and µs of processor time an operation; then ratios of these two within a round, medians."+
		"\n%s\n\n", title, rounds, note)
	header := "test\tpipeline"
	for _, l := range r.live {
		header += "\t" + l.name
	}
	writeTable(w, header+"\tnode/redis", lines)
	return nil
}
