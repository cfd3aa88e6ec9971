package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/conversation"
	"github.com/dunlin-cache/dunlin/internal/redistest"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestCrossSlotElements: elements move between lists and sets of several nodes, while a node joins.
// Each is in exactly one place when all have moved.
func TestCrossSlotElements(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 2, 2)
	const movers, elements, keys = 4, 200, 5
	w := harness.DialWire(t, c.Proxy(0).Addr)
	for i := range elements {
		w.Want(fmt.Sprintf("RPUSH list:%d %d", i%keys, i), fmt.Sprintf("(integer) %d", i/keys+1))
		w.Want(fmt.Sprintf("SADD set:%d %d", i%keys, i), "(integer) 1")
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var moved [2]atomic.Int64
	for m := range movers {
		wg.Go(func() {
			w, rng := harness.DialWire(t, c.Proxy(m%2).Addr), rand.New(rand.NewPCG(uint64(m), 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				from, to, kind := rng.IntN(keys), rng.IntN(keys), rng.IntN(2)
				line := fmt.Sprintf("LMOVE list:%d list:%d LEFT RIGHT", from, to)
				if kind == 1 {
					line = fmt.Sprintf("SMOVE set:%d set:%d %d", from, to, rng.IntN(elements))
				}
				switch got := conversation.Text(w.Do(line)); {
				case strings.HasPrefix(got, `"`), got == "(integer) 1":
					moved[kind].Add(1)
				case got == "(nil)", got == "(integer) 0", strings.HasPrefix(got, "(error) TRYAGAIN"):
				default:
					t.Errorf("%s answers %s", line, got)
				}
			}
		})
	}
	joinMeanwhile(c)
	harness.Eventually(t, harness.ReadyTimeout, "elements are moved", func() bool {
		return moved[0].Load() > 0 && moved[1].Load() > 0
	})
	close(stop)
	wg.Wait()
	t.Logf("%d elements of lists and %d members of sets were moved", moved[0].Load(), moved[1].Load())
	for _, reads := range []string{"LRANGE list:%d 0 -1", "SMEMBERS set:%d"} {
		found := make(map[string]int)
		for i := range keys {
			for _, e := range elementsOf(conversation.Text(w.Do(fmt.Sprintf(reads, i)))) {
				found[e]++
			}
		}
		for i := range elements {
			if n := found[fmt.Sprint(i)]; n != 1 {
				t.Errorf("%s: %d is there %d times", reads, i, n)
			}
		}
		if len(found) != elements {
			t.Errorf("%s: there are %d elements, want %d", reads, len(found), elements)
		}
	}
}

// TestCrossSlotElementsKilled: a node is killed while elements move. None of them is lost, and
// those that were on their way may be there twice.
func TestCrossSlotElementsKilled(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 3, 1)
	const movers, elements, keys = 4, 120, 6
	w := harness.DialWire(t, c.Proxy(0).Addr)
	for i := range elements {
		w.Want(fmt.Sprintf("RPUSH list:%d %d", i%keys, i), fmt.Sprintf("(integer) %d", i/keys+1))
	}
	w.Want("WAIT 1 10000", "(integer) 1")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var moved, unknown atomic.Int64
	for m := range movers {
		wg.Go(func() {
			w, rng := harness.DialWire(t, c.Proxy(0).Addr), rand.New(rand.NewPCG(uint64(m), 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				line := fmt.Sprintf("RPOPLPUSH list:%d list:%d", rng.IntN(keys), rng.IntN(keys))
				switch got := conversation.Text(w.Do(line)); {
				case strings.HasPrefix(got, `"`):
					moved.Add(1)
				case strings.HasSuffix(got, "outcome unknown"), strings.HasPrefix(got, "(error) ERR the element may be at both keys"):
					unknown.Add(1)
				case got == "(nil)", strings.HasPrefix(got, "(error) TRYAGAIN"), strings.HasPrefix(got, "(error) CLUSTERDOWN"):
				default:
					t.Errorf("%s answers %s", line, got)
				}
			}
		})
	}
	const each = 300 // before the node dies, and behind that
	harness.Eventually(t, harness.ReadyTimeout, "elements move", func() bool { return moved.Load() >= each })
	before := moved.Load()
	c.Node(1).Kill()
	harness.Eventually(t, harness.ReadyTimeout, "elements move on", func() bool { return moved.Load() >= before+each })
	close(stop)
	wg.Wait()
	found, twice := make(map[string]int), 0
	for i := range keys {
		for _, e := range elementsOf(conversation.Text(w.Do(fmt.Sprintf("LRANGE list:%d 0 -1", i)))) {
			found[e]++
		}
	}
	for i := range elements {
		switch n := found[fmt.Sprint(i)]; n {
		case 1:
		case 2:
			twice++
		default:
			t.Errorf("%d is there %d times", i, n)
		}
	}
	t.Logf("%d were moved, %d of them before the node died; of %d the reply said that it is unknown; %d are there twice", moved.Load(), before, unknown.Load(), twice)
	if twice > elements/4 { // on their way, or taken in the last moment of the owner of a list
		t.Errorf("%d elements are there twice", twice)
	}
}

// TestCrossSlotBlocking: elements go through a queue for each worker, which waits for them by
// BLMOVE and BRPOPLPUSH, while a node joins. Each arrives once.
func TestCrossSlotBlocking(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 2, 2)
	const workers, elements = 4, 300
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			w := harness.DialWire(t, c.Proxy(i%2).Addr)
			for {
				line := fmt.Sprintf("BLMOVE in work:%d LEFT RIGHT 0", i)
				if i%2 == 1 {
					line = fmt.Sprintf("BRPOPLPUSH in work:%d 60", i)
				}
				switch got := conversation.Text(w.Do(line)); {
				case got == `"end"`:
					return
				case !strings.HasPrefix(got, `"`) && !strings.HasPrefix(got, "(error) TRYAGAIN"):
					t.Errorf("%s answers %s", line, got)
					return
				}
			}
		})
	}
	w := harness.DialWire(t, c.Proxy(0).Addr)
	joins := harness.NewMember(t, "node", "n9")
	joins.Flags = c.Node(0).Flags
	joins.Start()
	for i := range elements {
		w.Do(fmt.Sprintf("RPUSH in %d", i))
		time.Sleep(time.Duration(i%10) * time.Millisecond)
	}
	harness.Eventually(t, harness.ReadyTimeout, "all are taken", func() bool {
		return conversation.Text(w.Do("EXISTS in")) == "(integer) 0"
	})
	for range workers {
		w.Do("RPUSH in end")
	}
	wg.Wait()
	found := make(map[string]int)
	for i := range workers {
		for _, e := range elementsOf(conversation.Text(w.Do(fmt.Sprintf("LRANGE work:%d 0 -1", i)))) {
			found[e]++
		}
	}
	if found["end"] != workers || len(found) != elements+1 {
		t.Errorf("%d elements have arrived, want %d", len(found), elements+1)
	}
	for e, n := range found {
		if n != 1 && e != "end" {
			t.Errorf("%s has arrived %d times", e, n)
		}
	}
}

