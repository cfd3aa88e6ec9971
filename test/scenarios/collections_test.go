package scenarios

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

var (
	stockMB     = flag.Int("scenario.stock", 0, "how many MB of collections TestScenarioCollections stores; 0: 2048 with -scenario.full, else none")
	stockWithin = flag.Duration("scenario.within", 0, "for how long TestScenarioCollections begins further steps; 0: for all of its rounds")
)

// TestScenarioCollections does to a cluster that is full of collections of all types and sizes what the
// other scenarios do with strings. Their elements are known: none may be wrong, and none lost unless
// its node's death explains it.
func TestScenarioCollections(t *testing.T) {
	stock := *stockMB
	if stock == 0 {
		if !*scenarioFull {
			t.Skip("stores gigabytes (make scenarios)")
		}
		stock = 2048
	}
	started := time.Now()
	s := startScenario(t, chaos.Options{
		Copies: 2, Within: max(chaos.SettleTime, time.Duration(stock)*stockTime), Rest: stockRest,
		NodeFlags: []string{"--memory", strconv.Itoa(128+2*stock) + "mb", "--drain-timeout", stockDrain.String()},
	})
	s.AwaitCollections()
	w := s.newWarehouse(t, stock<<20)
	begin := time.Now()
	w.fill()
	t.Logf("%d collections of %d MB are stored in %v", len(w.all), w.bytes>>20, time.Since(begin).Round(time.Second))
	n4 := s.add("n4")
	s.rounds(func(i int) {
		steps := w.round(i, n4)
		for j, step := range steps {
			if *stockWithin > 0 && time.Since(started) > *stockWithin {
				t.Logf("round %d: %d of %d steps are left out", i, len(steps)-j, len(steps))
				return
			}
			step()
			w.check(i)
		}
	})
}

// round returns what happens to the cluster in a round. Behind each step it is whole.
func (w *warehouse) round(i int, n4 *harness.Member) (steps []func()) {
	s := w.s
	steps = append(steps, func() { s.leaves("join", nil, n4.Launch) }, func() {
		victim := s.C.Node(i % 3)
		s.breaks("SIGKILL", victim, true, func() { s.Kill(victim) })
		w.check(i)
		s.comesBack(victim)
	}, func() {
		s.leaves("leave of the fourth", nil, func() { n4.Term(stockDrain) })
	}, func() {
		victim := s.C.Node((i + 1) % 3)
		s.breaks("SIGSTOP", victim, true, func() { s.Freeze(victim) })
		s.leaves("SIGCONT", victim, victim.Cont)
	})
	for _, m := range s.C.ByRole("node")[:3] {
		steps = append(steps, func() {
			s.leaves("leave", m, func() { m.Term(stockDrain) })
			s.comesBack(m)
		})
	}
	return steps
}

// warehouse is a set of collections that are written once, and checked after each step.
type warehouse struct {
	t     *testing.T
	s     *scenario
	all   []*chaos.Stock
	bytes int
}

// stockSizes are what the collections consist of, and their part of all bytes, in percent. The small
// ones are packed; the longest takes a whole partition's snapshot.
var stockSizes = []struct{ elements, size, percent int }{
	{300_000, 100, 15}, {20_000, 100, 30}, {1000, 100, 30}, {40, 10_000, 20}, {8, 40, 5},
}

const (
	// checkedBytes is how much of the elements a check reads; it counts those of all longer collections.
	checkedBytes = 256 << 20
	checkedSmall = 5000
	atOnce       = 4 << 20
	// stockDrain is how long a node may take to hand over gigabytes while clients keep it busy.
	// Other moves only get what clients leave: all is settled in stockTime a MB. So clients rest.
	stockDrain = 3 * time.Minute
	stockTime  = 250 * time.Millisecond
	stockRest  = 40 * time.Millisecond
)

func (s *scenario) newWarehouse(t *testing.T, bytes int) *warehouse {
	w := &warehouse{t: t, s: s}
	for _, size := range stockSizes {
		for i := 0; i*size.elements*size.size < bytes/100*size.percent; i++ {
			st := chaos.NewStock(i, len(w.all), size.elements, size.size)
			w.all, w.bytes = append(w.all, st), w.bytes+st.Bytes()
		}
	}
	return w
}

// fill stores what is missing.
func (w *warehouse) fill() {
	by := w.session("writer of the warehouse")
	defer by.Link.Conn.Close()
	pending := 0
	for _, st := range w.all {
		if !st.IsLost() {
			continue
		}
		if !by.Store(st) {
			return
		}
		if pending += st.Bytes(); pending > atOnce || len(by.Judges) > checkBatch {
			if !by.Exchange() {
				return
			}
			pending = 0
		}
	}
	by.Exchange()
}

// session is one at a proxy, each time at another one.
func (w *warehouse) session(name string) *chaos.Session {
	proxies := w.s.C.ByRole("proxy")
	return w.s.NewSession(proxies[w.s.Sessions.Load()%uint64(len(proxies))], name)
}

// check counts the elements of all longer collections, and reads those of some.
func (w *warehouse) check(round int) {
	w.t.Helper()
	begin, rng := time.Now(), rand.New(rand.NewPCG(w.s.Seed, uint64(round)+uint64(time.Now().UnixNano())))
	by := w.session("reader of the warehouse")
	defer by.Link.Conn.Close()
	read, counted, pending, small := 0, 0, 0, 0
	for _, i := range rng.Perm(len(w.all)) {
		st := w.all[i]
		if st.Bytes() < 1000 {
			if small++; small > checkedSmall {
				continue
			}
		}
		by.Count(st)
		counted++
		if read+st.Bytes() <= checkedBytes {
			by.Check(st)
			read, pending = read+st.Bytes(), pending+st.Bytes()
		}
		if pending > atOnce || len(by.Judges) > checkBatch {
			if !by.Exchange() {
				return
			}
			pending = 0
		}
	}
	by.Exchange()
	w.s.JudgeAbsences(time.Now())
	w.fill()
	w.t.Logf("warehouse: %d collections counted, %d MB read, in %v; %d violations so far; nodes have %s",
		counted, read>>20, time.Since(begin).Round(time.Second), w.s.CountViolations(), w.memory())
	if w.s.FailedAlready() {
		w.t.Log(w.s.Shown())
	}
}

// memory is what the nodes are charged for.
func (w *warehouse) memory() (text string) {
	for _, m := range w.s.C.ByRole("node") {
		if m.Running() && !m.Stopped {
			used, _ := harness.Scrape(w.t, m.Admin).Sum("dunlin_node_memory_used_bytes")
			text += m.ID + " " + strconv.Itoa(int(used)>>20) + " MB "
		}
	}
	return text
}
