package proxy

import (
	"testing"
	"time"
)

// WAIT is answered with the least number that a node knows, once that is enough, or its time is up.
func TestWaitAsksAllNodes(t *testing.T) {
	c := newCluster(t, 3)
	for i, n := range c.nodes {
		n.set(func(n *fakeNode) { n.copies = i + 1 })
	}
	conn := c.dial()
	conn.send("WAIT 1 0")
	conn.want(":1")
	conn.send("WAIT -1 0", "WAIT x 0", "WAIT 1 -1", "SET a 1")
	conn.want(":1", "-ERR value is not an integer or out of range", "-ERR timeout is negative", "+OK")
	begun := time.Now()
	conn.send("WAIT 2 50")
	conn.want(":1")
	if took := time.Since(begun); took < 50*time.Millisecond {
		t.Errorf("WAIT for more than there are was answered after %v", took)
	}
	conn.send("WAIT 2 0", "PING")
	c.nodes[0].set(func(n *fakeNode) { n.copies = 2 })
	conn.want(":2", "+PONG")
}
