package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The streams part: what an entry and a pending entry take in memory, by the servers' own accounts, and
// what redis-benchmark measures of XADD, XRANGE, XREADGROUP and XACK.

const (
	// streamEntries is how many entries a stream has whose memory is measured, ten times as many with --huge.
	streamEntries = 1_000_000
	// pendingEntries is how many of them a consumer is sent.
	pendingEntries = 200_000
	// streamKey is the stream of all tests.
	streamKey = "stream"
	// streamRead is how many entries XRANGE and XREADGROUP answer at once.
	streamRead = 10
)

// streamFields are the words of an entry of three fields. The names of its fields are equal in all entries, or
// different in each.
func streamFields(i int, equal bool) []string {
	names := [3]string{"device", "temperature", "humidity"}
	words := make([]string, 0, 2*len(names))
	for n, name := range names {
		if !equal {
			name = fmt.Sprintf("%s:%06d", name[:4], i%1_000_000)
		}
		words = append(words, name, fmt.Sprintf("%08x", (i+1)*(n+7919)))
	}
	return words
}

func lengthOf(words []string) (bytes int) {
	for _, word := range words {
		bytes += len(word)
	}
	return bytes
}

// streamMemory is what a peer says that its stream takes.
type streamMemory struct {
	beyond  float64 // bytes of an entry beyond its fields' names and values
	pending float64 // bytes of a pending entry; 0: not measured
}

// measureStream fills a stream and asks how much memory it takes, before and after entries have been sent to a
// consumer.
func measureStream(ctx context.Context, l *live, entries int, equal bool) (m streamMemory, err error) {
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return m, err
	}
	defer t.close()
	if _, err := t.do("FLUSHALL"); err != nil {
		return m, err
	}
	payload, err := addEntries(ctx, t, entries, streamID, equal)
	if err != nil {
		return m, err
	}
	if _, err := t.do("XGROUP", "CREATE", streamKey, "group", "0"); err != nil {
		return m, err
	}
	before, err := usageOf(t, streamKey)
	if err != nil {
		return m, err
	}
	m.beyond = float64(before-payload) / float64(entries)
	if !equal {
		return m, nil
	}
	for read := 0; read < pendingEntries; read += 1000 {
		if _, err := t.do("XREADGROUP", "GROUP", "group", "consumer", "COUNT", "1000", "STREAMS", streamKey, ">"); err != nil {
			return m, err
		}
	}
	after, err := usageOf(t, streamKey)
	m.pending = float64(after-before) / pendingEntries
	return m, err
}

// addEntries fills the stream, and returns the bytes of all fields' names and values.
func addEntries(ctx context.Context, t *talk, entries int, id func(i int) string, equal bool) (payload int, err error) {
	_, err = t.run(ctx, 0, func(i int) []string {
		if i == entries {
			return nil
		}
		fields := streamFields(i, equal)
		payload += lengthOf(fields)
		return append([]string{"XADD", streamKey, id(i)}, fields...)
	})
	return payload, err
}

// streamID is the ID of the i-th entry: a few in each millisecond.
func streamID(i int) string { return fmt.Sprintf("%d-%d", 1_700_000_000_000+i/3, i%3) }

// usageOf is how many bytes a key takes, by the server's own account.
func usageOf(t *talk, key string) (int, error) {
	reply, err := t.do("MEMORY", "USAGE", key, "SAMPLES", "0")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(reply)
}

// streamTest is a command that redis-benchmark sends to a stream that has been filled.
type streamTest struct {
	name     string
	requests int // of a run at pipeline 1, times 4 at pipeline 16
	entries  int // that a request needs, 0 if a few are enough
	words    []string
}

