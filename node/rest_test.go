package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/netloop"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/node/crew"
	"github.com/dunlin-cache/dunlin/node/exec"
	"github.com/dunlin-cache/dunlin/ring"
)

// strain makes the node's loops strained, gives its crew one place, and counts how often a goroutine
// asks whether it should pause.
func strain(t *testing.T, n *Node) (asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	once := sync.OnceFunc(func() {
		n.strained = func() bool {
			asked.Add(1)
			return true
		}
		n.crew = crew.New(1, n.goJob, func(time.Duration) {})
	})
	if err := n.cfg.Group.Each(func(*netloop.Loop) { once() }); err != nil {
		t.Fatal(err)
	}
	return asked
}

// pauseOf returns how long a goroutine pauses behind a step.
func pauseOf(ctx context.Context) time.Duration {
	before := exec.Paused(ctx)
	for begun := time.Now(); time.Since(begun) < time.Millisecond; {
	}
	_ = exec.Step(ctx)
	return exec.Paused(ctx) - before
}

// What a goroutine does for a command that only reads pauses while loops are strained. One that
// changes something does not pause: others wait for its partition, or its sources change meanwhile.
func TestWorkPauses(t *testing.T) {
	n := startNode(t)
	asked := strain(t, n)
	setLong(t, n, "{k}a")
	c, p, keys := dial(t, n.Addr()), laterPipe(t, n, "large", 1), openPipeTo(t, n, 9, 0, "large", 1, 2)
	eventually(t, "KEYS pauses", func() bool {
		keys.each(&allPartitions, "KEYS *") // a client's would rest (looks.go); some are too quick for a pause
		return asked.Load() > 0
	})
	asked.Store(0)
	sources := strings.Repeat(" {k}a", 50)
	p.raw("BITOP OR {k}b"+sources, "-DUNLINLATER 1")
	p.frame("BITOP", push(1, fmt.Sprintf(":%d", million)))
	if asked.Load() > 0 {
		t.Error("BITOP pauses, and others of its partition wait")
	}
	c.want("BITOP OR {k}b"+sources, fmt.Sprintf("(integer) %d", million))
	if asked.Load() > 0 {
		t.Error("a client's BITOP pauses, and its sources change")
	}
}

// The reply to a command that has removed what it replies does not pause: its pin is all that is left.
func TestPopsDoNotPause(t *testing.T) {
	n := startLeveled(t)
	asked := strain(t, n)
	c := dial(t, n.Addr())
	for i := range 400 {
		c.do(fmt.Sprintf("SADD {k}s %d%s", i, strings.Repeat("x", 20_000)))
	}
	if got := strings.Count(c.do("SPOP {k}s 1000"), "xx"+`"`); got != 400 {
		t.Errorf("SPOP answers %d members, want 400", got)
	}
	if asked.Load() > 0 {
		t.Error("SPOP pauses, and what it pops is nowhere else")
	}
}

// No work pauses while work that must not rest waits for its place in the crew.
func TestNoPausesBeforeWrites(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	strain(t, n)
	c := dial(t, n.Addr())
	c.want("PING", "PONG")
	at, pauses := make(chan bool), make(chan time.Duration)
	end := sync.OnceFunc(func() { close(at) })
	defer end()
	work := &slowWork{}
	work.begin(n, func(ctx context.Context, _ *worker) {
		for range at {
			pauses <- pauseOf(ctx)
		}
	})
	step := func(what string, want bool) {
		t.Helper()
		at <- true
		if got := came(t, "a step", pauses); got > 0 != want {
			t.Errorf("%s, a step is followed by a pause of %v", what, got)
		}
	}
	step("with nothing behind it", true)
	p, other := laterPipe(t, n, "common", 1), dial(t, n.Addr())
	p.raw("SETRANGE k 1000000 x", "-DUNLINLATER 1")
	step("before a write of a pipe", false)
	p.conn.Close()
	eventually(t, "nothing waits", func() bool { return n.pressing.Load() == 0 })
	step("behind the end of the pipe", true)
	other.send("SETRANGE k 1000000 x")
	eventually(t, "the write waits", func() bool { return n.pressing.Load() == 1 })
	step("before a client's write", false)
	end()
	if got := other.next(); got != "(integer) 1000001" || n.pressing.Load() != 0 {
		t.Errorf("SETRANGE answers %s, and %d pieces of work wait", got, n.pressing.Load())
	}
}

// A command over all keys that begins again, because a table has come, pauses no more.
func TestNoPausesBehindATable(t *testing.T) {
	n := startNode(t, func(c *Config) { c.Group = newGroup(t, 1) })
	strain(t, n)
	c := dial(t, n.Addr())
	c.want("PING", "PONG")
	pauses := make(chan time.Duration, coverTries)
	cover := func(ctx context.Context, _ *ring.PartitionSet) []byte {
		if pauses <- pauseOf(ctx); len(pauses) == 1 {
			giveAway(n, 0)
		}
		return resp.AppendOK(nil)
	}
	w := n.workers[0]
	w.loop.Post(func() {
		for cn := range w.conns {
			r := w.begin(cn)
			r.Cmd, r.Part, r.wanted = command.ByID(command.Keys), true, allPartitions
			r.coverLater(rests, cover)
			r.Part = false
			w.end(r, 0, 0)
		}
	})
	c.read()
	var all []time.Duration
	for range len(pauses) {
		all = append(all, <-pauses)
	}
	if len(all) < 2 || all[0] == 0 || slices.Max(all[1:]) > 0 {
		t.Errorf("the tries pause for %v, want only the first to pause, and another one", all)
	}
}

// Pauses do not count as time of the command.
func TestTimeWithoutPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := exec.WithSteps(t.Context(), func() bool { return true })
		for range 2 {
			begun := time.Now()
			got := timeOf(ctx, func() {
				time.Sleep(time.Millisecond)
				_ = exec.Step(ctx)
			})
			if total := time.Since(begun); got != time.Millisecond || total != 10*time.Millisecond {
				t.Errorf("work took %v of %v, want 1ms of 10ms", got, total)
			}
		}
	})
}

// Behind work that could not pause its place in the crew rests, if loops are strained.
func TestRestBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		n := &Node{ctx: ctx}
		rest := func(strained bool, worked, want time.Duration) {
			t.Helper()
			n.strained = func() bool { return strained }
			begun := time.Now()
			if n.restBehind(worked); time.Since(begun) != want {
				t.Errorf("behind work of %v there is a rest of %v, want %v", worked, time.Since(begun), want)
			}
		}
		rest(true, 2*time.Millisecond, 18*time.Millisecond)
		rest(true, time.Second, 90*time.Millisecond)
		rest(true, 10*time.Microsecond, 0)
		rest(false, 2*time.Millisecond, 0)
		end()
		rest(true, time.Second, 0) // the node closes
	})
}

// A write that a goroutine works on is answered before its place in the crew rests.
func TestRestBehindWrites(t *testing.T) {
	n := startNode(t)
	rests, release := make(chan bool), make(chan bool)
	defer close(release)
	once := sync.OnceFunc(func() {
		n.crew = crew.New(1, n.goJob, func(worked time.Duration) {
			if worked <= 0 {
				t.Error("a write has taken no time")
			}
			rests <- true
			<-release
		})
	})
	if err := n.cfg.Group.Each(func(*netloop.Loop) { once() }); err != nil {
		t.Fatal(err)
	}
	c := dial(t, n.Addr())
	c.want("SETRANGE k 1000000 x", "(integer) 1000001")
	came(t, "the rest", rests)
}
