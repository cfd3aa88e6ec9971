package streams

import (
	"testing"
	"time"
)

// A scan for what is idle looks at no pending entry while none can be idle for long enough, and else at all of them.
// What was acknowledged is looked for once more.
func TestScanOfWhatIsIdle(t *testing.T) {
	m := newRig(t, 1)
	const entries, minIdle, all = 100, 1000, 10_000
	begun := m.now
	m.with(m.owner, func(s *stream) {
		for i := range entries {
			m.failed(s.add(ID{uint64(i + 1), 0}, [][]byte{[]byte("f"), []byte("v")}))
		}
		m.failed(s.makeGroup([]byte("g"), minID, 0))
		g, _ := s.group([]byte("g"))
		if _, err := s.createConsumer(&g, []byte("c"), begun); err != nil {
			t.Fatal(err)
		}
		m.failed(s.close())
	})
	change := func(f func(s *stream, g *group, c *consumer)) {
		m.with(m.owner, func(s *stream) {
			g, _ := s.group([]byte("g"))
			c, _ := s.consumer(&g, []byte("c"))
			f(s, &g, &c)
			m.failed(s.close())
		})
	}
	// A scan with so many steps at a time looks at so many pending entries, and finds some of them.
	scan := func(atOnce int, after int64, looks, finds int, again time.Duration) {
		t.Helper()
		m.with(m.owner, func(s *stream) {
			g, _ := s.group([]byte("g"))
			var c idleScan
			left := atOnce
			for !c.scan(&s.view, &g, begun+after, minIdle, entries, &left) {
				left = atOnce
			}
			spent := atOnce - left - existsCost*len(c.found)
			if got := c.after(begun+after, minIdle); atOnce > entries && spent != looks || len(c.found) != finds || got != again {
				t.Errorf("after %d ms %d are looked at and %d found, again after %v, want %d, %d, %v",
					after, spent, len(c.found), got, looks, finds, again)
			}
		})
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	scan(all, 5000, 0, 0, ms(minIdle))
	change(func(s *stream, g *group, c *consumer) {
		for i := range entries {
			m.failed(s.setPending(g, c, pending{id: ID{uint64(i + 1), 0}, delivered: begun + int64(i), count: 1}))
		}
	})
	scan(all, minIdle-1, 0, 0, ms(1))
	scan(all, minIdle, entries, 1, ms(1))
	change(func(s *stream, g *group, _ *consumer) {
		for i := range 50 {
			s.ack(g, ID{uint64(i + 1), 0})
		}
	})
	scan(all, minIdle+10, 50, 0, ms(40))
	scan(all, minIdle+10, 0, 0, ms(40))
	scan(all, minIdle+50, 50, 1, ms(1))
	change(func(s *stream, g *group, c *consumer) { // as XCLAIM with IDLE does
		m.failed(s.setPending(g, c, pending{id: ID{100, 0}, delivered: begun + 20, count: 2}))
	})
	scan(7, minIdle+20, 50, 1, ms(30))
	scan(all, minIdle+19, 0, 0, ms(1))
}
