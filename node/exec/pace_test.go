package exec

import "testing"

func TestPace(t *testing.T) {
	var p Pace
	f := func(left, moved, wantLooks int64, wantCrawls bool) {
		t.Helper()
		if looks, crawls := p.Look(left, moved); looks != wantLooks || crawls != wantCrawls {
			t.Errorf("%d left, %d moved: %d looks and %v, want %d and %v", left, moved, looks, crawls, wantLooks, wantCrawls)
		}
	}
	const mb = 1 << 20
	f(10*mb, 0, 0, false) // the first look
	f(9*mb, mb, 9, false)
	f(7*mb, 3*mb, 3, false)
	f(7*mb, 3*mb, 0, true)
	f(7*mb-MinRate+1, 3*mb+MinRate-1, 0, true)
	f(7*mb, 0, 0, false) // another value
	f(0, 0, 0, false)    // all has moved
}
