package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/test/harness"
)

// TestChaosCopiesNotice checks what is noticed of copies: an invalidation that is lost, and one that overtakes the
// value that it revokes.
func TestChaosCopiesNotice(t *testing.T) {
	x := &Rig{T: t, C: &harness.Cluster{}, Tables: &tableWatch{}, Pulse: newPulse(), tolerated: map[string]int{}, losses: map[string]int{}}
	t.Cleanup(x.Pulse.close)
	violations := 0
	f := func(what, want string, do func(c *cache, h *History)) {
		t.Helper()
		h := NewHistory("k")
		c := &cache{Session: &Session{X: x, name: what, version: resp.RESP3}, g: &caching{x: x}, copies: map[string]*held{}, tracks: true}
		do(c, h)
		c.judge(time.Now()) // too early
		c.judge(time.Now().Add(2 * copyTime))
		c.judge(time.Now().Add(2 * copyTime)) // noted once
		x.JudgeAbsences(time.Now())
		x.Mu.Lock()
		defer x.Mu.Unlock()
		got := strings.Join(x.violations[violations:], "; ")
		if violations = len(x.violations); (want == "") != (got == "") || !strings.Contains(got, want) || strings.Count(got, "copy") > 1 {
			t.Errorf("%s: found %q, want %q", what, got, want)
		}
	}
	writes := func(h *History, o outcome) { h.Answered(h.Write(time.Now()), o) }
	deletes := func(h *History, o outcome) { h.Answered(h.remove(time.Now()), o) }
	reads := func(c *cache, h *History) (answer func(shown uint64)) {
		c.get(h)
		judge := c.Judges[0]
		c.Judges = nil
		return func(shown uint64) {
			reply := "_\r\n"
			if shown > 0 {
				reply = string(resp.AppendBulk(nil, h.value(shown)))
			}
			judge([]byte(reply))
		}
	}
	gone := func(c *cache, key string) {
		c.invalidated(fmt.Appendf(nil, ">2\r\n$10\r\ninvalidate\r\n*1\r\n$%d\r\n%s\r\n", len(key), key))
	}

	f("lost", "after write 2 was acknowledged", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		writes(h, Executed)
	})
	f("told", "", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		writes(h, Executed)
		gone(c, "k")
		reads(c, h)(2)
	})
	f("of another key", "shows write 1", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		writes(h, Executed)
		gone(c, "other")
	})
	f("overtakes", "after write 2 was acknowledged", func(c *cache, h *History) {
		writes(h, Executed)
		answer := reads(c, h)
		writes(h, Executed)
		gone(c, "k")
		answer(1)
	})
	f("overtakes, and is noticed by the next write", "after write 2 was acknowledged", func(c *cache, h *History) {
		writes(h, Executed)
		answer := reads(c, h)
		writes(h, Executed)
		gone(c, "k")
		answer(1)
		writes(h, Executed)
	})
	f("everything", "", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		writes(h, Executed)
		c.invalidated([]byte(">2\r\n$10\r\ninvalidate\r\n_\r\n"))
	})
	f("a new connection", "", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		writes(h, Executed)
		c.forgetAll()
		reads(c, h)(2) // not tracked
		writes(h, Executed)
	})
	f("not executed, or not known", "", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		writes(h, notExecuted)
		writes(h, unknown)
		h.Write(time.Now())
	})
	f("deleted", "shows write 1", func(c *cache, h *History) {
		writes(h, Executed)
		reads(c, h)(1)
		deletes(h, Executed)
	})
	f("not there", "after write 2 was acknowledged", func(c *cache, h *History) {
		deletes(h, Executed)
		reads(c, h)(0)
		writes(h, Executed)
	})
	f("deleted again", "", func(c *cache, h *History) {
		deletes(h, Executed)
		reads(c, h)(0)
		deletes(h, Executed)
	})
	f("deleted meanwhile", "", func(c *cache, h *History) {
		answer := reads(c, h)
		writes(h, Executed)
		deletes(h, Executed)
		answer(0)
	})
	f("another push", "a push", func(c *cache, _ *History) { c.invalidated([]byte(">1\r\n$3\r\nfoo\r\n")) })
}

// TestChaosCopiesMayBeOld: a write that a node took along when it died may be missing in a copy that came behind that,
// but not in one that came before.
func TestChaosCopiesMayBeOld(t *testing.T) {
	h := NewHistory("k")
	begin := time.Now()
	h.Answered(h.Write(begin), Executed)
	seq := h.Write(begin)
	h.answeredAt(seq, Executed, begin.Add(20*time.Millisecond)) // it waited for its turn, and its node is gone
	k := &held{h: h, shows: 1, asked: begin.Add(10 * time.Millisecond), came: begin.Add(15 * time.Millisecond), issued: seq}
	if o := k.outlives(begin.Add(time.Hour)); o == nil || o.certain || o.first != seq || o.lost != 1 {
		t.Errorf("outlived %+v, want what the death of a node may explain", o)
	}
	h.answeredAt(h.Write(begin), Executed, begin.Add(30*time.Millisecond))
	if o := k.outlives(begin.Add(time.Hour)); o == nil || !o.certain || o.first != seq || o.lost != 2 {
		t.Errorf("outlived %+v, want what nothing explains", o)
	}
	if o := k.outlives(begin.Add(20 * time.Millisecond)); o != nil {
		t.Errorf("outlived %+v before a write was acknowledged", o)
	}
}
