package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
)

// slept is called when the process goes on after it was stopped.
func (n *node) slept(gap time.Duration) {
	n.gap = max(n.gap, gap)
	n.inside = n.w.chance(0.2)
	n.w.after(n.p, n.w.between(0, 10*time.Millisecond), func() { n.iterate(false) })
}

// iterate is the beginning of a loop's iteration. It reports whether a command was already past
// that when the process was stopped.
func (n *node) iterate(command bool) (late bool) {
	if n.gap == 0 {
		return false
	}
	if command && n.inside {
		n.inside = false
		return true
	}
	if n.doubts.Stalled(n.gap) {
		n.raise("stood still")
	}
	n.gap = 0
	return false
}

// fence has the node confirm its table before it serves on.
func (n *node) fence(why string) {
	if n.doubts.Doubt() {
		n.raise(why)
	}
}

func (n *node) raise(why string) {
	n.w.tracef("%s is fenced: %s", n.p.name, why)
	n.fenced = true
	n.fences++
	n.unfence()
}

func (n *node) unfence() {
	n.doubts.Confirm()
	n.a.confirm(n.w.now, func(ok bool) {
		if !ok {
			n.w.after(n.p, ownership.RetryPeriod, n.unfence)
			return
		}
		n.setTable(n.a.table, func() {
			if !n.doubts.Confirmed() {
				n.unfence()
				return
			}
			n.fenced = false
			n.w.noFence(n)
			for k := range places {
				n.servePlace(k, false)
			}
			n.w.tracef("%s is fenced no longer, epoch %d", n.p.name, n.view.Epoch())
		})
	})
}
