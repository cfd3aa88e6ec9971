package tlsbridge

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// crowd lets handshakes in that do nothing by themselves.
type crowd struct {
	*doorway
	begun   []*handshake
	refused int
}

func newCrowd() *crowd {
	c := &crowd{doorway: newDoorway()}
	c.free, c.room = 1, 400
	return c
}

func (c *crowd) come(address string) {
	c.enter(netip.MustParseAddr(address), func(h *handshake) { c.begun = append(c.begun, h) }, func() { c.refused++ })
}

// TestSourcesHaveShares checks that a source with very many connections takes neither the places of
// others nor all of the parking.
func TestSourcesHaveShares(t *testing.T) {
	c := newCrowd()
	for range 1000 {
		c.come("10.0.0.1")
	}
	if len(c.begun) != sourceHandshakes || c.parked != 300 || c.refused != 1000-300-sourceHandshakes {
		t.Errorf("%d have begun, %d are parked, %d refused", len(c.begun), c.parked, c.refused)
	}
	c.come("10.0.0.2")
	if len(c.begun) != sourceHandshakes+1 {
		t.Error("another source has to wait")
	}
	last := c.sources[netip.MustParseAddr("10.0.0.1")].parked[299]
	c.leave(c.begun[0])
	if c.begun[len(c.begun)-1] != last {
		t.Error("the last to come is not the first to start")
	}
	c.close()
	c.come("10.0.0.3")
	if c.parked != 0 || c.refused != 1000-sourceHandshakes {
		t.Errorf("after the end %d are parked, %d refused", c.parked, c.refused)
	}
	for _, h := range slices.Clone(c.begun[1:]) {
		c.leave(h)
	}
	if len(c.sources) != 0 || c.running() != 0 {
		t.Errorf("%d sources and %d handshakes are left", len(c.sources), c.running())
	}
}

// TestSourcesTakeTurns checks that a source with many handshakes does not delay another one's.
func TestSourcesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		for range 5 {
			c.come("10.0.0.1")
		}
		c.come("10.0.0.2")
		var order []string
		for i, h := range c.begun {
			go func() {
				c.compute(h)
				order = append(order, fmt.Sprint(i)) // one at a time
				time.Sleep(time.Second)
				c.rest(h)
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []string{"0", "1", "5", "2", "3", "4"}; !slices.Equal(order, want) {
			t.Errorf("computed in order %v, want %v", order, want)
		}
	})
}

// TestSilentPeersAreHurried checks that a peer may be silent until others of its source wait.
func TestSilentPeersAreHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		var failed atomic.Int64
		for range sourceHandshakes {
			c.come("10.0.0.1")
			ours, _ := net.Pipe()
			h := c.begun[len(c.begun)-1]
			g := &gate{Conn: ours, handshake: h}
			go func() {
				if _, err := g.Read(make([]byte, 1)); err != nil {
					failed.Add(1)
				}
				g.end()
				c.leave(h)
			}()
		}
		time.Sleep(time.Minute)
		if failed.Load() != 0 {
			t.Fatalf("%d were hurried though nobody waits", failed.Load())
		}
		c.come("10.0.0.1")
		synctest.Wait()
		if failed.Load() == 0 || len(c.begun) != sourceHandshakes+1 {
			t.Errorf("%d have failed, %d have begun", failed.Load(), len(c.begun))
		}
	})
}

// TestHandshakesRest checks that handshakes leave three quarters of their time to those who are in
// while loops are strained.
func TestHandshakesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		strained := false
		c.strained = func() bool { return strained }
		begun := time.Now()
		c.clock = func() time.Duration { return time.Since(begun) }
		took := func(work time.Duration) time.Duration {
			before := time.Now()
			for range 10 {
				h := &handshake{door: c.doorway, source: &source{}, turn: make(chan struct{}, 1)}
				c.compute(h)
				time.Sleep(work)
				c.rest(h)
			}
			return time.Since(before)
		}
		if d := took(time.Millisecond); d != 10*time.Millisecond {
			t.Errorf("10 handshakes of 1 ms took %v", d)
		}
		strained = true
		for _, c := range []struct{ work, want time.Duration }{
			{100 * time.Microsecond, 3700 * time.Microsecond},
			{10 * time.Millisecond, 370 * time.Millisecond}, // with an RSA certificate
			{time.Second, 10*time.Second + 9*longestRest},
		} {
			if d := took(c.work); d != c.want {
				t.Errorf("10 handshakes of %v took %v while loops were strained, want %v", c.work, d, c.want)
			}
			time.Sleep(longestRest)
		}
	})
}

// TestManyReconnect checks that hundreds of clients of one source that come at once are all let in
// while loops are strained, one by one, and leave three quarters of the time to those who are in.
func TestManyReconnect(t *testing.T) {
	const clients, work = 400, 2 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		c.strained = func() bool { return true }
		begun := time.Now()
		c.clock = func() time.Duration { return time.Since(begun) }
		var computing, in, most atomic.Int64
		for range clients {
			c.enter(netip.MustParseAddr("10.0.0.1"), func(h *handshake) {
				go func() {
					for range 2 { // it reads in between
						c.compute(h)
						most.Store(max(most.Load(), computing.Add(1)))
						time.Sleep(work / 2)
						computing.Add(-1)
						c.rest(h)
					}
					in.Add(1)
					c.leave(h)
				}()
			}, func() { c.refused++ })
		}
		if c.running() > sourceHandshakes {
			t.Errorf("%d handshakes of one source have started", c.running())
		}
		const whole = clients * work * (1 + restFactor)
		time.Sleep(whole / 2)
		synctest.Wait()
		if n := in.Load(); n > clients*6/10 {
			t.Errorf("%d of %d are in after half of the time", n, clients)
		}
		time.Sleep(whole / 2)
		synctest.Wait()
		if c.refused != 0 || in.Load() != clients || most.Load() != 1 {
			t.Errorf("%d of %d are in, %d were refused, %d computed at a time", in.Load(), clients, c.refused, most.Load())
		}
		c.doorway.mu.Lock()
		left := len(c.sources)
		c.doorway.mu.Unlock()
		if left != 0 {
			t.Errorf("%d sources are left", left)
		}
	})
}
