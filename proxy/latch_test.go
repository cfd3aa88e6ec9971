package proxy

import (
	"strconv"
	"testing"
	"time"
)

// A partition changes hands within milliseconds, and what waits for it goes on within as many: the
// new owner refuses three times in each of ten epochs, and the quickest of those stands for a
// machine that has nothing else to do.
func TestSoonServedAgain(t *testing.T) {
	c := newCluster(t, 1, oneLoop(t))
	conn := c.dial()
	refusals, epoch := 0, 1
	c.nodes[0].set(func(n *fakeNode) {
		n.refuse = func(string) string {
			if refusals++; refusals <= 3 {
				return "-DUNLINWAIT " + strconv.Itoa(epoch) + "\r\n"
			}
			refusals = 0
			epoch++
			return ""
		}
	})
	quickest := time.Hour
	for range 10 {
		begun := time.Now()
		conn.send("GET k")
		conn.want("$-1")
		quickest = min(quickest, time.Since(begun))
	}
	if quickest > 30*time.Millisecond {
		t.Errorf("after three refusals the reply came in %v at best, want what three short pauses take", quickest)
	}
}
