package measure

import (
	"math"
	"testing"
	"time"
)

func TestTurnover(t *testing.T) {
	var over Turnover
	begun := time.Now()
	f := func(after time.Duration, keys, evicted int64, want float64) {
		t.Helper()
		if got := over.Age(begun.Add(after), keys, evicted); math.Abs(got-want) > 0.01 && got != want {
			t.Errorf("after %v, %d keys of which %d were evicted are %v s old, want %v", after, keys, evicted, got, want)
		}
	}
	f(0, 1000, 500, math.Inf(1)) // nothing is known of the time before
	f(10*time.Second, 1000, 500, math.Inf(1))
	f(20*time.Second, 1000, 700, 100) // 10 a second
	for s := 21; s <= 200; s++ {      // from then on, 20
		over.Age(begun.Add(time.Duration(s)*time.Second), 1000, 700+int64(s-20)*20)
	}
	f(200*time.Second, 1000, 700+180*20, 50)
	if len(over.seen) > turnoverSteps+2 {
		t.Errorf("%d samples are kept", len(over.seen))
	}
	f(400*time.Second, 1000, 700+180*20, math.Inf(1)) // no more
}
