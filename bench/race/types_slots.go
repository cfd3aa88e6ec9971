package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// slotsTest is a command of redis-benchmark in two forms, which are compared: with keys of one slot
// and of several, or in database 0 and in another one.
type slotsTest struct {
	name      string
	words     []string // with keys of several slots; oneSlot has those of one
	database  int      // not 0: the words are sent in database 0, and in this one
	expensive bool     // with keys of several slots other nodes are asked
}

const (
	pinnedDatabase = 8
	spreadDatabase = 1
	slotsSets      = 1_000 // of ten members
	slotsLists     = 100   // of a hundred elements
	slotsKeys      = 10_000
	// slotsTag gives keys one slot.
	slotsTag = "{t}"
)

// slotsPeers is a cluster whose clients may use keys of several slots.
var slotsPeers = []peer{clusterWith("dunlin+3, relaxed", backends, 0, "--cross-slot", "relaxed")}

func slotsTests() (tests []slotsTest) {
	set, list := "s:__rand_int__", "l:__rand_int__"
	for _, words := range [][]string{
		{"SINTER", set, set}, {"SUNIONSTORE", "d:__rand_int__", set, set}, {"COPY", set, "d:__rand_int__", "REPLACE"},
		{"LMOVE", list, list, "LEFT", "RIGHT"},
	} {
		tests = append(tests, slotsTest{name: words[0] + " over slots", words: words, expensive: true})
	}
	many := []string{"MGET"}
	for range 10 {
		many = append(many, randomKey)
	}
	for _, words := range [][]string{{"SET", randomKey, tokenValue}, {"GET", randomKey}, many} {
		for _, in := range []struct {
			name     string
			database int
		}{{"spread", spreadDatabase}, {"pinned", pinnedDatabase}} {
			tests = append(tests, slotsTest{name: fmt.Sprintf("%s, %s database", words[0], in.name), words: words, database: in.database})
		}
	}
	return tests
}

// oneSlot returns the words with keys of one slot.
func (t *slotsTest) oneSlot() []string {
	words := append([]string(nil), t.words...)
	for i, word := range words {
		if len(word) > 2 && word[1] == ':' {
			words[i] = slotsTag + word
		}
	}
	return words
}

// random is the range of __rand_int__.
func (t *slotsTest) random() int {
	switch {
	case !t.expensive:
		return slotsKeys
	case t.words[0] == "LMOVE":
		return slotsLists
	}
	return slotsSets
}

// requests is how many a run has.
func (t *slotsTest) requests(pipeline, part int) int {
	if t.expensive {
		return 4_000 / part
	}
	return requests[pipeline] / part
}

// runSlots compares the two forms of each test, one after the other, and prints them.
func (r *race) runSlots(ctx context.Context, o typesOptions, w io.Writer) error {
	tool, err := findTool(redisBenchmark)
	if err != nil {
		return err
	}
	for _, l := range r.live {
		if err := fillSlots(ctx, l); err != nil {
			return err
		}
	}
	pipelines, rounds, part := []int{1, 16}, max(r.rounds, 5), 1
	if o.short {
		rounds, part = 1, 4
	}
	tests, plain, other := slotsTests(), testCosts{}, testCosts{}
	for range rounds {
		for _, pipeline := range pipelines {
			for i := range tests {
				for _, l := range r.live {
					if err := r.runSlot(ctx, tool, l, &tests[i], pipeline, part, plain, other); err != nil {
						return err
					}
				}
			}
		}
	}
	var lines []string
	for _, pipeline := range pipelines {
		for i := range tests {
			for _, l := range r.live {
				name := tests[i].name
				costs, than := other.of(name, pipeline, l.name), plain.of(name, pipeline, l.name)
				lines = append(lines, fmt.Sprintf("%s\t%d\t%s\t%s\t%s", name, pipeline, shownCost(than), shownCost(costs), ratioOf(costs, than)))
			}
		}
	}
	fmt.Fprintf(w, "\nSlots and databases: redis-benchmark -c 50, medians of %d rounds, at a proxy with three nodes. kops/s, and µs of "+
		"processor time an operation:\nwith keys of one slot, or in database 0; then with keys of several, or in the other database; "+
		"then ratios of these two within a round.\n\n", rounds)
	writeTable(w, "test\tpipeline\tplain\tthis\tthis/plain", lines)
	return nil
}

// runSlot runs both forms of a test once. The only error is that the race is over.
func (r *race) runSlot(
	ctx context.Context, tool string, l *live, test *slotsTest, pipeline, part int, plain, other testCosts,
) error {
	fmt.Fprintf(r.say, "%s at pipeline %d on %s\n", test.name, pipeline, l.name)
	run := func(to testCosts, database int, words []string) error {
		arguments := append([]string{"-r", strconv.Itoa(test.random()), "--dbnum", strconv.Itoa(database)}, words...)
		c, err := costOfBenchmark(ctx, tool, l, pipeline, test.requests(pipeline, part), arguments...)
		return to.add(ctx, r, test.name, pipeline, l, c, err)
	}
	if err := run(plain, 0, test.oneSlot()); err != nil {
		return err
	}
	return run(other, test.database, test.words)
}

// fillSlots pins a database, and stores what the tests read.
func fillSlots(ctx context.Context, l *live) error {
	t, err := dialTalk(ctx, l.addr)
	if err != nil {
		return err
	}
	defer t.close()
	ready, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for _, words := range [][]string{{"CONFIG", "SET", "pinned-databases", strconv.Itoa(pinnedDatabase)}, {"SINTER", "none", "no"}} {
		for _, err = t.do(words...); err != nil; _, err = t.do(words...) { // until the cluster has the level
			select {
			case <-ready.Done():
				return errors.Join(fmt.Errorf("%s answers %s after %v", l.name, words[0], readyLimit), err)
			case <-time.After(pollInterval):
			}
		}
	}
	for _, tag := range []string{"", slotsTag} {
		if err := fillCollections(ctx, t, tag); err != nil {
			return err
		}
	}
	for _, database := range []int{0, spreadDatabase, pinnedDatabase} {
		if _, err := t.do("SELECT", strconv.Itoa(database)); err != nil {
			return err
		}
		if err := setDrawn(ctx, t, slotsKeys, tokenValue); err != nil {
			return err
		}
	}
	return nil
}

// fillCollections stores sets that overlap, and lists.
func fillCollections(ctx context.Context, t *talk, tag string) error {
	_, err := t.run(ctx, 0, func(i int) []string {
		var words []string
		elements := 0
		switch {
		case i < slotsSets:
			words, elements = []string{"SADD", fmt.Sprintf("%ss:%012d", tag, i)}, 10
		case i < slotsSets+slotsLists:
			words, elements = []string{"RPUSH", fmt.Sprintf("%sl:%012d", tag, i-slotsSets)}, 100
		default:
			return nil
		}
		for j := range elements {
			words = append(words, fmt.Sprint("element", i%5+j))
		}
		return words
	})
	return err
}
