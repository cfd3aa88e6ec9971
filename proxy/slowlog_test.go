package proxy

import (
	"strings"
	"testing"
)

// The slow log has what the proxy answers itself and what it merges, beside the nodes' entries.
func TestSlowLogOfTheProxy(t *testing.T) {
	c := newCluster(t, 2, oneLoop(t))
	cl := c.dial()
	c.proxy.slow.Limit(0, 10)
	cl.send("PING a", "DBSIZE", "GET k")
	cl.want("$1 a", ":0", "$-1")
	c.proxy.slow.Limit(-1, 10)
	cl.send("SLOWLOG LEN")
	cl.want(":2")
	cl.send("SLOWLOG GET")
	if got := cl.reply(); !strings.Contains(got, "*1 $6 DBSIZE ") || !strings.Contains(got, "*2 $4 PING $1 a ") {
		t.Errorf("SLOWLOG GET answers %s", got)
	}
	cl.send("SLOWLOG RESET", "SLOWLOG LEN")
	cl.want("+OK", ":0")
}
