package soak

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/certtest"
	"github.com/dunlin-cache/dunlin/test/chaos"
	"github.com/dunlin-cache/dunlin/test/harness"
)

var (
	soakTime = flag.Duration("soak.time", 0, "how long TestSoak runs; 0: a smoke test of seconds")
	soakSeed = flag.Uint64("soak.seed", 0, "seed of the attacks; 0: by chance")
	soakOnly = flag.String("soak.only", "", "behaviors that TestSoak runs, separated by commas; empty: all")
	soakEach = flag.Duration("soak.each", 10*time.Second, "how long an attack lasts")
)

const (
	password = "a password that clients know"
	secret   = "a secret that only members know"

	nodeMemory = 128 << 20 // as package harness sets it
	// residentShare is how much of its limit, in percent, a node may have resident.
	residentShare = 110
	// slowerLimit is how many times as long the others' commands may take beside an attack as beside
	// a base, in the 99th percentile, and slowerFloor how long they may take in any case.
	slowerLimit = 2
	slowerFloor = 5 * time.Millisecond
	// clientsEach is how many clients of a behavior an attack has, mixed how many behaviors at once.
	clientsEach, mixed = 3, 3

	// garbageLimit is how much memory this process may take before garbage is collected in a segment.
	garbageLimit = 4 << 30

	// stoppedFor is for how long the last node stands still at a time beside large SETs. It is not
	// replaced, and not fenced.
	stoppedFor   = 400 * time.Millisecond
	stoppedEvery = 2 * time.Second
)

// soak is a cluster with its well-behaved clients, and what attacks did to them.
type soak struct {
	*chaos.Rig
	attack  attack // all but the behaviors
	members []*harness.Member
	rng     *rand.Rand
	fenced  map[string]int       // by node, so far
	base    segment              // the latest
	did     map[string][]segment // by behavior
}

// segment is what the well-behaved clients noticed of one attack, or of a base.
type segment struct {
	chaos.Figures
	fences   int
	resident map[string]int64 // by member: the highest in this segment
	slower   float64          // how many times as long as beside the base before it the commands took
}

// TestSoak attacks a cluster.
func TestSoak(t *testing.T) {
	harness.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("takes seconds, and loads the machine")
	}
	s := start(t)
	names := slices.Sorted(maps.Keys(behaviors))
	names = slices.DeleteFunc(names, func(n string) bool { return n == honest })
	if *soakOnly != "" {
		names = strings.Split(*soakOnly, ",")
	}
	if *soakTime == 0 {
		s.smoke(names)
	} else {
		s.run(names)
		s.report()
	}
	s.Finish()
}

// run runs each behavior alone, and then some at a time, until the time is over.
func (s *soak) run(names []string) {
	s.Settle("the start")
	begin := time.Now()
	alone := slices.Clone(names)
	s.rng.Shuffle(len(alone), func(i, j int) { alone[i], alone[j] = alone[j], alone[i] })
	for i := 0; time.Since(begin) < *soakTime; i++ {
		some := alone[min(i, len(alone)):min(i+1, len(alone))]
		if len(some) == 0 {
			some = s.some(names)
		}
		s.segment(*soakEach/2, clientsEach*len(some), honest)
		s.segment(*soakEach, clientsEach, some...)
	}
}

// smoke runs a few behaviors at once, for seconds.
func (s *soak) smoke(names []string) { s.segment(3*time.Second, 1, s.some(names)...) }

// some returns a few of the behaviors, by chance.
func (s *soak) some(names []string) (some []string) {
	for _, i := range s.rng.Perm(len(names))[:min(mixed, len(names))] {
		some = append(some, names[i])
	}
	return some
}

func start(t *testing.T) *soak {
	clients := certtest.New(t)
	cert, key := clients.Issue(t, "proxy")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &soak{fenced: map[string]int{}, did: map[string][]segment{}}
	s.Rig = chaos.StartWith(t, chaos.Options{
		Copies: 2, Mixers: 2, Batch: 24, Rest: 8 * time.Millisecond, Evicts: true, Password: password, Secret: secret,
		Flags: []string{"--secret-file", file, "--requirepass", password},
		Env:   []string{"DUNLIN_CROSS_SLOT=relaxed"}, // a flag of proxies
	})
	if *soakSeed != 0 {
		s.Seed = *soakSeed
	}
	t.Logf("seed %d", s.Seed)
	s.rng = rand.New(rand.NewPCG(s.Seed, 0))
	// Between the segments garbage is collected, and not in them: what the well-behaved clients wait for
	// is measured in this process.
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(garbageLimit)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	secure := harness.NewMember(t, "proxy", "p3")
	secure.Flags = append(slices.Clone(s.C.Proxy(0).Flags), "--tls-cert", cert, "--tls-key", key)
	s.attack = attack{Password: password, TLS: secure.Addr}
	for _, m := range s.C.Members {
		s.attack.Admins = append(s.attack.Admins, m.Admin)
		if m.Role == "proxy" {
			s.attack.Proxies = append(s.attack.Proxies, m.Addr)
		} else {
			s.attack.Nodes = append(s.attack.Nodes, m.Addr)
		}
	}
	secure.Start()
	s.members = append(slices.Clone(s.C.Members), secure) // the clients of the rig do not speak TLS
	s.fences()
	return s
}

