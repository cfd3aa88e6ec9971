package sim

import (
	"time"

	"github.com/dunlin-cache/dunlin/node/ownership"
	"github.com/dunlin-cache/dunlin/ring"
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
	n.unfence(n.a.table)
}

// unfence confirms the table. doubted is the one that the agent had when the fence rose.
func (n *node) unfence(doubted *ring.Table) {
	n.doubts.Confirm()
	n.a.confirm(doubted, n.w.now, func(ok, alone bool) {
		switch {
		case !ok:
			n.w.after(n.p, ownership.RetryPeriod, func() { n.unfence(doubted) })
		case alone && n.a.decide.HasOthers(doubted) && n.doubts.WasAbsent():
			n.setTable(n.a.table, func() {
				n.w.tracef("%s forgets what it serves: nobody knows whether others have served that", n.p.name)
				n.forgot = everyPlace
				n.step((*ownership.Machine).Forget, func() { n.lift(doubted) })
			})
		default:
			n.setTable(n.a.table, func() { n.lift(doubted) })
		}
	})
}

// lift ends the fence, unless there was another doubt.
func (n *node) lift(doubted *ring.Table) {
	if !n.doubts.Confirmed() {
		n.unfence(doubted)
		return
	}
	n.fenced = false
	n.w.noFence(n)
	for k := range places {
		n.servePlace(k, false)
	}
	n.w.tracef("%s is fenced no longer, epoch %d", n.p.name, n.view.Epoch())
}
