//go:build linux && (checked || locktimes) && !race

package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestLockTimesOfStreamPayloads is TestLockTimes for DUMP, RESTORE and COPY of a stream with -lock.fields
// entries, all of which are pending for one of 1,000 consumers.
func TestLockTimesOfStreamPayloads(t *testing.T) { judgeLocks(t, lockBound, lockTimesOfPayloads) }

func lockTimesOfPayloads(t *testing.T, act func(what string, f func())) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory = max(64<<20, 600*int64(*lockFields)) }).Addr())
	c.patience = 10 * time.Minute
	c.want("XGROUP CREATE {k} g 0 MKSTREAM", "OK")
	var all [][]string
	for i := range *lockFields {
		all = append(all, []string{"XADD", "{k}", strconv.Itoa(1+i/3) + "-" + strconv.Itoa(1+i), "field", strconv.Itoa(i), "other", "value"})
		if i%100 == 99 {
			all = append(all, []string{"XREADGROUP", "GROUP", "g", "c" + strconv.Itoa(i%1000), "COUNT", "100", "STREAMS", "{k}", ">"})
		}
		if len(all) > 1000 {
			c.run(all)
			all = all[:0]
		}
	}
	c.run(all)
	var payload []byte
	act("DUMP", func() { payload = c.dumpOf("{k}") })
	act("RESTORE", func() { c.restore("{k}r", payload) })
	act("COPY", func() { c.want("COPY {k} {k}c", "(integer) 1") })
	for _, key := range []string{"{k}r", "{k}c"} {
		c.want("XLEN "+key, fmt.Sprintf("(integer) %d", *lockFields))
		t.Logf("%s takes %s bytes, its payload %d", key, c.do("MEMORY USAGE "+key), len(payload))
	}
}

// TestLockTimesOfLongEntries is TestLockTimes for entries that are nearly too long to be noted for
// a copy.
func TestLockTimesOfLongEntries(t *testing.T) { judgeLocks(t, lockBound, lockTimesOfLongEntries) }

func lockTimesOfLongEntries(t *testing.T, act func(what string, f func())) {
	pair := newMovingPair(t, 64<<20)
	pair.copy()
	key := pair.key
	c := dial(t, pair.nodes[0].Addr())
	c.patience = 10 * time.Minute
	c.want("XADD "+key+" 1-1 f v", `"1-1"`)
	long := strings.Repeat("v", 420_000)
	var many []string
	for i := range 2000 {
		many = append(many, fmt.Sprint("field", i), strings.Repeat("v", 200))
	}
	added := 1
	xadd := func(fields ...string) (words []string) {
		added++
		return append([]string{"XADD", key, fmt.Sprint(added, "-1")}, fields...)
	}
	add := func(before, behind string, words []string) {
		if before != "" {
			c.want(before, "OK")
		}
		c.sendWords(words)
		reply := c.next()
		if behind != "" {
			reply = c.do(behind)
		}
		if !strings.Contains(reply, fmt.Sprint(added, "-1")) {
			t.Errorf("XADD answers %s", reply)
		}
	}
	for name, fields := range map[string][]string{"one string": {"f", long}, "many fields": many} {
		act("XADD, "+name, func() {
			for range 5 {
				add("", "", xadd(fields...))
			}
		})
		act("MULTI, "+name, func() { add("MULTI", "EXEC", xadd(fields...)) })
		act("EVAL, "+name, func() {
			words := xadd(fields...)
			add("", "", append([]string{"EVAL", "return redis.call('XADD', KEYS[1], unpack(ARGV))", "1"}, words[1:]...))
		})
	}
	pair.moveOn()
	heir := dial(t, pair.nodes[1].Addr())
	heir.want("XLEN "+key, fmt.Sprintf("(integer) %d", added))
}

// TestLockTimesOfStreamReads is TestLockTimes for reads of 5,000 streams, and for what looks through 200,000 pending
// entries for those that are idle for long enough.
func TestLockTimesOfStreamReads(t *testing.T) { judgeLocks(t, lockBound, lockTimesOfReads) }

func lockTimesOfReads(t *testing.T, timed func(what string, f func())) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory, c.Shards = 512<<20, 1 }).Addr())
	c.patience = 10 * time.Minute
	act := func(what string, request ...[]byte) {
		timed(what, func() {
			c.sendArgs(request...)
			c.read()
		})
	}
	const streams = 5000
	read := func(id string, words ...string) (args [][]byte) {
		for _, w := range words {
			args = append(args, []byte(w))
		}
		for i := range streams {
			args = append(args, fmt.Appendf(nil, "{k}%d", i))
		}
		for range streams {
			args = append(args, []byte(id))
		}
		return args
	}
	var all [][]string
	for i := range streams {
		key := fmt.Sprintf("{k}%d", i)
		all = append(all, []string{"XADD", key, "1", "f", "v"}, []string{"XGROUP", "CREATE", key, "g", "0"})
	}
	c.run(all)
	act("XREAD", read("0", "XREAD", "STREAMS")...)
	act("XREADGROUP", read(">", "XREADGROUP", "GROUP", "g", "c", "STREAMS")...)
	act("XREADGROUP others", read(">", "XREADGROUP", "GROUP", "g", "d", "STREAMS")...)
	act("XREADGROUP history", read("0", "XREADGROUP", "GROUP", "g", "c", "STREAMS")...)

	const pending = 200_000
	all = all[:0]
	for i := range pending {
		all = append(all, []string{"XADD", "{k}p", strconv.Itoa(1+i/3) + "-" + strconv.Itoa(1+i), "field", strconv.Itoa(i)})
		if len(all) == 1000 {
			c.run(all)
			all = all[:0]
		}
	}
	c.want("XGROUP CREATE {k}p g 0", "OK")
	for range pending / 1000 {
		c.bytesOf("XREADGROUP GROUP g c COUNT 1000 STREAMS {k}p >")
	}
	line := func(what, line string) { act(what, requestOf(line, 0)...) }
	line("CLAIM of none", "XREADGROUP GROUP g d COUNT 10 CLAIM 100000000 STREAMS {k}p >")
	line("CLAIM of 10", "XREADGROUP GROUP g d COUNT 10 CLAIM 0 STREAMS {k}p >")
	line("XAUTOCLAIM of none", "XAUTOCLAIM {k}p g d 100000000 0 COUNT 10")
	line("XAUTOCLAIM of 10", "XAUTOCLAIM {k}p g d 0 0 COUNT 10 JUSTID")
	line("XAUTOCLAIM, 200,000", "XAUTOCLAIM {k}p g d 100000000 0 COUNT 20000")
	line("XPENDING IDLE, none", "XPENDING {k}p g IDLE 100000000 - + 10")
	line("XPENDING IDLE, 10", "XPENDING {k}p g IDLE 1 - + 10")
	line("XPENDING IDLE of one", "XPENDING {k}p g IDLE 100000000 - + 10 d")
}
