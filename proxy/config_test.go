package proxy

import (
	"testing"

	"github.com/dunlin-cache/dunlin/ring"
)

// settings are a fake node's maxmemory and policy.
type settings struct{ memory, policy string }

// TestConfigOfTheNodes checks that the nodes' parameters are set on all nodes and shown for all,
// and that the others stay the proxy's.
func TestConfigOfTheNodes(t *testing.T) {
	c := newCluster(t, 2)
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.settings = settings{"100", "allkeys-lru"} })
	}
	cl := c.dial()
	cl.send("CONFIG GET maxmemory", "CONFIG GET maxmem* timeout", "CONFIG GET timeout")
	cl.want("*2 $9 maxmemory $3 100", "*6 $9 maxmemory $3 100 $16 maxmemory-policy $11 allkeys-lru $7 timeout $1 0", "*2 $7 timeout $1 0")

	cl.send("SET a 1", "config set MaxMemory 200 maxmemory-policy noeviction", "GET a", "CONFIG GET maxmem*")
	cl.want("+OK", "+OK", "$1 1", "*4 $9 maxmemory $3 200 $16 maxmemory-policy $10 noeviction")
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			if want := (settings{"200", "noeviction"}); n.settings != want {
				t.Errorf("%s has %v, want %v", n.name, n.settings, want)
			}
		})
	}

	c.nodes[1].set(func(n *fakeNode) { n.settings = settings{"150", "volatile-ttl"} })
	cl.send("CONFIG GET maxmemory*", "CONFIG SET maxclients 7", "CONFIG GET maxclients", "CONFIG SET maxmemory bad:n2")
	cl.want("*4 $9 maxmemory $3 150 $16 maxmemory-policy $5 mixed", "+OK", "*2 $10 maxclients $1 7",
		"-ERR CONFIG SET failed: bad")
}

// TestConfigOfNodesAndProxy checks that one CONFIG SET sets parameters of the nodes and of the
// proxy, or none of them.
func TestConfigOfNodesAndProxy(t *testing.T) {
	c := newCluster(t, 2)
	c.level = ring.Level
	c.route(func(p int) int { return p % 2 })
	c.retry() // the loops have the table
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) { n.settings = settings{"100", "allkeys-lru"} })
	}
	cl := c.dial()
	const show = "CONFIG GET maxclients maxmemory"
	cl.send("CONFIG SET maxclients 70 maxmemory 300 latency-tracking yes", show)
	cl.want("+OK", "*4 $10 maxclients $2 70 $9 maxmemory $3 300")
	for _, refused := range []struct{ request, reply string }{
		{"CONFIG SET maxmemory 400 maxclients 0", "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between 1 and 4294967295 inclusive"},
		{"CONFIG SET maxmemory 400 nothing 1", "-ERR Unknown option or number of arguments for CONFIG SET - 'nothing'"},
		{"CONFIG SET maxmemory 400 maxclients 8 maxclients 9", "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - duplicate parameter"},
		{"CONFIG SET maxmemory bad:n2 maxclients 8", "-ERR CONFIG SET failed: bad"},
		{"CONFIG SET maxmemory 400 maxclients", "-ERR syntax error"},
	} {
		cl.send(refused.request, show)
		cl.want(refused.reply, "*4 $10 maxclients $2 70 $9 maxmemory $3 300")
	}
	for _, n := range c.nodes {
		n.set(func(n *fakeNode) {
			if n.settings.memory != "300" {
				t.Errorf("%s has a limit of %s though one node has refused", n.name, n.settings.memory)
			}
		})
	}
}

// TestConfigWithoutNodes checks that a tool that asks for all parameters when it connects does not
// wait long for nodes that are away.
func TestConfigWithoutNodes(t *testing.T) {
	c := newCluster(t, 0)
	cl := c.dial()
	cl.send("CONFIG GET maxmemory*")
	cl.want("*4 $9 maxmemory $1 0 $16 maxmemory-policy $11 allkeys-lru")
}

// TestConfigIsAskedAgain checks that a node that covers only some partitions is asked again, and
// counts once.
func TestConfigIsAskedAgain(t *testing.T) {
	c := newCluster(t, 1)
	asked := 0
	c.nodes[0].set(func(n *fakeNode) {
		n.settings = settings{"100", "volatile-ttl"}
		n.owns = func(p uint16) bool {
			asked++
			return asked > ring.Partitions || p%2 == 0
		}
	})
	cl := c.dial()
	cl.send("CONFIG GET maxmemory-policy")
	cl.want("*2 $16 maxmemory-policy $12 volatile-ttl")
}