func streamTests() []streamTest {
	count, fields := strconv.Itoa(streamRead), append([]string{"XADD", streamKey, "*"}, streamFields(1, true)...)
	capped := append([]string{"XADD", streamKey, "MAXLEN", "~", "10000", "*"}, streamFields(1, true)...)
	return []streamTest{
		{"XADD", 50_000, 0, fields},
		{"XADD MAXLEN ~", 50_000, 0, capped},
		{"XRANGE of 10", 30_000, 0, []string{"XRANGE", streamKey, "1-__rand_int__", "+", "COUNT", count}},
		{"XREADGROUP of 10", 20_000, streamRead, []string{"XREADGROUP", "GROUP", "group", "consumer", "COUNT", count, "STREAMS", streamKey, ">"}},
		{"XACK", 50_000, 1, []string{"XACK", streamKey, "group", "1-__rand_int__"}},
	}
}

// streamDrawn is the range of __rand_int__, and how many entries a stream has at least.
const streamDrawn = 100_000

// runStreamTest runs one test once.
func (r *race) runStreamTest(ctx context.Context, tool string, l *live, test streamTest, pipeline, n int) (c cost, err error) {
	fmt.Fprintf(r.say, "%s at pipeline %d on %s\n", test.name, pipeline, l.name)
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return c, err
	}
	defer t.close()
	if _, err := t.do("FLUSHALL"); err != nil {
		return c, err
	}
	entries := max(streamDrawn, n*test.entries)
	id := func(i int) string { return "1-" + strconv.Itoa(i+1) } // as XRANGE and XACK draw them
	if _, err := addEntries(ctx, t, entries, id, true); err != nil {
		return c, err
	}
	if _, err := t.do("XGROUP", "CREATE", streamKey, "group", "0"); err != nil {
		return c, err
	}
	if test.name == "XACK" {
		if _, err := t.do("XREADGROUP", "GROUP", "group", "consumer", "COUNT", strconv.Itoa(streamDrawn), "STREAMS", streamKey, ">"); err != nil {
			return c, err
		}
	}
	return costOfBenchmark(ctx, tool, l, pipeline, n, append([]string{"-r", strconv.Itoa(streamDrawn)}, test.words...)...)
}

// runStreams measures memory, runs the tests on all peers in turns, and prints both.
func (r *race) runStreams(ctx context.Context, o typesOptions, w io.Writer) error {
	tool, err := findTool(redisBenchmark)
	if err != nil {
		return err
	}
	r.writeStreamMemory(ctx, o, w)
	tests := streamTests()
	return r.compareWithRedis(ctx, o, w, "Streams", "One stream, entries of three fields.", namesOf(tests, streamTestName),
		func(l *live, test, pipeline, part int) (cost, error) {
			n := tests[test].requests / part
			if pipeline > 1 {
				n *= 4
			}
			return r.runStreamTest(ctx, tool, l, tests[test], pipeline, n)
		})
}

func streamTestName(t streamTest) string { return t.name }

// writeStreamMemory measures and prints what entries and pending entries take.
func (r *race) writeStreamMemory(ctx context.Context, o typesOptions, w io.Writer) {
	entries := streamEntries
	switch {
	case o.short:
		entries = 2 * pendingEntries
	case o.huge:
		entries *= 10
	}
	var lines []string
	for _, l := range r.live {
		fmt.Fprintf(r.say, "memory of %d entries on %s\n", entries, l.name)
		equal, err := measureStream(ctx, l, entries, true)
		different, failed := measureStream(ctx, l, entries, false)
		if err != nil || failed != nil {
			r.notef("the memory of streams on %s was not measured: %v %v", l.name, err, failed)
			continue
		}
		lines = append(lines, fmt.Sprintf("%s\t%.1f\t%.1f\t%.1f", l.name, equal.beyond, different.beyond, equal.pending))
	}
	fmt.Fprintf(w, "\nStreams of %d entries of three fields: bytes an entry beyond its names and values (MEMORY USAGE), and of each of %d pending entries.\n\n",
		entries, pendingEntries)
	writeTable(w, strings.Join([]string{"", "equal names", "different names", "pending"}, "\t"), lines)
}
