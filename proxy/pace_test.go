package proxy

import (
	"testing"
	"time"
)

// Beside other commands a long command waits for the others' chunks, and for the rest behind them.
func TestLongCommandsRest(t *testing.T) {
	for come, want := range map[bool]uint32{true: freeChunks, false: freeChunks + 2} {
		c := newCluster(t, 1, oneLoop(t))
		w := c.proxy.workers[0]
		w.onLoop(func() {
			w.others = others{come: come, looked: w.loop.Now() + time.Hour}
			w.pace.until = w.loop.Clock() + time.Hour
		})
		cl := c.dial()
		cl.send(manyKeys("EXISTS", int(want)*maxKeys, nil))
		if come {
			cl.send("PING")
			cl.send(manyKeys("EXISTS", (freeChunks+2)*maxKeys, nil))
		}
		cl.want(":0")
		if !come {
			continue
		}
		cl.want("+PONG")
		eventually(t, "the command rests", func() (rests bool) {
			w.onLoop(func() {
				long, _ := w.clients[0].long.(*chunked)
				rests = long != nil && long.rests && len(long.flying) == 0
				if rests && long.cuts != want {
					t.Errorf("the command rests behind %d chunks, want %d", long.cuts, want)
				}
				if rests {
					w.pace.until = 0
					w.pace.endRests()
				}
			})
			return rests
		})
		cl.want(":0")
	}
}

// The rest is as long as the chunk took, some times, within bounds; a chunk that does not come back holds
// up the others only for a while.
func TestRestBehindChunks(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w := c.proxy.workers[0]
	w.onLoop(func() {
		// until checks when the next piece may be sent after act: rest, which depends on when the
		// proxy looked at its clock, behind that moment.
		until := func(what string, rest func(now time.Duration) time.Duration, act func()) {
			t.Helper()
			before := w.loop.Clock()
			act()
			after := w.loop.Clock()
			if got, least, most := w.pace.until, before+rest(before), after+rest(after); got < least || got > most {
				t.Errorf("%s: it rests until %v, want %v to %v", what, got, least, most)
			}
		}
		flight := func(time.Duration) time.Duration { return flightLimit }
		goesOn := func(what string, act func()) {
			t.Helper()
			before := w.pace.until
			if act(); w.pace.until != before {
				t.Errorf("%s: it rests until %v, want %v still", what, w.pace.until, before)
			}
		}
		comes := func(what string, f *fan, took time.Duration) {
			t.Helper()
			sent := w.loop.Clock() - took
			w.pace.sent = sent
			until(what, func(now time.Duration) time.Duration { return min(restFactor*(now-sent), restLimit) },
				func() { w.pace.came(f) })
		}
		f, later := &fan{}, &fan{}
		until("on its way", flight, func() { w.pace.begin(f) })
		goesOn("still on its way", func() { w.pace.came(&fan{}) }) // of a command that is not long
		until("another one is on its way", flight, func() { w.pace.begin(later) })
		goesOn("the later one is on its way", func() { w.pace.came(f) })
		comes("behind 18 ms", later, 18*time.Millisecond)
		w.pace.begin(f)
		comes("behind a second", f, time.Second)
	})
}

// Commands over the whole cluster rest while loops are strained, and come one after the other then. Those that change
// something do not, nor does any while loops are not strained.
func TestWideCommandsRest(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	w, strained := c.proxy.workers[0], false
	w.onLoop(func() {
		w.strained = func() bool { return strained }
		w.widePace.until = w.loop.Clock() + time.Hour
	})
	other := c.dial()
	other.send("DBSIZE")
	other.want(":0")
	w.onLoop(func() { strained = true })
	all := []*conn{c.dial(), c.dial(), c.dial()}
	for _, cl := range all {
		cl.send("DBSIZE")
	}
	eventually(t, "the commands rest", func() (rest bool) {
		w.onLoop(func() { rest = len(w.widePace.resting) == len(all) })
		return rest
	})
	other.send("FLUSHALL")
	other.want("+OK")
	w.onLoop(func() {
		w.widePace.until = 0
		w.widePace.endRests()
		if p := &w.widePace; p.flying == nil || len(p.resting) != len(all)-1 {
			t.Errorf("%d commands rest behind the first", len(p.resting))
		}
	})
	for _, cl := range all {
		cl.want(":0")
	}
}
