package cluster

import (
	"net"
	"strconv"
	"sync"

	"github.com/dunlin-cache/dunlin/internal/command"
	"github.com/dunlin-cache/dunlin/internal/resp"
	"github.com/dunlin-cache/dunlin/ring"
)

// View is the cluster as one member shows it to clients of Redis Cluster.
type View struct {
	Table *ring.Table // nil: no table yet
	Self  string      // ring.Member.ID of this process
	Alone *Endpoint   // set by a proxy: it lists itself as the one node, with all slots
}

// Endpoint is where clients find the member that is listed alone.
type Endpoint struct {
	ID   string // ring.Member.ID
	Host string // "": where the asking client reached us, which also holds behind a load balancer
	Port int    // 0: the same
}

// topology is a View in the form from which all CLUSTER replies are made.
type topology struct {
	epoch  uint64
	nodes  []clusterNode
	ranges []slotRange // ascending; slots that nobody owns are in none
}

type clusterNode struct {
	id     string // NodeID
	host   string
	port   int
	myself bool
	online bool
	ranges []slotRange
}

// slotRange is inclusive at both ends, as CLUSTER SLOTS shows it.
type slotRange struct {
	first, last int
	node        int // index in topology.nodes
}

func (v View) topology(laddr string) topology {
	if v.Alone != nil {
		return v.alone(laddr)
	}
	if v.Table == nil {
		return topology{}
	}
	t := topology{epoch: v.Table.Epoch}
	for _, m := range v.Table.Nodes {
		host, port := splitAddr(m.Addr)
		t.nodes = append(t.nodes, clusterNode{
			id: NodeID(m.ID), host: host, port: port,
			myself: m.ID == v.Self, online: m.State == ring.Serving,
		})
	}
	t.addRanges(&v.Table.Owner)
	return t
}

// addRanges joins neighbouring partitions of one owner.
func (t *topology) addRanges(owner *[ring.Partitions]uint16) {
	const slots = ring.Slots / ring.Partitions
	for p := 0; p < ring.Partitions; {
		node, first := int(owner[p]), p
		for p < ring.Partitions && int(owner[p]) == node {
			p++
		}
		if node >= len(t.nodes) {
			continue // nobody owns them
		}
		r := slotRange{first: first * slots, last: p*slots - 1, node: node}
		t.ranges = append(t.ranges, r)
		t.nodes[node].ranges = append(t.nodes[node].ranges, r)
	}
}

func (v View) alone(laddr string) topology {
	host, port := splitAddr(laddr)
	if v.Alone.Host != "" {
		host = v.Alone.Host
	}
	if v.Alone.Port != 0 {
		port = v.Alone.Port
	}
	all := []slotRange{{first: 0, last: ring.Slots - 1}}
	n := clusterNode{id: NodeID(v.Alone.ID), host: host, port: port, myself: true, online: true, ranges: all}
	return topology{epoch: v.Table.Version().Epoch, nodes: []clusterNode{n}, ranges: all}
}

// complete reports whether every slot is served. A proxy's own listing always covers all slots; the
// table behind it decides.
func (v View) complete() bool {
	if v.Table == nil {
		return false
	}
	for _, node := range v.Table.Owner {
		if int(node) >= len(v.Table.Nodes) {
			return false
		}
	}
	return true
}

// splitAddr accepts an address without a port, so that a member with an odd
// one is still listed.
func splitAddr(addr string) (host string, port int) {
	host, digits, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0
	}
	port, err = strconv.Atoi(digits)
	if err != nil {
		return host, 0
	}
	return host, port
}

// topologyCache keeps the encoded replies of one table. With three nodes there are some 2,700
// ranges, a quarter of a megabyte, and clients of Redis Cluster ask at each connect and after each
// error. A proxy's own listing is short and depends on the asking connection, so it is not cached.
type topologyCache struct {
	mu      sync.Mutex
	table   *ring.Table
	replies map[replyKey][]byte
}

type replyKey struct {
	id      command.ID
	version resp.Version
}

// get returns the reply for a table, encoding it at the first call. The result
// is shared: copy from it.
func (c *topologyCache) get(table *ring.Table, key replyKey, encode func() []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table != table || c.replies == nil {
		c.table, c.replies = table, map[replyKey][]byte{}
	}
	reply, ok := c.replies[key]
	if !ok {
		reply = encode()
		c.replies[key] = reply
	}
	return reply
}
