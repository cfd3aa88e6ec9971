//go:build linux && (checked || locktimes) && !race

package node

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/node/engine"
)

// TestLockTimesOfStreamPayloads is TestLockTimes for DUMP, RESTORE and COPY of a stream with -lock.fields
// entries, all of which are pending for one of 1,000 consumers.
func TestLockTimesOfStreamPayloads(t *testing.T) {
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
	defer engine.TimeLocks.Store(engine.TimeLocks.Swap(true))
	act := func(what string, f func()) {
		takeLockTimes()
		begun := time.Now()
		f()
		took := time.Since(begun)
		l := takeLockTimes()
		t.Logf("%-10s %8v %v", what, took.Round(time.Millisecond), &l)
	}
	var payload []byte
	act("DUMP", func() { payload = c.dumpOf("{k}") })
	act("RESTORE", func() { c.restore("{k}r", payload) })
	act("COPY", func() { c.want("COPY {k} {k}c", "(integer) 1") })
	for _, key := range []string{"{k}r", "{k}c"} {
		c.want("XLEN "+key, fmt.Sprintf("(integer) %d", *lockFields))
		t.Logf("%s takes %s bytes, its payload %d", key, c.do("MEMORY USAGE "+key), len(payload))
	}
}

// TestLockTimesOfStreamReads is TestLockTimes for reads of 5,000 streams, and for what looks through 200,000 pending
// entries for those that are idle for long enough.
func TestLockTimesOfStreamReads(t *testing.T) {
	c := dial(t, startLeveled(t, func(c *Config) { c.Memory, c.Shards = 512<<20, 1 }).Addr())
	c.patience = 10 * time.Minute
	defer engine.TimeLocks.Store(engine.TimeLocks.Swap(true))
	act := func(what string, times int, request ...[]byte) {
		for range times {
			takeLockTimes()
			begun := time.Now()
			c.sendArgs(request...)
			reply := c.read()
			took := time.Since(begun)
			l := takeLockTimes()
			t.Logf("%-22s %8v %7d bytes %v", what, took.Round(10*time.Microsecond), len(reply), &l)
		}
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
	act("XREAD", 3, read("0", "XREAD", "STREAMS")...)
	act("XREADGROUP", 3, read(">", "XREADGROUP", "GROUP", "g", "c", "STREAMS")...)
	act("XREADGROUP others", 3, read(">", "XREADGROUP", "GROUP", "g", "d", "STREAMS")...)
	act("XREADGROUP history", 3, read("0", "XREADGROUP", "GROUP", "g", "c", "STREAMS")...)

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
	line := func(what, line string) { act(what, 3, requestOf(line, 0)...) }
	line("CLAIM of none", "XREADGROUP GROUP g d COUNT 10 CLAIM 100000000 STREAMS {k}p >")
	line("CLAIM of 10", "XREADGROUP GROUP g d COUNT 10 CLAIM 0 STREAMS {k}p >")
	line("XAUTOCLAIM of none", "XAUTOCLAIM {k}p g d 100000000 0 COUNT 10")
	line("XAUTOCLAIM of 10", "XAUTOCLAIM {k}p g d 0 0 COUNT 10 JUSTID")
	line("XAUTOCLAIM, 200,000", "XAUTOCLAIM {k}p g d 100000000 0 COUNT 20000")
	line("XPENDING IDLE, none", "XPENDING {k}p g IDLE 100000000 - + 10")
	line("XPENDING IDLE, 10", "XPENDING {k}p g IDLE 1 - + 10")
	line("XPENDING IDLE of one", "XPENDING {k}p g IDLE 100000000 - + 10 d")
}
