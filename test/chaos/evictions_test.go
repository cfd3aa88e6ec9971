package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// evictions are keys that one session stores, each once, in nodes that are full, and the notifications of their ends.
type evictions struct {
	x *Rig

	mu     sync.Mutex
	stored []string
	told   map[string]map[string]int // how often, by listener and key
}

const (
	evictedChannel = "__keyevent@0__:evicted"
	evictedSize    = 16 << 10
)

// TestChaosEvictions lets a node join full nodes and leave in order, while all of them evict. Each key is there or was
// evicted, and that was told once at each proxy. The next owner of a partition that moves may evict what it gets before
// it owns that, which nobody tells.
func TestChaosEvictions(t *testing.T) {
	if testing.Short() {
		t.Skip("fills three nodes")
	}
	x := newRig(t, rand.Uint64(), Options{Copies: 1, Evicts: true, NodeFlags: []string{"--memory", "64mb"}})
	t.Cleanup(x.endSessions)
	harness.Eventually(t, harness.ReadyTimeout, "the cluster's level allows notifications", func() bool { return x.Tables.atLevel(ring.EventsLevel) })
	w := &evictions{x: x, told: map[string]map[string]int{}}
	for _, p := range x.C.ByRole("proxy") {
		s := x.NewSession(p, listenerAt(p))
		s.exactly("*3\r\n$9\r\nsubscribe\r\n$22\r\n"+evictedChannel+"\r\n:1\r\n", "SUBSCRIBE", evictedChannel)
		s.Exchange()
		w.told[s.name] = map[string]int{}
		x.Running.Go(func() { w.listen(s) })
	}
	s := x.NewSession(x.C.Proxy(0), "who fills")
	s.exactly("+OK\r\n", "CONFIG", "SET", "notify-keyspace-events", "Ee")
	s.Exchange()
	var filling sync.WaitGroup
	full := make(chan struct{})
	filling.Go(func() { w.fill(s, full) })
	more := func(what string) {
		t.Helper()
		before := w.toldLeast()
		harness.Eventually(t, harness.ReadyTimeout, "keys are evicted "+what, func() bool { return w.toldLeast() > before+500 }, x.Shown)
	}
	more("at first")
	begin := time.Now()
	fourth := harness.NewMember(t, "node", "n4")
	fourth.Flags = x.C.Node(0).Flags
	x.C.Members = append(x.C.Members, fourth)
	x.during("join of n4", fourth, fourth.Launch)
	more("by four nodes")
	x.during("end of n4 by SIGTERM", fourth, func() { x.leaves(fourth) })
	more("by three nodes again")
	close(full)
	filling.Wait()
	w.judge(s, begin)
	x.endSessions()
	x.report()
}

// fill stores keys until it is told to end.
func (w *evictions) fill(s *Session, end <-chan struct{}) {
	value := strings.Repeat("v", evictedSize)
	for n := 0; ; {
		select {
		case <-end:
			return
		default:
		}
		for range 8 {
			key := "evicted:" + strconv.Itoa(n)
			n++
			s.Add(func(reply []byte) {
				if w.x.Outcome(s, reply, "+OK\r\n") == Executed {
					w.note(func() { w.stored = append(w.stored, key) })
				}
			}, "SET", key, value)
		}
		if !s.Exchange() {
			return
		}
		harness.SleepUpTo(4*time.Millisecond, s.Rng)
	}
}

func (w *evictions) note(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

// listen notes which evictions a listener is told of.
func (w *evictions) listen(s *Session) {
	for !w.x.Stopped() {
		frame, err := s.Link.Receive(time.Now().Add(50 * time.Millisecond))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		parts, bad := flat(frame)
		if err != nil || bad != nil || len(parts) != 3 {
			w.x.Violate("%s: it hears %.80q: %v, %v", s.name, frame, err, bad)
			return
		}
		w.note(func() { w.told[s.name][string(parts[2])]++ })
	}
}

// toldLeast returns how many keys all listeners have been told of, at least.
func (w *evictions) toldLeast() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	least := len(w.stored)
	for _, keys := range w.told {
		least = min(least, len(keys))
	}
	return least
}

// judge waits until all are told what has become of each key. Partitions have moved since begin.
func (w *evictions) judge(s *Session, begin time.Time) {
	var wrong []string
	left, silent := 0, 0
	w.x.eventually(lastMessages, "each eviction is told once", func() bool {
		there, hurt := w.look(s), w.x.hurt(begin)
		wrong, left, silent = nil, len(there), 0
		w.mu.Lock()
		defer w.mu.Unlock()
		for name, told := range w.told {
			for _, key := range w.stored {
				switch n := told[key]; {
				case n > 1, n == 1 && there[key], n == 0 && !there[key] && !hurt && !w.moved(key, begin):
					wrong = append(wrong, fmt.Sprintf("%s was told %d times that %s was evicted, which is there: %v", name, n, key, there[key]))
				case n == 0 && !there[key]:
					silent++
				}
			}
		}
		return len(wrong) == 0
	}, func() string { return fmt.Sprintf("%d wrong: %q", len(wrong), wrong[:min(shownFaults, len(wrong))]) })
	w.x.T.Logf("%d keys were stored, %d are left; evictions of copies that nobody was told of: %d", len(w.stored), left, silent)
}

// look returns which keys are there.
func (w *evictions) look(s *Session) (there map[string]bool) {
	there = map[string]bool{}
	for some := range slices.Chunk(w.stored, 500) {
		for _, key := range some {
			s.Add(func(reply []byte) {
				if string(reply) == ":1\r\n" {
					there[key] = true
				}
			}, "EXISTS", key)
		}
		s.Exchange()
	}
	return there
}

// moved reports whether the partition of a key has moved since begin.
func (w *evictions) moved(key string, begin time.Time) bool {
	partition := ring.PartitionOf([]byte(key))
	for at := begin; at.Before(time.Now()); at = at.Add(watchLag) {
		if w.x.Tables.movingAbout(partition, at) {
			return true
		}
	}
	return false
}
