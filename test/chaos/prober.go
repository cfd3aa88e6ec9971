package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// prober writes and reads keys of one node, one command at a time, and notes how long each takes.
type prober struct {
	*Session
	node string
	Keys []*History

	mu      sync.Mutex
	timings []Timing
}

// Timing is one command of a prober: when it was sent, and how long it took.
type Timing struct {
	begin  time.Time
	took   time.Duration
	failed bool
}

const keysPerProber = 4

func (x *Rig) newProber(proxy *harness.Member, node string) *prober {
	p := &prober{Session: x.NewSession(proxy, "prober of "+node+" at "+proxy.ID), node: node}
	for i := 0; len(p.Keys) < keysPerProber; i++ {
		key := fmt.Sprintf("probe:%s:%s:%d", proxy.ID, node, i)
		if len(p.Keys) >= keysPerProber/2 {
			key += inDatabase1
		}
		if staysAt(node, key) {
			p.Keys = append(p.Keys, NewHistory(key))
		}
	}
	return p
}

// nodeSets are the sets of nodes that the clusters of the tests have at times.
var nodeSets = [][]string{
	{"n1", "n2", "n3"}, {"n2", "n3"}, {"n1", "n3"}, {"n1", "n2"},
	{"n1", "n2", "n3", "n4"}, {"n1", "n2", "n3", "n4", "n5"},
}

// targets are the owners of the partitions in each of nodeSets.
var targets = sync.OnceValue(func() (all [][]uint16) {
	for _, ids := range nodeSets {
		owner, err := ring.Target(ids)
		if err != nil {
			panic(err)
		}
		all = append(all, owner)
	}
	return all
})

// staysAt reports whether the node owns the key in every set of nodes that it is in. A fault of
// other nodes is then no reason for a command on the key to fail or wait.
func staysAt(node, key string) bool {
	p := ring.PartitionOf([]byte(key))
	for i, ids := range nodeSets {
		if slices.Contains(ids, node) && ids[targets()[i][p]] != node {
			return false
		}
	}
	return true
}

func (p *prober) run() {
	for i := 0; !p.X.Stopped(); i++ {
		if !p.X.Unpaused(func() bool { return p.probe(i) }) {
			return
		}
		time.Sleep(time.Duration(p.Rng.IntN(4)) * time.Millisecond)
	}
}

// probe sends command i and waits for its reply. It returns false if the connection has failed.
func (p *prober) probe(i int) bool {
	h := p.Keys[i/2%len(p.Keys)]
	if !p.selects(h.Key) {
		h = p.Keys[0]
		p.selects(h.Key)
	}
	if i%2 == 0 {
		p.set(h)
	} else {
		p.Get(h, true)
	}
	begin, failed := time.Now(), p.failures
	if !p.Exchange() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timings = append(p.timings, Timing{begin, time.Since(begin), p.failures > failed})
	return true
}

// Between returns the commands that were in flight at some time in the interval.
func (p *prober) Between(begin, end time.Time) (found []Timing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.timings {
		if s.begin.Add(s.took).After(begin) && s.begin.Before(end) {
			found = append(found, s)
		}
	}
	return found
}

// Forget drops what the probers have noted of commands that were sent before then.
func (x *Rig) Forget(before time.Time) {
	for _, p := range x.Probers {
		p.mu.Lock()
		p.timings = slices.DeleteFunc(p.timings, func(s Timing) bool { return s.begin.Before(before) })
		p.mu.Unlock()
	}
}

// succeeded reports whether a command that began after that time has succeeded.
func (p *prober) succeeded(after time.Time) bool {
	return slices.ContainsFunc(p.Between(after, time.Now()), func(s Timing) bool { return !s.failed && s.begin.After(after) })
}

// outage returns the longest time between two successes in the interval.
func (p *prober) outage(begin, end time.Time) (longest time.Duration) {
	last := begin
	for _, s := range p.Between(begin, end) {
		if done := s.begin.Add(s.took); !s.failed {
			longest = max(longest, done.Sub(last))
			last = done
		}
	}
	return longest
}

// Latencies returns the 99th percentile and the maximum of what the commands took.
func Latencies(all []Timing) (p99, worst time.Duration) {
	if len(all) == 0 {
		return 0, 0
	}
	took := make([]time.Duration, len(all))
	for i, s := range all {
		took[i] = s.took
	}
	slices.Sort(took)
	return took[len(took)*99/100], took[len(took)-1]
}

// pulse notes when the machine did not run this process in time. On a shared machine, the effects
// of a fault and those of other work would otherwise look alike.
type pulse struct {
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	began time.Time // of the present beat
	late  []Timing  // beats that came late, and by how much
}

const (
	beat     = 5 * time.Millisecond
	beatLate = 30 * time.Millisecond
)

func newPulse() *pulse {
	p := &pulse{stop: make(chan struct{}), began: time.Now()}
	p.done.Go(p.run)
	return p
}

func (p *pulse) close() {
	close(p.stop)
	p.done.Wait()
}

func (p *pulse) run() {
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(beat):
		}
		p.mu.Lock()
		if late, ok := p.lateness(); ok {
			p.late = append(p.late, late)
		}
		p.began = time.Now()
		p.mu.Unlock()
	}
}

// lateness returns by how much the present beat is late, if it is.
func (p *pulse) lateness() (late Timing, ok bool) {
	took := time.Since(p.began) - beat
	return Timing{begin: p.began, took: took}, took > beatLate
}

// Missed returns for how long the machine stood still in the interval, 0 if there is no pulse.
func (p *pulse) Missed(begin, end time.Time) (total time.Duration) {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.late
	if late, ok := p.lateness(); ok { // who asks may run again sooner than the pulse
		all = append(all[:len(all):len(all)], late)
	}
	for _, s := range all {
		if s.begin.Add(s.took).After(begin) && s.begin.Before(end) {
			total += s.took
		}
	}
	return total
}
