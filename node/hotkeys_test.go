package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/node/measure"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestStatsWithFullSketches: what a scrape reads takes little time, and less of the loops', when
// the sketches have as many and as long keys as they may.
func TestStatsWithFullSketches(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	n := startNode(t)
	loopTime := make([]time.Duration, len(n.workers))
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		h := measure.NewHotSketch(l.Now() - time.Second)
		n.workers[l.Index()].hot = h
		for i := range measure.HotEntries * measure.HotCertain {
			h.Note(0, fmt.Appendf(nil, "%0*d", measure.HotKeyBytes, i%measure.HotEntries+l.Index()*measure.HotEntries))
		}
		loopTime[l.Index()] = time.Hour
		for range 100 { // others run on this machine
			var to figures.KeyFigures
			begun := time.Now()
			h.Report(l.Now(), &to)
			loopTime[l.Index()] = min(loopTime[l.Index()], time.Since(begun))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, n.Addr())
	for i := range 40 {
		c.want(fmt.Sprintf("SET %0*d v", measure.HotKeyBytes, i), "OK")
	}
	walkOnce(n)
	best := time.Hour
	for tries := 0; tries < 100; tries++ {
		begun := time.Now()
		s, err := n.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.HotKeys) != 20 || len(s.BigKeys) != 20 {
			t.Fatalf("%d hot and %d big keys", len(s.HotKeys), len(s.BigKeys))
		}
		best = min(best, time.Since(begun))
	}
	t.Logf("%v, of a loop's time %v", best, loopTime)
	if best > 2*time.Millisecond || loopTime[0] > 100*time.Microsecond {
		t.Errorf("statistics take %v, and %v of a loop", best, loopTime)
	}
}

// TestHotKeys: the keys of commands on one and on several keys count, and RESET forgets them.
func TestHotKeys(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("SET hot v", "OK")
	for range 8 * measure.SampleInputs {
		c.want("GET hot", `"v"`)
	}
	for range 8 * measure.SampleInputs {
		c.want("EXISTS one two", "(integer) 0")
	}
	list, err := n.HotKeys()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, k := range list {
		found[k.Key] = k.N > 0
	}
	if len(list) != 3 || !found["hot"] || !found["one"] || !found["two"] {
		t.Errorf("%v are hot, want hot, one and two", list)
	}
	for _, want := range []string{`1) "key"`, `3) "db"`, `5) "qps"`, `"hot"`} {
		if got := c.do("HOTKEYS GET"); !strings.Contains(got, want) {
			t.Errorf("HOTKEYS GET has no %s:\n%s", want, got)
		}
	}
	c.want("HOTKEYS RESET", "OK")
	eventually(t, "they are forgotten", func() bool {
		list, err := n.HotKeys()
		return err == nil && len(list) == 0
	})
}

// TestBigKeys: a walk finds the largest, and the next one that they are gone.
func TestBigKeys(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	for i := range 40 {
		c.want(fmt.Sprintf("SET small:%d v", i), "OK")
	}
	c.want("SET big "+strings.Repeat("x", 5000), "OK")
	c.want("SET bigger "+strings.Repeat("x", 6000), "OK")
	walkOnce(n)
	got := n.BigKeys()
	if len(got) != 20 || got[0] != (figures.KeyFigure{Key: "bigger", N: 6006}) || got[1] != (figures.KeyFigure{Key: "big", N: 5003}) {
		t.Errorf("%v are big", got)
	}
	if got := c.do("HOTKEYS BIG"); !strings.Contains(got, `2) "bigger"`) || !strings.Contains(got, `6) (integer) 6006`) {
		t.Errorf("HOTKEYS BIG answers\n%s", got)
	}
	c.want("DEL big bigger", "(integer) 2")
	walkOnce(n)
	walkOnce(n) // the first may have gone on with the figures of one that had begun before
	if got := n.BigKeys(); got[0].N > 100 {
		t.Errorf("%v is big and gone", got[0])
	}
}

// TestKeysOfCollections: collections are hot, and big, like strings.
func TestKeysOfCollections(t *testing.T) {
	n := startLeveled(t)
	c := dial(t, n.Addr())
	for verb, key := range map[string]string{"HSET": "hash", "SADD": "set", "ZADD": "zset", "RPUSH": "list"} {
		for range 40 {
			line := verb + " " + key
			for i := range 100 {
				if line += fmt.Sprint(" ", i); verb == "HSET" || verb == "ZADD" {
					line += fmt.Sprint(" member:", i, strings.Repeat("x", 20))
				}
			}
			c.send(line)
			c.next()
		}
	}
	c.want("SET string "+strings.Repeat("x", 1000), "OK")
	walkOnce(n)
	order := ""
	for _, k := range n.BigKeys()[:4] {
		usage := strings.TrimPrefix(c.do("MEMORY USAGE "+k.Key), "(integer) ")
		if bytes, err := strconv.ParseInt(usage, 10, 64); err != nil || k.N < bytes/2 || k.N > bytes {
			t.Errorf("%s has %d bytes, of %s in all", k.Key, k.N, usage)
		}
		order += k.Key + " "
	}
	if !strings.HasPrefix(order, "list ") || !strings.Contains(order, "hash") || !strings.Contains(order, "zset") {
		t.Errorf("%sare big", order)
	}
	for range 8 * measure.SampleInputs {
		c.do("HGET hash 7")
	}
	if list, err := n.HotKeys(); err != nil || len(list) != 1 || list[0].Key != "hash" {
		t.Errorf("%v are hot, want hash: %v", list, err)
	}
}

// walkOnce has all keys of the node looked at for their sizes.
func walkOnce(n *Node) {
	for p := range uint16(ring.Partitions) {
		for cursor, done, looked := uint64(0), false, 0; !done; {
			cursor, done = n.big.Look(n.engine, p, cursor, n.cfg.Group.UnixMilli(), &looked)
		}
	}
	n.big.Turn()
}
