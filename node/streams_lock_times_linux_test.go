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
