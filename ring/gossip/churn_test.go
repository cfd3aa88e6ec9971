package gossip

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// witness sees every table that any agent adopts.
type witness struct {
	mu     sync.Mutex
	tables map[ring.Version][]byte // encoded
	last   map[string]*ring.Table  // by life
	wrong  []string
}

func (w *witness) watch(c *Config) {
	name := c.Self.Name()
	c.OnTable = func(t *ring.Table) { w.saw(name, t) }
}

func (w *witness) saw(name string, t *ring.Table) {
	encoded := t.Encode()
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.tables[t.Version()]; known != nil && !bytes.Equal(known, encoded) {
		w.wrong = append(w.wrong, fmt.Sprintf("there are two tables %v", t.Version()))
	}
	if last := w.last[name]; last != nil && !t.Newer(last) {
		w.wrong = append(w.wrong, fmt.Sprintf("%s adopted %v after %v", name, t.Version(), last.Version()))
	}
	w.tables[t.Version()], w.last[name] = encoded, t
}

// TestChurn lets nodes crash, leave, return and start at random, and splits the network meanwhile.
// In the end everybody agrees, no epoch was issued twice by one coordinator, and nobody went back.
func TestChurn(t *testing.T) {
	w := newWorld(t)
	saw := &witness{tables: make(map[ring.Version][]byte), last: make(map[string]*ring.Table)}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(uint64(seed), 0))

	proxy := w.start("proxy", nil, func(c *Config) { c.Self.Role = ring.RoleProxy }, saw.watch)
	running := make(map[string]*testAgent)
	for range 25 {
		id := fmt.Sprintf("n%d", rnd.IntN(5))
		a := running[id]
		switch what := rnd.IntN(6); {
		case a == nil:
			running[id] = w.start(id, []*testAgent{proxy}, saw.watch)
		case what == 0:
			w.heal()
			w.split(a)
		case what == 1:
			a.Leave(time.Second)
			fallthrough
		default:
			w.crash(a)
			delete(running, id)
		}
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
	}
	w.heal()
	if running["n0"] == nil {
		running["n0"] = w.start("n0", []*testAgent{proxy}, saw.watch)
	}

	all := []*testAgent{proxy}
	var ids []string
	for id, a := range running {
		all = append(all, a)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	w.eventually(3*converged, func() string { return disagreement(all, ids) })
	saw.mu.Lock()
	defer saw.mu.Unlock()
	for _, wrong := range saw.wrong {
		t.Error(wrong)
	}
	t.Logf("%d tables, the last one is %v", len(saw.tables), proxy.Table().Version())
}
