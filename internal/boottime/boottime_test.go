package boottime

import (
	"testing"
	"time"
)

// TestNow: the clock runs as fast as Go's.
func TestNow(t *testing.T) {
	before, from, begun := time.Now(), Now(), time.Now() // in this order
	<-time.After(20 * time.Millisecond)
	least := time.Since(begun)
	passed := Now() - from
	if most := time.Since(before); passed < least || passed > most+time.Millisecond {
		t.Errorf("%v passed, want %v to %v", passed, least, most)
	}
}
