package proxy

import (
	"strconv"
	"testing"
	"time"
)

// A partition changes owners within milliseconds, and waiting commands continue just as soon. The
// new owner refuses three times in each of ten epochs. Only the quickest epoch counts, as on a
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
