package sim
import "testing"
func TestZZ(t *testing.T) {
	p := pinned[1]
				for s := uint64(1); s < 6000; s++ {
					o := seeded(s)
					p.as(&o)
					p.broke(&o)
					if w := history(o); w.fault != "" {
						o = seeded(s)
						p.as(&o)
						w2 := history(o)
						t.Logf("FOUND seed %d %s: %s; without: %q", s, p.fault, w.fault, w2.fault)
						if w2.fault == "" { return }
					}
				}
}
