package gossip

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPulseCountsAStandstillOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var p pulse
		p.begin(func() time.Duration { return time.Since(begun) })
		time.Sleep(standstill / 2)
		if n := p.standstills(); n != 0 {
			t.Errorf("%d standstills after half of one", n)
		}
		time.Sleep(standstill)
		if n := p.standstills(); n != 1 {
			t.Errorf("%d standstills after one that is not over, want 1", n)
		}
		done := make(chan struct{})
		go p.run(done)
		time.Sleep(5 * beatInterval)
		if n := p.standstills(); n != 1 {
			t.Errorf("%d standstills after one, want 1", n)
		}
		close(done)
		synctest.Wait()
	})
}
