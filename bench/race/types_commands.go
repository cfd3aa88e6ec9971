package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// redisBenchmark is the tool of the commands' part.
const redisBenchmark = "redis-benchmark"

// collectionTest is a test of redis-benchmark.
type collectionTest struct {
	name   string
	fill   string // the test that makes what this one takes away or reads
	weight int    // how many times as long as that of other tests a reply takes
}

var collectionTests = []collectionTest{
	{name: "lpush"}, {name: "rpush"}, {name: "lpop", fill: "lpush"}, {name: "rpop", fill: "rpush"},
	{name: "sadd"}, {name: "hset"}, {name: "spop", fill: "sadd"}, {name: "zadd"}, {name: "zpopmin", fill: "zadd"},
	{name: "lrange_100", fill: "lpush", weight: 10}, {name: "lrange_300", fill: "lpush", weight: 30},
	{name: "lrange_500", fill: "lpush", weight: 50}, {name: "lrange_600", fill: "lpush", weight: 60},
}

// requests is how many requests a run has, by its pipeline: about half a second of them.
var requests = map[int]int{1: 50_000, 16: 400_000, 64: 600_000}

// benchmarkLimit bounds one run of redis-benchmark: a proxy may not know a command, and redis-benchmark
// waits for ever then.
const benchmarkLimit = 30 * time.Second

// runCommands runs the tests of redis-benchmark on all peers in turns, and prints them.
func (r *race) runCommands(ctx context.Context, o typesOptions, w io.Writer) error {
	tool, err := findTool(redisBenchmark)
	if err != nil {
		return err
	}
	pipelines, rounds, part := []int{1, 16, 64}, r.rounds, 1
	if o.short {
		pipelines, rounds, part = []int{1, 16}, 1, 4
	}
	results := testCosts{}
	for round := range rounds {
		for _, test := range collectionTests {
			for _, pipeline := range pipelines {
				n := requests[pipeline] / part / max(1, test.weight)
				for i := range r.live {
					l := r.live[(i+round)%len(r.live)]
					c, err := r.runTest(ctx, tool, l, test, pipeline, n)
					if err := results.add(ctx, r, test.name, pipeline, l, c, err); err != nil {
						return err
					}
				}
			}
		}
	}
	var lines []string
	for _, pipeline := range pipelines {
		for _, test := range collectionTests {
			line := fmt.Sprintf("%s\t%d", test.name, pipeline)
			for _, l := range r.live {
				line += "\t" + shownCost(results.of(test.name, pipeline, l.name))
			}
			ratio := func(of, than string) string {
				return "\t" + ratioOf(results.of(test.name, pipeline, of), results.of(test.name, pipeline, than))
			}
			lines = append(lines, line+ratio("dunlin-node", "redis")+ratio("dunlin+3", "twemproxy+3")+ratio("dunlin+3", "redis"))
		}
	}
	fmt.Fprintf(w, "\nCommands: redis-benchmark -c 50 -d 64 -r 100000, medians of %d rounds. kops/s, and µs of processor time an operation, proxies' and nodes' together;"+
		"\nthen ratios of these two within a round, medians: node to redis, proxy + 3 to twemproxy + 3, proxy + 3 to redis.\n\n", rounds)
	header := "test\tpipeline"
	for _, l := range r.live {
		header += "\t" + l.name
	}
	writeTable(w, header+"\tnode/redis\t+3/twemproxy\t+3/redis", lines)
	return nil
}

// shownCost is the cell of a peer.
func shownCost(all []cost) string {
	c, ok := medianCost(all)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f, %.2f", c.ops/1000, c.cpu/1000)
}

// ratioOf compares two peers: the median of their ratios within a round.
func ratioOf(of, than []cost) string {
	var pairs []cost
	for i := range min(len(of), len(than)) {
		if than[i].cpu > 0 { // a short run may be below the clock's tick
			pairs = append(pairs, cost{of[i].ops / than[i].ops, of[i].cpu / than[i].cpu})
		}
	}
	c, ok := medianCost(pairs)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2fx, %.2fx", c.ops, c.cpu)
}

// runTest runs one test once.
func (r *race) runTest(ctx context.Context, tool string, l *live, test collectionTest, pipeline, n int) (c cost, err error) {
	fmt.Fprintf(r.say, "%s at pipeline %d on %s\n", test.name, pipeline, l.name)
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return c, err
	}
	defer t.close()
	for _, key := range []string{"mylist", "myset", "myhash", "myzset"} {
		if _, err := t.do("DEL", key); err != nil {
			return c, err
		}
	}
	if test.fill != "" {
		filled := n
		if test.weight > 0 {
			filled = 10_000
		}
		if _, err := benchmark(ctx, tool, l.addr, 64, filled, "-t", test.fill); err != nil {
			return c, err
		}
	}
	what := []string{"-t", test.name}
	if last, isRange := strings.CutPrefix(test.name, "lrange_"); isRange {
		end, _ := strconv.Atoi(last)
		what = []string{"lrange", "mylist", "0", strconv.Itoa(end - 1)}
	}
	return costOfBenchmark(ctx, tool, l, pipeline, n, what...)
}

// benchmark runs redis-benchmark and returns how many requests a second it has counted.
func benchmark(ctx context.Context, tool, addr string, pipeline, n int, what ...string) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, benchmarkLimit)
	defer cancel()
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	arguments := []string{"-p", port, "-c", "50", "-d", "64", "-r", "100000", "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(n), "--csv"}
	cmd := exec.CommandContext(ctx, tool, append(arguments, what...)...)
	cmd.SysProcAttr = ownGroup()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) { // an error reply ends it
			return 0, fmt.Errorf("%s: %w: %s", redisBenchmark, err, lastLine(string(exit.Stderr)))
		}
		return 0, fmt.Errorf("%s: %w", redisBenchmark, err)
	}
	return perSecondOf(string(out))
}

// perSecondOf reads what redis-benchmark prints: "test","rps",... and then "LPUSH","123.45",...
func perSecondOf(out string) (perSecond float64, err error) {
	cells := strings.Split(lastLine(out), `","`)
	if len(cells) < 2 {
		return 0, fmt.Errorf("%s prints %q: want a line of figures", redisBenchmark, lastLine(out))
	}
	return strconv.ParseFloat(cells[1], 64)
}
