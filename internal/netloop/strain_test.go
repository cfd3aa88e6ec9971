package netloop

import (
	"math"
	"testing"
	"time"
)

func TestStrain(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what  string
		loops []loopTimes // in 10 ms
		want  Strain
	}{
		{"idle", []loopTimes{{}}, Strain{}},
		{"busy", []loopTimes{{busy: 9 * ms, ran: 9 * ms}}, Strain{Busy: 0.9}},
		{"the system says nothing", []loopTimes{{busy: 9 * ms}}, Strain{Busy: 0.9}},
		{"runs late", []loopTimes{{busy: 3 * ms, ran: 2 * ms, wanted: 6 * ms}}, Strain{Busy: 0.8, Late: 0.6}},
		{"the busiest counts", []loopTimes{{busy: 2 * ms, ran: ms, wanted: 2 * ms}, {busy: 9 * ms, ran: 9 * ms}}, Strain{Busy: 0.9, Late: 0.2}},
		{"busy in the background", []loopTimes{{busy: 8 * ms, background: 8 * ms, ran: 6 * ms, wanted: 4 * ms}}, Strain{}},
		{"half of it in the background", []loopTimes{{busy: 8 * ms, background: 4 * ms, ran: 6 * ms, wanted: 4 * ms}}, Strain{Busy: 0.5, Late: 0.2}},
		{"a long iteration ends", []loopTimes{{busy: 50 * ms}}, Strain{Busy: 1}},
	} {
		var s Strain
		for _, l := range c.loops {
			s.add(l, 10*ms)
		}
		if math.Abs(s.Busy-c.want.Busy) > 1e-9 || math.Abs(s.Late-c.want.Late) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.what, s, c.want)
		}
	}
}

// TestLoopTimes checks that others see for how long a loop was busy, and in the background.
func TestLoopTimes(t *testing.T) {
	const worked = 5 * time.Millisecond
	g := newGroup(t, Config{})
	l := g.loops[0]
	before := l.times()
	var ran time.Duration // of the loop's thread, as the system has counted it
	l.Post(func() {
		// The thread stays the same while the loop is busy. Time that a hypervisor takes from the
		// processor is neither run nor waited for, so the loop works until enough of it is counted.
		begun := l.times()
		for start := l.Clock(); l.Clock()-start < 10*time.Second; {
			ran = l.times().since(begun).ran
			if l.Clock()-start >= worked && (begun.ran == 0 || ran >= worked) {
				break
			}
		}
		if begun.ran == 0 {
			ran = worked
		}
		l.Background(worked)
	})
	for range 2 { // the second iteration begins when the first one has ended
		if err := g.Each(func(*Loop) {}); err != nil {
			t.Fatal(err)
		}
	}
	if ran < worked {
		t.Errorf("the thread ran for %v in ten seconds", ran)
	}
	if got := l.times().since(before); got.busy < worked || got.background != worked {
		t.Errorf("%+v, want at least %v busy and as much of that in the background", got, worked)
	}
}

// TestGauge checks that a Gauge looks at the time since the last Read, unless that was long ago.
func TestGauge(t *testing.T) {
	g := newGroup(t, Config{})
	ga := g.NewGauge()
	now := g.clock.now()
	busyFor := func(d, ago time.Duration) Strain {
		ga.loops[0] = g.loops[0].times()
		ga.loops[0].busy -= d
		ga.last = now - ago
		return ga.read(now)
	}
	if s := busyFor(time.Second, 20*time.Millisecond); s.Busy < 0.99 {
		t.Errorf("busy all the time: %+v", s)
	}
	if s := ga.read(now + gaugePeriod/2); s.Busy < 0.99 {
		t.Errorf("read again at once: %+v", s)
	}
	if s := busyFor(time.Hour, time.Hour); s != (Strain{}) {
		t.Errorf("busy for an hour, and never looked at: %+v", s)
	}
	if ga.loops[0].thread != 0 {
		t.Error("the system is asked although nobody has looked for an hour")
	}
	ga.loops[0].busy -= 20 * time.Millisecond
	if s := ga.read(now + 20*time.Millisecond); s.Busy < 0.99 {
		t.Errorf("busy since then: %+v", s)
	}
}
