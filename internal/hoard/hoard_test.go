package hoard

import (
	"testing"
	"time"
)

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

func TestScarcity(t *testing.T) {
	var s Scarcity
	f := func(refused int64, now time.Duration, want bool) {
		t.Helper()
		if got := s.Look(refused, now); got != want {
			t.Errorf("%d refusals at %v: scarce %v, want %v", refused, now, got, want)
		}
	}
	f(0, time.Second, false)
	f(1, 2*time.Second, true)
	f(1, scarceFor+time.Second, true)
	f(1, scarceFor+2*time.Second, false)
	f(2, time.Minute, true)
}

func TestPaceOfUnknownLength(t *testing.T) {
	var p Pace
	for i, f := range []struct {
		moved int64
		want  bool
	}{{1 << 20, false}, {1<<20 + MinRate, false}, {1<<20 + 2*MinRate - 1, true}, {1 << 10, false}, {1 << 10, true}} {
		if got := p.Crawls(f.moved); got != f.want {
			t.Errorf("look %d: %d moved, crawls %v", i, f.moved, got)
		}
	}
}
