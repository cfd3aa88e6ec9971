package node

import (
	"testing"

	"github.com/dunlin-cache/dunlin/node/data/keys"
)

// TestObjectByFrequency: under a policy that goes by frequency, uses are shown and idle times are
// not.
func TestObjectByFrequency(t *testing.T) {
	c := dial(t, startNode(t).Addr())
	c.want("SET k v", "OK")
	c.want("CONFIG SET maxmemory-policy allkeys-lfu", "OK")
	c.want("OBJECT FREQ k", "(integer) 0")
	c.want("OBJECT FREQ k", "(integer) 0") // to ask is no use
	for range 5 {
		c.want("GET k", `"v"`)
	}
	c.want("OBJECT FREQ k", "(integer) 3")
	c.want("OBJECT FREQ nothing", "(nil)")
	c.want("OBJECT IDLETIME k", "(error) "+keys.ErrNoIdleTime)
	c.want("CONFIG SET maxmemory-policy allkeys-lru", "OK")
	c.want("OBJECT FREQ k", "(error) "+keys.ErrNoFrequency)
	c.want("OBJECT IDLETIME k", "(integer) 0")
}
