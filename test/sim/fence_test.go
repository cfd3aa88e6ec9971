package sim

import "time"

// slept is called when the process goes on after it was stopped.
func (n *node) slept(gap time.Duration) {
	n.gap = max(n.gap, gap)
	n.inside = n.w.chance(0.2)
	n.w.after(n.p, n.w.between(0, 10*time.Millisecond), func() { n.iterate(false) })
}

// iterate is the beginning of a loop's iteration. It tells whether a command was already past that when the process
// was stopped.
func (n *node) iterate(command bool) (late bool) {
	if n.gap == 0 {
		return false
	}
	if command && n.inside {
		n.inside = false
		return true
	}
	if n.gap > stallLimit && !n.w.neverFence {
		n.fence("stood still")
	}
	n.gap = 0
	return false
}

func (n *node) fence(why string) {
	n.doubts++
	if n.fenced {
		return
	}
	n.w.tracef("%s is fenced: %s", n.p.name, why)
	n.fenced = true
	n.unfence()
}

func (n *node) unfence() {
	seen := n.doubts
	n.a.confirm(n.w.now, func(ok bool) {
		if !ok {
			n.w.after(n.p, retryPeriod, n.unfence)
			return
		}
		n.setTable(n.a.table, func() {
			if n.doubts != seen {
				n.unfence()
				return
			}
			n.fenced = false
			n.w.noFence(n)
			n.w.tracef("%s is fenced no longer, epoch %d", n.p.name, n.view.epoch())
		})
	})
}
