package node

import (
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/keys"
)

// TestObjectByFrequency: under a policy that goes by frequency, uses are shown and idle times are
// not.
func TestObjectByFrequency(t *testing.T) {
	n := startNode(t)
	c := dial(t, n.Addr())
	c.want("SET k v", "OK")
	c.want("CONFIG SET maxmemory-policy allkeys-lfu", "OK")
	c.want("OBJECT FREQ k", "(integer) 0")
	c.want("OBJECT FREQ k", "(integer) 0") // to ask is no use
	for range 5 {
		c.want("GET k", `"v"`)
	}
	c.want("OBJECT FREQ k", "(integer) 3")
	c.want("SET u v", "OK")
	c.want("CLIENT NO-TOUCH on", "OK")
	untouched := openPipeTo(t, n, 1, 0, "common-no-touch", 1, 2)
	touched := openPipeTo(t, n, 1, 0, "common", 1, 2) // another pipe: it does not supersede the first
	for range 5 {
		c.want("GET u", `"v"`)
		untouched.want("GET u", `"v"`)
		untouched.want("MGET u", `1) "v"`)
	}
	c.want("OBJECT FREQ u", "(integer) 0")
	touched.want("GET u", `"v"`)
	c.want("OBJECT FREQ u", "(integer) 1")
	c.want("OBJECT FREQ nothing", "(nil)")
	c.want("OBJECT IDLETIME k", "(error) "+keys.ErrNoIdleTime)
	c.want("CONFIG SET maxmemory-policy allkeys-lru", "OK")
	c.want("OBJECT FREQ k", "(error) "+keys.ErrNoFrequency)
	c.want("OBJECT IDLETIME k", "(integer) 0")
}