// TestCrossSlotBlockingEnds: a blocking move answers as redis-server does when it has an element, waits in vain, is
// unblocked, and is wrong.
func TestCrossSlotBlockingEnds(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 3, 1)
	w, redis := harness.DialWire(t, c.Proxy(0).Addr), harness.DialWire(t, redistest.Start(t))
	for _, line := range []string{
		"RPUSH a 1 2 3", "BLMOVE a b LEFT RIGHT 0", "BLMOVE a b right left 5", "BRPOPLPUSH a b 0", "LRANGE b 0 -1", "EXISTS a",
		"BLMOVE a b LEFT RIGHT 0.05", "BRPOPLPUSH a b 0.05", "BLMOVE a b UP RIGHT 0", "BLMOVE a b LEFT RIGHT x", "BRPOPLPUSH a b -1",
		"SET s v", "BLMOVE s b LEFT LEFT 0.05", "BLMOVE b s LEFT LEFT 0.05", "LRANGE b 0 -1", "BLMOVE none s LEFT LEFT 0.05",
		"HELLO 3", "BLMOVE a b LEFT RIGHT 0.05", "BRPOPLPUSH b c 1",
	} {
		if got, want := answer(w, line), answer(redis, line); got != want && !strings.HasPrefix(line, "HELLO") {
			t.Errorf("%s answers %s, and redis-server %s", line, got, want)
		}
	}
}

// TestCrossSlotNewKeys: MSETNX takes several locks of several nodes or none, while a node joins. Who has them is alone.
func TestCrossSlotNewKeys(t *testing.T) {
	t.Parallel()
	c := startCrossing(t, 2, 2)
	const takers, locks, each = 4, 6, 3
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var taken atomic.Int64
	for m := range takers {
		wg.Go(func() {
			w, rng := harness.DialWire(t, c.Proxy(m%2).Addr), rand.New(rand.NewPCG(uint64(m), 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				keys := rng.Perm(locks)[:each]
				line, all := "MSETNX", ""
				for _, k := range keys {
					line += fmt.Sprintf(" lock:%d %d", k, m)
					all += fmt.Sprintf(" lock:%d", k)
				}
				switch got := conversation.Text(w.Do(line)); {
				case got == "(integer) 1":
					taken.Add(1)
					for _, k := range keys {
						w.Want(fmt.Sprintf("GET lock:%d", k), fmt.Sprintf("%q", fmt.Sprint(m)))
					}
					w.Want("DEL"+all, fmt.Sprintf("(integer) %d", each))
				case got == "(integer) 0", strings.HasPrefix(got, "(error) TRYAGAIN"):
				default:
					t.Errorf("%s answers %s", line, got)
				}
			}
		})
	}
	joinMeanwhile(c)
	harness.Eventually(t, harness.ReadyTimeout, "the locks are taken", func() bool { return taken.Load() >= 10 })
	close(stop)
	wg.Wait()
	t.Logf("the locks were taken %d times", taken.Load())
	harness.DialWire(t, c.Proxy(0).Addr).Want("DBSIZE", "(integer) 0")
}

// elementsOf returns the elements of an array of strings.
func elementsOf(reply string) (all []string) {
	for _, line := range strings.Split(reply, "\n") {
		if _, e, ok := strings.Cut(line, ") "); ok {
			all = append(all, strings.Trim(e, `"`))
		}
	}
	return all
}

// joinMeanwhile has another node join, and returns when it has partitions.
func joinMeanwhile(c *harness.Cluster) {
	joins := harness.NewMember(c.T, "node", "n9")
	joins.Flags = c.Node(0).Flags
	joins.Start()
	c.Members = append(c.Members, joins)
	c.Converge(harness.ReadyTimeout)
}
