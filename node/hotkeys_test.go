package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/figures"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/ring"
)

// TestHotSketch: among many keys, those are found that are used most, with about the rate that they have; a use
// by all alike makes none hot; what is no longer used fades.
func TestHotSketch(t *testing.T) {
	h := newHotSketch(0)
	for i := range 20_000 {
		h.note(fmt.Appendf(nil, "cold:%d", i))
	}
	report := func(at time.Duration) []figures.KeyFigure {
		var top figures.KeyFigures
		h.report(at, &top)
		return top.Top()
	}
	if got := report(time.Second); len(got) > 0 {
		t.Errorf("keys used once each are hot: %v", got)
	}
	h = newHotSketch(0)
	for i := range 20_000 {
		h.note(fmt.Appendf(nil, "cold:%d", i))
		if i%10 == 0 {
			h.note([]byte("hot"))
		}
		if i%100 == 0 {
			h.note([]byte("warm"))
		}
	}
	got := report(10 * time.Second)
	if len(got) != 2 || got[0].Key != "hot" || got[1].Key != "warm" {
		t.Fatalf("%v are hot, want hot and warm", got)
	}
	if want := int64(2000 * sampleInputs / 10); got[0].N > want || got[0].N < want*9/10 {
		t.Errorf("%d uses a second, want about %d", got[0].N, want)
	}
	for at := hotHalf; at < 12*hotHalf; at += hotHalf {
		h.fade(at)
	}
	if got := report(12 * hotHalf); len(got) > 0 {
		t.Errorf("%v are hot long after", got)
	}
}

// TestHotSketchOfManyKeys: a command of very many keys costs what one of few does, and still shows what such commands use
// again and again.
func TestHotSketchOfManyKeys(t *testing.T) {
	h := newHotSketch(0)
	noted := func() (n uint32) {
		for i := range h.counters {
			n += h.counters[i].count
		}
		return n
	}
	mget := func(keys int, name func(i int) string) {
		var args [][]byte
		var places []int
		for i := range keys {
			args, places = append(args, []byte(name(i))), append(places, i)
		}
		h.noteSome(args, places)
	}
	for _, keys := range []int{0, 1, 3, hotOfCommand} {
		before := noted()
		mget(keys, func(i int) string { return fmt.Sprint("few:", i) })
		if got := noted() - before; got != uint32(keys) {
			t.Errorf("of %d keys %d are noted", keys, got)
		}
	}
	h = newHotSketch(0)
	for command := range 100 {
		before := noted()
		mget(20*hotOfCommand+1, func(i int) string {
			if i%10 == 7 {
				return "hot"
			}
			return fmt.Sprintf("cold:%d:%d", command, i)
		})
		if got := noted() - before; got == 0 || got > hotOfCommand {
			t.Fatalf("%d keys are noted, want %d at most", got, hotOfCommand)
		}
	}
	var top figures.KeyFigures
	h.report(time.Second, &top)
	if list := top.Top(); len(list) != 1 || list[0].Key != "hot" {
		t.Errorf("%v are hot, want the one that they have again and again", list)
	}
}

func TestHotSketchAllocatesNothing(t *testing.T) {
	h, i := newHotSketch(0), 0
	keys := [][]byte{[]byte("a"), []byte(strings.Repeat("long", 100)), []byte("c")}
	if got := testing.AllocsPerRun(1000, func() { i++; h.note(keys[i%3]) }); got > 0 {
		t.Errorf("%v allocations for a key, want 0", got)
	}
}

// TestStatsWithFullSketches: what a scrape reads takes little time, and less of the loops', when the sketches have as many
// and as long keys as they may.
func TestStatsWithFullSketches(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	n := startNode(t)
	loopTime := make([]time.Duration, len(n.workers))
	err := n.cfg.Group.Each(func(l *netloop.Loop) {
		h := n.workers[l.Index()].hot
		h.begun = l.Now() - time.Second
		for i := range hotCounters * hotCertain {
			h.note(fmt.Appendf(nil, "%0*d", hotKeyBytes, i%hotCounters+l.Index()*hotCounters))
		}
		loopTime[l.Index()] = time.Hour
		for range 100 { // others run on this machine
			var to figures.KeyFigures
			begun := time.Now()
			h.report(l.Now(), &to)
			loopTime[l.Index()] = min(loopTime[l.Index()], time.Since(begun))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		n.big.now.Keep(fmt.Sprintf("%0*d", hotKeyBytes, i), int64(i))
	}
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
	for range 8 * sampleInputs {
		c.want("GET hot", `"v"`)
	}
	for range 8 * sampleInputs {
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
	walk := func() {
		for p := range ring.Partitions {
			for cursor, done, looked := uint64(0), false, 0; !done; {
				cursor, done = n.lookForBig(uint16(p), cursor, &looked)
			}
		}
		n.big.turn()
	}
	walk()
	got := n.BigKeys()
	if len(got) != 20 || got[0] != (figures.KeyFigure{Key: "bigger", N: 6006}) || got[1] != (figures.KeyFigure{Key: "big", N: 5003}) {
		t.Errorf("%v are big", got)
	}
	if got := c.do("HOTKEYS BIG"); !strings.Contains(got, `2) "bigger"`) || !strings.Contains(got, `6) (integer) 6006`) {
		t.Errorf("HOTKEYS BIG answers\n%s", got)
	}
	c.want("DEL big bigger", "(integer) 2")
	walk()
	walk() // the first may have gone on with the figures of one that had begun before
	if got := n.BigKeys(); got[0].N > 100 {
		t.Errorf("%v is big and gone", got[0])
	}
}