// segment runs an attack, and notes what it did.
func (s *soak) segment(length time.Duration, clients int, names ...string) {
	s.T.Helper()
	a := s.attack
	a.Behaviors, a.Clients, a.Seed = names, clients, s.rng.Uint64()
	what := strings.Join(names, " + ")
	s.resetResident()
	var victim *harness.Member
	if slices.Contains(names, "large SETs") {
		victim = s.C.Node(2)
	}
	s.Forget(time.Now())
	runtime.GC()
	wrong := ""
	// All that the attack leaves behind, such as connections that are ending, belongs to it.
	f := s.Observe(what, victim, func() {
		end := a.start(s.T)
		for begin := time.Now(); time.Since(begin) < length; {
			if victim == nil {
				time.Sleep(length)
				break
			}
			victim.Stop()
			time.Sleep(stoppedFor)
			victim.Cont()
			time.Sleep(stoppedEvery - stoppedFor)
		}
		wrong = end()
	}, func() {})
	if wrong != "" {
		s.Violate("%s: %s", what, wrong)
	}
	seg := segment{Figures: f, fences: s.fences(), resident: s.resident()}
	if names[0] == honest {
		s.base = seg
	} else {
		seg.slower = float64(f.P99) / float64(max(s.base.P99, slowerFloor/slowerLimit))
		for _, n := range names {
			s.did[n] = append(s.did[n], seg)
		}
	}
	s.T.Logf("%-40s p99 %6.1f ms, worst %6.1f ms, %6d commands, %3d errors, %d fences; resident %s; the machine stood still for %d ms",
		what, ms(f.P99), ms(f.Worst), f.Commands, f.Failed, seg.fences, shown(seg.resident), f.Stood.Milliseconds())
	s.judge(what, seg)
}

// judge notes what must not be, whatever clients do. A machine that stands still fences nodes.
func (s *soak) judge(what string, seg segment) {
	if seg.fences > 0 && seg.Stood < chaos.MachineLimit {
		s.Violate("%s: %d fences", what, seg.fences)
	}
	for _, m := range s.C.ByRole("node") {
		if r := seg.resident[m.ID]; r > nodeMemory*residentShare/100 {
			s.Violate("%s: %s has %d MiB resident, its limit is %d", what, m.ID, r>>20, nodeMemory>>20)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func shown(resident map[string]int64) string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(resident)) {
		text += fmt.Sprintf("%s %d ", id, resident[id]>>20)
	}
	return text + "MiB"
}

// report compares the attacks with the bases before them.
func (s *soak) report() {
	slower := make(map[string]float64)
	for name, all := range s.did {
		ratios := make([]float64, len(all))
		for i, seg := range all {
			ratios[i] = seg.slower
		}
		slices.Sort(ratios)
		slower[name] = ratios[len(ratios)/2]
	}
	for _, name := range slices.SortedFunc(maps.Keys(slower), func(a, b string) int { return cmp.Compare(slower[b], slower[a]) }) {
		s.T.Logf("%-20s others' p99: %5.2f times that beside honest clients, in %d attacks", name, slower[name], len(s.did[name]))
		if slower[name] > slowerLimit {
			s.Violate("%s: the others' commands take %.1f times as long as beside honest clients, in the 99th percentile", name, slower[name])
		}
	}
}

// fences returns how often nodes were fenced since the last call.
func (s *soak) fences() (n int) {
	for _, m := range s.C.ByRole("node") {
		log, err := os.ReadFile(m.Logged)
		if err != nil {
			s.T.Fatal(err)
		}
		count := strings.Count(string(log), "msg=fenced")
		n += count - s.fenced[m.ID]
		s.fenced[m.ID] = count
	}
	return n
}

// resetResident begins to measure the highest resident memory of the members anew.
func (s *soak) resetResident() {
	for _, m := range s.members {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.Cmd.Process.Pid), []byte("5"), 0); err != nil {
			s.T.Fatal(err)
		}
	}
}

// resident returns the highest resident memory of each member since resetResident.
func (s *soak) resident() map[string]int64 {
	all := make(map[string]int64)
	for _, m := range s.members {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.Cmd.Process.Pid))
		if err != nil {
			s.T.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var kib int64
			if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
				all[m.ID] = kib << 10
			}
		}
	}
	return all
}
