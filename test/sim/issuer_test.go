package sim

import (
	"slices"
	"time"

	"github.com/dunlin-cache/dunlin/ring"
)

// issuer is a coordinator that stands still behind a table that it has issued and nobody else has seen. The others
// take it for dead and go on without it, and clients with them.
type issuer struct {
	stops bool        // the next coordinator that issues a table does
	alone *ring.Table // the latest that was issued so; nil: none was
}

// adopted stops a coordinator that has issued t, unless another node was hurt lately, and otherwise announces t.
func (w *world) adopted(a *agent, t *ring.Table) {
	if !w.issuer.stops || t.Issuer != a.p.name || slices.ContainsFunc(w.procs, w.wasHurt) {
		a.announce()
		return
	}
	w.issuer = issuer{alone: t}
	w.after(nil, 0, func() {
		if a.p.dead || a.p.stopped {
			return
		}
		a.p.stop()
		w.after(nil, w.between(2*time.Second, 6*time.Second), a.p.resume)
	})
	w.after(a.p, 0, a.announce) // behind that
}

// checkHealed checks a table that ends a split: it does not continue what its issuer alone has seen, if at least two
// of those whom it lists have gone on together without it. Nodes that have gone on apart from each other may lose
// against it, and against a dead node that it lists and that may have seen it.
func (w *world) checkHealed(healed *ring.Table) {
	alone := w.issuer.alone
	if alone == nil || healed.Owner != alone.Owner || !sameNodes(healed, alone) {
		return
	}
	var without []*ring.Table
	for _, p := range w.nodes() {
		i := alone.NodeIndex(p.id, p.boot)
		if t := p.agent.table; i >= 0 && alone.Joined[i] < alone.Epoch && !related(t, alone) {
			without = append(without, t)
		}
	}
	for _, t := range without {
		together := 0
		for _, o := range without {
			if related(t, o) {
				together++
			}
		}
		if together > 1 {
			w.violate("what %s alone has seen continues, and %d nodes have gone on without it", alone.Issuer, together)
			return
		}
	}
}

func sameNodes(a, b *ring.Table) bool {
	if len(a.Nodes) != len(b.Nodes) {
		return false
	}
	for i := range a.Nodes {
		if a.Nodes[i].Name() != b.Nodes[i].Name() {
			return false
		}
	}
	return true
}

// related reports whether one of two tables is the other one, or descends from it.
func related(a, b *ring.Table) bool {
	return a.Version() == b.Version() || a.Descends(b.Version()) || b.Descends(a.Version())
}
